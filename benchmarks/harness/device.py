"""The two kinds of devices on which benchmarks run, with their clocks, ceilings and memory.

Calls on a CPU are timed with the wall clock, calls on a GPU with CUDA events around one call. Before each call on a
GPU, 256 MB are written, so that its level-2 cache (50 MB on an H100) contains no input, and so that the call is
launched while the device is still busy. If a call makes the host wait, as a check for NaN does, its time includes this
wait.

Ceilings: ``read_rate`` is the bytes per second of a sum (GPU) or a maximum (CPU) over an array far larger than any
cache; ``copy_rate`` is the rate of copying it, with read and written bytes both counted.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from . import ceilings, machine

# After its work, a peer's threads may spin for a moment, in which nothing else is timed.
SETTLE_SECONDS = 0.3
FLUSH_BYTES = 256 << 20
STREAM_BYTES = 4 << 30
STREAM_REPEATS = 10


class Timing(NamedTuple):
    """The seconds of the timed calls."""

    median: float
    least: float
    most: float
    repeats: int

    def times(self, factor: float) -> Timing:
        """Return the timing of `factor` times as much work."""
        return Timing(self.median * factor, self.least * factor, self.most * factor, self.repeats)


def timing_of(seconds: Sequence[float]) -> Timing:
    """Return the timing (median, least, most, number) of calls from their seconds."""
    return Timing(float(np.median(seconds)), min(seconds), max(seconds), len(seconds))


class Device(Protocol):
    """A device on which calls run."""

    kind: str  # "cpu" or "cuda"
    threads: int | None  # CPU threads of each contestant; None on a GPU
    slice_rows: int  # number of rows of a trial call, from which the time of the whole call is estimated

    def title(self) -> str:
        """Model of the processor or the GPU."""

    def isa(self) -> str | None:
        """Instruction set of tonari's kernels; None on a GPU."""

    def memory(self) -> int:
        """The largest input in bytes that leaves enough memory for methods and peers."""

    def once(self, call: Callable[[], object]) -> float:
        """Return the seconds of one call."""

    def settle(self) -> None:
        """Wait until the previous call has ended completely."""

    def whole(self, seconds: float, part: int, rows: int) -> float:
        """Return a lower bound of the seconds for ``rows`` rows, given the seconds that ``part`` of these rows took."""

    def values(self, tensor: Any) -> Any:
        """Return a tensor as a user of this device would pass it: on a CPU a NumPy array, if NumPy has the dtype."""

    def read_rate(self) -> float:
        """Bytes per second at which the device reads a large array."""

    def copy_rate(self) -> float:
        """Bytes per second of copying a large array, read and written bytes both counted."""


class Cpu:
    """The processor of this machine, on which all calls use ``threads`` threads."""

    kind = "cpu"
    slice_rows = 256

    def __init__(self, threads: int) -> None:
        self.threads: int | None = threads
        self._threads = threads

    def title(self) -> str:
        return machine.cpu_name()

    def isa(self) -> str | None:
        return os.environ.get("TONARI_ISA") or [level for level in machine.levels() if level != "amx"][-1]

    def memory(self) -> int:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 6

    def once(self, call: Callable[[], object]) -> float:
        start = time.perf_counter()
        call()
        return time.perf_counter() - start

    def settle(self) -> None:
        time.sleep(SETTLE_SECONDS)

    def whole(self, seconds: float, part: int, rows: int) -> float:
        return seconds * rows / part

    def values(self, tensor: Any) -> Any:
        import torch

        return tensor if tensor.dtype == torch.bfloat16 else tensor.numpy()

    def read_rate(self) -> float:
        return ceilings.read_rate(self._threads)

    def copy_rate(self) -> float:
        return ceilings.copy_rate(self._threads)


class Cuda:
    """The first CUDA device."""

    kind = "cuda"
    threads: int | None = None
    slice_rows = 1024

    def __init__(self) -> None:
        import torch

        self._torch = torch
        self._flush = torch.empty(FLUSH_BYTES, dtype=torch.int8, device="cuda")
        self._rates: tuple[float, float] | None = None

    def title(self) -> str:
        return str(self._torch.cuda.get_device_name())

    def isa(self) -> str | None:
        return None

    def memory(self) -> int:
        return int(self._torch.cuda.mem_get_info()[1]) // 2

    def once(self, call: Callable[[], object]) -> float:
        start, end = (self._torch.cuda.Event(enable_timing=True) for _ in range(2))
        self._flush.zero_()
        start.record()
        call()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) / 1e3

    def settle(self) -> None:
        self._torch.cuda.synchronize()

    def replay(self, call: Callable[[], object]) -> Callable[[], object]:
        """Return a call that replays `call` from a CUDA graph, so that only the kernels are timed."""
        call()  # compiles the kernels before the capture
        graph = self._torch.cuda.CUDAGraph()
        with self._torch.cuda.graph(graph):
            found = call()

        def replayed() -> object:
            graph.replay()
            return found

        return replayed

    def whole(self, seconds: float, part: int, rows: int) -> float:
        # Some of the rows may leave most of the GPU idle, so that all rows may take no longer.
        return seconds

    def values(self, tensor: Any) -> Any:
        return tensor

    def read_rate(self) -> float:
        return self._streams()[0]

    def copy_rate(self) -> float:
        return self._streams()[1]

    def _streams(self) -> tuple[float, float]:
        if self._rates is None:
            source = self._torch.ones(STREAM_BYTES // 4, dtype=self._torch.float32, device="cuda")
            target = self._torch.empty_like(source)
            read, copy = (
                min(self.once(work) for _ in range(STREAM_REPEATS))
                for work in (lambda: source.sum(), lambda: target.copy_(source))
            )
            self._rates = STREAM_BYTES / read, 2 * STREAM_BYTES / copy
            del source, target
            self._torch.cuda.empty_cache()
        return self._rates


def open_device(kind: str, threads: int) -> Device:
    """Return the device of a kind, "cpu" or "cuda"."""
    return Cuda() if kind == "cuda" else Cpu(threads)


def take_turns(
    device: Device,
    calls: dict[str, Callable[[], object]],
    *,
    seconds: float,
    least: int = 3,
    most: int = 20,
    settle: bool = False,
) -> dict[str, Timing]:
    """Time warm calls alternately, each once per round, until ``seconds`` have passed or ``most`` rounds are done.

    With ``settle``, each call first waits until the threads of the previous peer have stopped spinning.
    """
    times: dict[str, list[float]] = {name: [] for name in calls}
    spent = 0.0
    for turn in range(most):
        if turn >= least and spent >= seconds:
            break
        for name, call in calls.items():
            if settle:
                device.settle()
            times[name].append(device.once(call))
            spent += times[name][-1]
    return {name: timing_of(found) for name, found in times.items()}
