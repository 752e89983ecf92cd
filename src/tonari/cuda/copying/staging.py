"""Copy between host memory and a device in the background, by threads, pinned buffers and a stream.

A plain copy of pageable memory uses one thread and one buffer of the driver, and waits for all earlier work on its
stream. Here several threads copy between pageable memory and pinned buffers (5 to 10 GB/s per thread). At the same
time, a separate stream copies between other pinned buffers and the device (about 50 GB/s in each direction over PCIe
5). prefetch.py copies to the device; a Collector copies results to the host, through pinned buffers of its own:

    device   --separate stream-->   pinned buffers   --threads-->   arrays
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from tonari.core.process.workers import Workers, default_threads
from tonari.cuda import tuning

if TYPE_CHECKING:
    from typing_extensions import Self


def empty_on_host(shape: tuple[int, ...], dtype: str, *, locked: bool) -> Any:
    """Allocate a tensor in host memory, page-locked if `locked`; torch keeps page-locked memory for reuse."""
    return torch.empty(shape, dtype=getattr(torch, dtype), pin_memory=locked)


class Piece:
    """A pinned buffer, and the event that marks the end of its last copy."""

    def __init__(self) -> None:
        self._memory = torch.empty(tuning.PIECE_BYTES, dtype=torch.uint8, pin_memory=True)
        self._copied = torch.cuda.Event(blocking=True)

    def send(self, fill: Callable[[npt.NDArray[np.uint8]], object], target: Any, stream: Any) -> None:
        """Let `fill` write bytes to the buffer, and start copying them to a tensor on the device."""
        self._copied.synchronize()
        here = self._memory[: len(target)]
        fill(here.numpy())
        with torch.cuda.stream(stream):
            target.copy_(here, non_blocking=True)
            self._copied.record()

    def fetch(self, source: Any, target: npt.NDArray[np.uint8], stream: Any) -> None:
        """Copy the bytes of a tensor on the device to an array, and wait until they have arrived."""
        here = self._memory[: len(source)]
        with torch.cuda.stream(stream):
            here.copy_(source, non_blocking=True)
            self._copied.record()
        self._copied.synchronize()
        np.copyto(target, here.numpy())


class Carrier:
    """Threads that copy in the background, in the order of requests: the base class for both directions.

    A context manager, which ends its threads on exit.

    Parameters
    ----------
    device : torch device
        On the CPU, where Triton's interpreter runs, the threads copy the rows directly.
    pieces : int
        The number of pinned buffers per thread.
    at_once : int
        The number of devices that copy rows at the same time, and share the threads.
    """

    def __init__(self, device: Any, pieces: int, at_once: int = 1) -> None:
        self._device = torch.device(device)
        self._workers = Workers(max(1, min(tuning.MOST_THREADS, default_threads()) // at_once))
        self._background = ThreadPoolExecutor(1)
        self._under_way: list[Future[Any]] = []
        self._stream: Any = None
        self._pieces: SimpleQueue[Piece] = SimpleQueue()
        if self._device.type == "cuda":
            self._stream = torch.cuda.Stream(self._device)
            for _ in range(pieces * self._workers.threads):
                self._pieces.put(Piece())

    def _carry(self, total: int, step: int, move: Callable[[slice, Piece | None], object]) -> None:
        """Start moving `total` bytes in steps; `move` receives the range of a step, and a buffer (None on the CPU).

        Copies that `move` launches wait for the work that has been launched on the current stream before.
        """
        if self._stream is not None:
            self._stream.wait_stream(torch.cuda.current_stream(self._device))

        def carry(begin: int) -> None:
            self._workers.check()
            here = slice(begin, min(begin + step, total))
            if self._stream is None:
                move(here, None)
                return
            piece = self._pieces.get()
            try:
                move(here, piece)
            finally:
                self._pieces.put(piece)

        self._under_way.append(self._background.submit(self._workers.map, carry, range(0, total, step)))

    def arrive(self) -> None:
        """Wait until the threads have read or written host memory; work that is launched later waits for all copies.

        If a thread has failed, its error is raised here.
        """
        under_way, self._under_way = self._under_way, []
        for one in under_way:
            one.result()
        self._join_streams()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._workers.stop()
        self._background.shutdown()
        self._join_streams()

    def _join_streams(self) -> None:
        if self._stream is not None:
            torch.cuda.current_stream(self._device).wait_stream(self._stream)


class Collector(Carrier):
    """Copies tensors to host memory in the background. A context manager, which ends its threads on exit.

    Parameters
    ----------
    device : torch device
        On the CPU, where Triton's interpreter runs, the threads copy the tensors directly.
    """

    def __init__(self, device: Any) -> None:
        super().__init__(device, pieces=1)

    def collect(self, source: Any, out: npt.NDArray[Any]) -> None:
        """Start copying a contiguous tensor into a C-contiguous array; the copy waits for work launched before it.

        The tensor and the array must have the same dtype. The array is complete after :meth:`arrive`. Until then, the
        tensor is kept in memory, and must not be overwritten.
        """
        there, target = source.view(-1).view(torch.uint8), out.reshape(-1).view(np.uint8)

        def move(here: slice, piece: Piece | None) -> None:
            if piece is None:
                np.copyto(target[here], there[here].numpy())
            else:
                piece.fetch(there[here], target[here], self._stream)

        self._carry(len(there), tuning.PIECE_BYTES, move)
