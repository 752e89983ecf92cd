"""Progress reports: a bar on a terminal, a callback, or nothing."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from tonari.core import tuning

ProgressLike: TypeAlias = bool | Callable[[int, int], object] | None


class Counter(Protocol):
    """Anything that counts finished work."""

    def add(self, amount: int) -> None:
        """Count `amount` more units."""


class Silent:
    """A counter that shows nothing."""

    def add(self, amount: int) -> None:
        """Count nothing."""

    def __enter__(self) -> Silent:
        return self

    def __exit__(self, *_: object) -> None:
        """End."""


_SILENT = Silent()


def counting(wanted: ProgressLike, *, total: int, seconds: float, label: str, unit: str = "pair") -> Progress | Silent:
    """Return a counter of work.

    For short work without a requested progress bar, the counter does nothing and costs no time.

    >>> isinstance(counting(None, total=1, seconds=0.1, label="neighbours"), Silent)
    True
    """
    if wanted is False or (wanted is None and seconds <= tuning.SHOW_FROM_SECONDS):
        return _SILENT
    return Progress(wanted, total=total, seconds=seconds, label=label, unit=unit)


class Progress:
    """Count the work that many threads have done, and show it.

    Parameters
    ----------
    wanted : None, bool or callable(done, total)
        None shows a bar if standard error is a terminal and the work is expected to take over 2 seconds.
    total : int
        Units of work; 0 if unknown.
    seconds : float, optional
        Expected duration, which decides whether None shows a bar. If it is unknown, the bar appears after 2 seconds.
    label, unit : str
        Texts next to the bar.
    done : int
        Units that were finished before; they do not count towards the rate.
    """

    def __init__(
        self,
        wanted: ProgressLike,
        *,
        total: int,
        seconds: float | None,
        label: str,
        unit: str = "pair",
        done: int = 0,
    ) -> None:
        self.total = total
        self.done = done
        self._lock = threading.Lock()
        self._callback = wanted if callable(wanted) else None
        self._bar: Any = None
        delay = tuning.SHOW_FROM_SECONDS if wanted is None and seconds is None else 0.0
        if wanted is None:
            wanted = (seconds is None or seconds > tuning.SHOW_FROM_SECONDS) and sys.stderr.isatty()
        if wanted is True:
            from tqdm import tqdm  # the import takes a tenth of a second, so only when a bar is shown

            self._bar = tqdm(
                total=total or None,
                unit=unit,
                unit_scale=True,
                desc=label,
                leave=False,
                file=sys.stderr,
                delay=delay,
                initial=done,
            )

    def add(self, amount: int) -> None:
        """Count `amount` more units; safe from any thread."""
        with self._lock:
            self.done += amount
            if self._bar is not None:
                self._bar.update(amount)
            if self._callback is not None:
                self._callback(self.done, self.total)

    def extend(self, amount: int) -> None:
        """Add work to the total that was unknown at the start."""
        with self._lock:
            self.total += amount
            if self._bar is not None:
                self._bar.total = self.total

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
