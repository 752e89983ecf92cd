"""Report the progress of long work: by a bar on a terminal, by a callback, or not at all."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from tonari.core import tuning

ProgressLike: TypeAlias = bool | Callable[[int, int], object] | None


class Counter(Protocol):
    """The interface of an object that counts finished units of work."""

    def add(self, amount: int) -> None:
        """Count `amount` more units."""


class Silent:
    """A counter that does nothing."""

    def add(self, amount: int) -> None:
        """Count nothing."""

    def __enter__(self) -> Silent:
        return self

    def __exit__(self, *_: object) -> None:
        """End."""


_SILENT = Silent()


def counting(wanted: ProgressLike, *, total: int, seconds: float, label: str, unit: str = "pair") -> Progress | Silent:
    """Return a counter for work of `total` units that is expected to take `seconds`.

    If the work is short and no progress bar is requested, the counter does nothing and takes no time.

    >>> isinstance(counting(None, total=1, seconds=0.1, label="neighbours"), Silent)
    True
    """
    if wanted is False or (wanted is None and seconds <= tuning.SHOW_FROM_SECONDS):
        return _SILENT
    return Progress(wanted, total=total, seconds=seconds, label=label, unit=unit)


class Progress:
    """A counter for the work of many threads, which shows it as a bar or reports it to a callback.

    Parameters
    ----------
    wanted : None, bool or callable(done, total)
        True shows a bar. None shows one if standard error is a terminal and the work is expected to take over 2
        seconds.
    total : int
        Units of work; 0 if unknown.
    seconds : float, optional
        Expected duration of the work, which decides whether None shows a bar. If it is unknown, the bar appears after 2
        seconds.
    label, unit : str
        Texts next to the bar.
    done : int
        Units that were finished earlier, such as by an interrupted run; they do not count for the speed.
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
            from tqdm import tqdm  # imported only for a bar, since the import takes a tenth of a second

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
        """Count `amount` more units; any thread may call this method."""
        with self._lock:
            self.done += amount
            if self._bar is not None:
                self._bar.update(amount)
            if self._callback is not None:
                self._callback(self.done, self.total)

    def extend(self, amount: int) -> None:
        """Add units to the total, for work that was not known at the start."""
        with self._lock:
            self.total += amount
            if self._bar is not None:
                self._bar.total = self.total

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
