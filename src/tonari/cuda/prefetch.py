"""Copy rows from host memory to a device while the device works on others.

    memory or a mapped file   --threads-->   pinned buffers   --separate stream-->   device

A plain copy from pageable memory uses one thread and one buffer of the driver, and waits for all earlier work on its
stream. Here each thread has two pinned buffers: one is filled while the other is copied to the device.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from tonari.core.workers import Workers, default_threads
from tonari.inputs import name_of_dtype

PIECE_BYTES = 4 << 20
MOST_THREADS = 8  # more do not copy faster


class _Piece:
    """A pinned buffer, and the event after which it may be overwritten."""

    def __init__(self) -> None:
        self.memory = torch.empty(PIECE_BYTES, dtype=torch.uint8, pin_memory=True)
        self.sent = torch.cuda.Event(blocking=True)

    def send(self, fill: Callable[[npt.NDArray[np.uint8]], object], target: Any, stream: Any) -> None:
        self.sent.synchronize()
        here = self.memory[: len(target)]
        fill(here.numpy())
        with torch.cuda.stream(stream):
            target.copy_(here, non_blocking=True)
            self.sent.record()


class Feeder:
    """Copy rows to a device in the background, one array at a time. A context manager, which ends its threads on exit.

    Parameters
    ----------
    device : torch device
        On the CPU, where Triton's interpreter runs, the threads copy the rows directly.
    """

    def __init__(self, device: Any) -> None:
        self._device = torch.device(device)
        self._workers = Workers(min(MOST_THREADS, default_threads()))
        self._background = ThreadPoolExecutor(1)
        self._under_way: Future[Any] | None = None
        self._stream: Any = None
        self._pieces: SimpleQueue[_Piece] = SimpleQueue()
        if self._device.type == "cuda":
            self._stream = torch.cuda.Stream(self._device)
            for _ in range(2 * self._workers.threads):
                self._pieces.put(_Piece())

    def send(self, rows: npt.NDArray[Any], out: Any) -> None:
        """Start to copy a C-contiguous array into a contiguous tensor; the copy waits for the work launched before."""
        source = rows.reshape(-1).view(np.uint8)
        self._fill(out, PIECE_BYTES, lambda here, buffer: np.copyto(buffer, source[here]))

    def gather(self, rows: npt.NDArray[Any], ids: npt.NDArray[np.int64], out: Any) -> None:
        """Start to copy the rows with these numbers into a contiguous tensor, as :meth:`send` does."""
        size = rows.shape[1] * rows.itemsize
        if size > PIECE_BYTES:
            self.send(np.take(rows, ids, axis=0), out)
            return

        def take(here: slice, buffer: npt.NDArray[np.uint8]) -> None:
            some = ids[here.start // size : here.stop // size]
            np.take(rows, some, axis=0, out=buffer.view(rows.dtype).reshape(len(some), -1), mode="clip")

        self._fill(out, PIECE_BYTES // size * size, take)

    def _fill(self, out: Any, step: int, fill: Callable[[slice, npt.NDArray[np.uint8]], object]) -> None:
        """Start to fill a tensor, so many bytes at a time; `fill` gets their range and a buffer."""
        if self._stream is not None:
            self._stream.wait_stream(torch.cuda.current_stream(self._device))
        target = out.view(-1).view(torch.uint8)

        def carry(begin: int) -> None:
            self._workers.check()
            here = slice(begin, min(begin + step, len(target)))
            if self._stream is None:
                fill(here, target[here].numpy())
                return
            piece = self._pieces.get()
            try:
                piece.send(functools.partial(fill, here), target[here], self._stream)
            finally:
                self._pieces.put(piece)

        self._under_way = self._background.submit(self._workers.map, carry, range(0, len(target), step))

    def arrive(self) -> None:
        """Wait until all rows have been read from host memory; work launched from now on waits for the copy."""
        if self._under_way is not None:
            self._under_way.result()
        self._join_streams()

    def __enter__(self) -> Feeder:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._workers.stop()
        self._background.shutdown()
        self._join_streams()

    def _join_streams(self) -> None:
        if self._stream is not None:
            torch.cuda.current_stream(self._device).wait_stream(self._stream)


def bring(rows: npt.NDArray[Any], device: Any) -> Any:
    """Copy a C-contiguous array to a device."""
    out = torch.empty(rows.shape, dtype=getattr(torch, name_of_dtype(rows)), device=device)
    with Feeder(device) as feeder:
        feeder.send(rows, out)
        feeder.arrive()
    return out


def slabs(rows: Any, order: Sequence[slice], device: Any) -> Generator[Any, None, None]:
    """Yield slices of rows as tensors on a device, in the given order; the next is copied while the last one is used.

    Parameters
    ----------
    rows : C-contiguous array, or tensor on CUDA
    order : sequence of slices
        The slices of `rows`.
    device : torch device

    Yields
    ------
    tensor
        Valid on the current stream until the next one is requested. Closing the generator early ends its threads.
    """
    if not isinstance(rows, np.ndarray):
        for here in order:
            yield rows[here].to(device)
        return
    sizes = [here.stop - here.start for here in order]
    shape, dtype = (max(sizes), rows.shape[1]), getattr(torch, name_of_dtype(rows))
    buffers = [torch.empty(shape, dtype=dtype, device=device) for _ in range(min(2, len(order)))]
    slots = [buffers[at % 2][:size] for at, size in enumerate(sizes)]
    with Feeder(device) as feeder:
        feeder.send(rows[order[0]], slots[0])
        for at in range(len(order)):
            feeder.arrive()
            if at + 1 < len(order):
                feeder.send(rows[order[at + 1]], slots[at + 1])
            yield slots[at]
