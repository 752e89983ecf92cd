"""Copy rows from host memory to a device while the device works on earlier rows.

    memory or a mapped file   --threads-->   pinned buffers   --separate stream-->   device

Each thread has two pinned buffers (staging.py): one is filled while the other is copied to the device.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Generator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from tonari.cuda import tuning
from tonari.cuda.copying.staging import Carrier, Piece
from tonari.inputs import name_of_dtype


class Feeder(Carrier):
    """Copies rows to a device in the background. A context manager, which ends its threads on exit.

    Parameters
    ----------
    device : torch device
        On the CPU, where Triton's interpreter runs, the threads copy the rows directly.
    at_once : int
        See :class:`tonari.cuda.copying.staging.Carrier`.
    """

    def __init__(self, device: Any, *, at_once: int = 1) -> None:
        super().__init__(device, pieces=2, at_once=at_once)

    def send(self, rows: npt.NDArray[Any], out: Any) -> None:
        """Start copying a C-contiguous array into a contiguous tensor; the copy waits for work launched before it."""
        source = rows.reshape(-1).view(np.uint8)
        self._fill(out, tuning.PIECE_BYTES, lambda here, buffer: np.copyto(buffer, source[here]))

    def gather(self, rows: npt.NDArray[Any], ids: npt.NDArray[np.int64], out: Any) -> None:
        """Start copying the rows with the row numbers `ids` into a contiguous tensor; see :meth:`send`."""
        size = rows.shape[1] * rows.itemsize
        if size > tuning.PIECE_BYTES:
            self.send(np.take(rows, ids, axis=0), out)
            return

        def take(here: slice, buffer: npt.NDArray[np.uint8]) -> None:
            some = ids[here.start // size : here.stop // size]
            np.take(rows, some, axis=0, out=buffer.view(rows.dtype).reshape(len(some), -1), mode="clip")

        self._fill(out, tuning.PIECE_BYTES // size * size, take)

    def _fill(self, out: Any, step: int, fill: Callable[[slice, npt.NDArray[np.uint8]], object]) -> None:
        """Start filling a tensor in steps of `step` bytes; `fill` receives a range of bytes and a buffer for them."""
        target = out.view(-1).view(torch.uint8)

        def move(here: slice, piece: Piece | None) -> None:
            if piece is None:
                fill(here, target[here].numpy())
            else:
                piece.send(functools.partial(fill, here), target[here], self._stream)

        self._carry(len(target), step, move)


def bring(rows: npt.NDArray[Any], device: Any, *, at_once: int = 1) -> Any:
    """Copy a C-contiguous array to a device with several threads, and return the tensor.

    `at_once` is the number of devices to which arrays are copied at the same time.
    """
    out = torch.empty(rows.shape, dtype=getattr(torch, name_of_dtype(rows)), device=device)
    with Feeder(device, at_once=at_once) as feeder:
        feeder.send(rows, out)
        feeder.arrive()
    return out


def slabs(rows: Any, order: Sequence[slice], device: Any) -> Generator[Any, None, None]:
    """Yield slices of rows as tensors on a device, in order; while one is in use, the next is copied.

    Parameters
    ----------
    rows : C-contiguous array, or tensor on CUDA
    order : sequence of slices
        The slices to yield.
    device : torch device

    Yields
    ------
    tensor
        Valid on the current stream until the next one is requested. Closing the generator early ends its threads.
    """
    with contextlib.closing(slabs_of([rows], order, device)) as arriving:
        for (part,) in arriving:
            yield part


def slabs_of(arrays: Sequence[Any], order: Sequence[slice], device: Any) -> Generator[list[Any], None, None]:
    """Yield each slice of several arrays as a list of tensors; see :func:`slabs`.

    The arrays are all in host memory or all on CUDA.
    """
    if not isinstance(arrays[0], np.ndarray):
        for here in order:
            yield [rows[here].to(device) for rows in arrays]
        return
    sizes = [here.stop - here.start for here in order]

    def buffers(rows: npt.NDArray[Any]) -> list[Any]:
        shape, dtype = (max(sizes), rows.shape[1]), getattr(torch, name_of_dtype(rows))
        both = [torch.empty(shape, dtype=dtype, device=device) for _ in range(min(2, len(order)))]
        return [both[at % 2][:size] for at, size in enumerate(sizes)]

    slots = list(zip(*map(buffers, arrays), strict=True))
    with Feeder(device) as feeder:

        def send(at: int) -> None:
            for rows, out in zip(arrays, slots[at], strict=True):
                feeder.send(rows[order[at]], out)

        send(0)
        for at in range(len(order)):
            feeder.arrive()
            if at + 1 < len(order):
                send(at + 1)
            yield list(slots[at])
