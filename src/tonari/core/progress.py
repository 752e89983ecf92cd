"""Progress: a bar on a terminal, a callback, or silence; and the stop signal that Ctrl-C raises."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

ProgressLike: TypeAlias = bool | Callable[[int, int], object] | None

SHOW_FROM_SECONDS = 2.0


class Counter(Protocol):
    """Takes note of work that was done."""

    def add(self, amount: int) -> None:
        """Count `amount` more units."""


class Progress:
    """Counts work done by many threads and shows it.

    Parameters
    ----------
    wanted : None, bool or callable(done, total)
        None shows a bar when standard error is a terminal and the work is expected to take over 2 seconds.
    total : int
        Units of work; 0 where nobody knows.
    seconds : float, optional
        Expected duration, for the choice above. Where it is not known the bar appears once 2 seconds have passed.
    label, unit : str
        Shown beside the bar.
    done : int
        Units that were done before, which the rate leaves out.
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
        delay = SHOW_FROM_SECONDS if wanted is None and seconds is None else 0.0
        if wanted is None:
            wanted = (seconds is None or seconds > SHOW_FROM_SECONDS) and sys.stderr.isatty()
        if wanted is True:
            from tqdm import tqdm  # costs a tenth of a second, so only when a bar is shown

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
        """Make room for work that turned out to be needed."""
        with self._lock:
            self.total += amount
            if self._bar is not None:
                self._bar.total = self.total

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
