"""The number of queries in each launch: few enough for Ctrl-C to take effect soon, enough to keep the device busy."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import torch

from tonari.kdtree import tuning


class Steps:
    """Launches on one device, of which at most two are in progress: before a third, the host waits for the first.

    Parameters
    ----------
    device : torch device
        The device. On the CPU, where Triton's interpreter runs, a launch returns when it is done.
    """

    def __init__(self, device: Any) -> None:
        self._size = tuning.FIRST_STEP
        self._clock = _DeviceClock if torch.device(device).type == "cuda" else _HostClock
        self._last: tuple[int, Any] | None = None

    @property
    def size(self) -> int:
        """The number of queries of the next launch.

        After a launch that took less than STEP_SECONDS, later launches have as many queries as are expected to take
        STEP_SECONDS, but at least twice and at most STEP_GROWTH times as many as that launch. If all queries take
        equally long, two launches take at most four times STEP_SECONDS.
        """
        if self._last is not None and self._last[1].is_done():
            self._learn(*self._last)
        return self._size

    @contextlib.contextmanager
    def launching(self, queries: int) -> Iterator[None]:
        """Return a context for a launch of `queries` queries; at its end, the host waits for the previous launch."""
        clock = self._clock()
        yield
        clock.stop()
        before, self._last = self._last, (queries, clock)
        if before is not None:
            self._learn(*before)

    def _learn(self, queries: int, clock: Any) -> None:
        """Wait for a launch of `queries` queries; if it took less than STEP_SECONDS, later launches get more."""
        seconds = clock.seconds()
        if seconds < tuning.STEP_SECONDS:
            few = seconds * tuning.STEP_GROWTH < tuning.STEP_SECONDS
            times = tuning.STEP_GROWTH if few else max(2.0, tuning.STEP_SECONDS / seconds)
            # Sizes are multiples of the first one, because kernels are compiled for addresses that are multiples of 16
            # bytes.
            self._size = max(self._size, int(times * queries) // tuning.FIRST_STEP * tuning.FIRST_STEP)


class _DeviceClock:
    """Measures the time of a device for all work on the current stream between construction and `stop`."""

    def __init__(self) -> None:
        self._events = [torch.cuda.Event(enable_timing=True, blocking=True) for _ in range(2)]
        self._events[0].record()

    def stop(self) -> None:
        self._events[1].record()

    def is_done(self) -> bool:
        """Whether the work is done, without waiting for it."""
        return bool(self._events[1].query())

    def seconds(self) -> float:
        """Wait for the work, and return the seconds that it took."""
        self._events[1].synchronize()
        return float(self._events[0].elapsed_time(self._events[1])) * 1e-3


class _HostClock:
    """Measures the time between construction and `stop`, for work that is done when its launch returns."""

    def __init__(self) -> None:
        self._begin = time.perf_counter()
        self._seconds = 0.0

    def stop(self) -> None:
        self._seconds = time.perf_counter() - self._begin

    def is_done(self) -> bool:
        return True

    def seconds(self) -> float:
        return self._seconds
