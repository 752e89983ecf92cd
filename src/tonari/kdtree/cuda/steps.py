"""The number of queries per launch, small enough for Ctrl-C and large enough to keep the device busy."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import torch

from tonari.kdtree import tuning


class Steps:
    """Launches on one device, two of them in progress at once: the host waits for the one before the last.

    Parameters
    ----------
    device : torch device
        The device. On the CPU, where Triton's interpreter runs, a launch returns when it is done.

    Attributes
    ----------
    size : int
        The number of queries of the next launch: twice the last number that was fast, so two launches take at most four
        times STEP_SECONDS if all queries are alike.
    """

    def __init__(self, device: Any) -> None:
        self.size = tuning.FIRST_STEP
        self._clock = _DeviceClock if torch.device(device).type == "cuda" else _HostClock
        self._last: tuple[int, Any] | None = None

    @contextlib.contextmanager
    def launching(self, queries: int) -> Iterator[None]:
        """Launch a step inside this context; at its end, the previous step has finished."""
        clock = self._clock()
        yield
        clock.stop()
        before, self._last = self._last, (queries, clock)
        if before is not None and before[1].seconds() < tuning.STEP_SECONDS:
            self.size = max(self.size, 2 * before[0])


class _DeviceClock:
    """Measures the seconds of the work launched on the current stream between construction and `stop`."""

    def __init__(self) -> None:
        self._events = [torch.cuda.Event(enable_timing=True, blocking=True) for _ in range(2)]
        self._events[0].record()

    def stop(self) -> None:
        self._events[1].record()

    def seconds(self) -> float:
        """Wait for the work."""
        self._events[1].synchronize()
        return float(self._events[0].elapsed_time(self._events[1])) * 1e-3


class _HostClock:
    """Measures the same if work is done when its launch returns."""

    def __init__(self) -> None:
        self._begin = time.perf_counter()
        self._seconds = 0.0

    def stop(self) -> None:
        self._seconds = time.perf_counter() - self._begin

    def seconds(self) -> float:
        return self._seconds
