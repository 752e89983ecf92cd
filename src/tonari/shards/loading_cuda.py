"""Load rows of a source as tensors on a CUDA device; a separate stream copies them while the device computes.

The rows of the next task may also wait in page-locked host memory, which a device reads at 50 GB/s. They then take no
memory on the device until the task begins.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from tonari import inputs
from tonari.core.process.workers import Workers, default_threads
from tonari.core.rows.slices import cut
from tonari.cuda import tuning
from tonari.cuda.copying.prefetch import Feeder
from tonari.cuda.copying.staging import empty_on_host
from tonari.cuda.devices import on, over, sent_to
from tonari.metrics import get_metric
from tonari.shards import tuning as shards_tuning
from tonari.shards.source import FileSource, Source


class Locked:
    """Memory for rows, in several page-locked pieces.

    Torch rounds each piece up to a power of two bytes. A single piece could therefore take nearly twice as many bytes
    as needed, and page-locking the additional bytes would take a long time.

    Parameters
    ----------
    rows, d : int
    dtype : str
    locked : bool
        Whether the memory is page-locked; False without a device.
    """

    def __init__(self, rows: int, d: int, dtype: str, *, locked: bool) -> None:
        size = inputs.dtype_of(dtype).itemsize * d
        self._parts = cut(rows, max(1, shards_tuning.LOCKED_BYTES // size))
        self._pieces = [empty_on_host((part.stop - part.start, d), dtype, locked=locked) for part in self._parts]
        self._rows = rows

    def __len__(self) -> int:
        return self._rows

    def within(self, here: slice) -> Iterator[tuple[Any, slice]]:
        """Yield views of the pieces that contain a range of rows, each with the positions of its rows in the range."""
        for part, piece in zip(self._parts, self._pieces, strict=True):
            low, high = max(here.start, part.start), min(here.stop, part.stop)
            if low < high:
                yield piece[low - part.start : high - part.start], slice(low - here.start, high - here.start)


class Staged:
    """Rows in page-locked memory; see :class:`tonari.shards.loading.Arriving`.

    Parameters
    ----------
    rows : Locked
    parts : list of slices
        The ranges of the source that these rows fill, for checks of values; empty if rows were read by number.
    """

    def __init__(self, rows: Locked, loader: CudaLoader, parts: list[slice]) -> None:
        self._waiting: Locked | None = rows
        self._loader, self._parts = loader, parts
        self._arrived: Any = None

    def arrive(self) -> Any:
        """Return the rows on the device."""
        if self._waiting is not None:
            self._arrived = self._loader.fetch(self._waiting, self._parts)
            self._waiting = None
        return self._arrived


class CudaLoader:
    """A :class:`tonari.shards.loading.Loader` that reads rows to a CUDA device.

    If the source is an object that computes its rows on the current CUDA device, it computes them on this device, on a
    separate stream, while the device runs the current task.
    """

    def __init__(self, source: Source, metric: str, device: str) -> None:
        self._source, self._metric = source, metric
        self._device = torch.device(device)
        self._dtype = getattr(torch, source.dtype)
        with on(self._device):
            self._stream = torch.cuda.Stream(self._device) if self._device.type == "cuda" else None
            self._feeder = Feeder(self._device)
        self._one_at_a_time = threading.Lock()  # two tasks may read at the same time: the current one and the next one

    def range(self, begin: int, end: int) -> Any:
        """Return rows [begin, end), after checking that their values are valid for the metric."""
        return self.ranges([slice(begin, end)])

    def ranges(self, parts: list[slice]) -> Any:
        """Return several ranges of rows, concatenated to one tensor in the order of the ranges."""
        with self._one_at_a_time, torch.cuda.stream(self._stream):
            out = self._empty(_rows_of(parts))
            for part, here in _placed(parts):
                self._fill(out, here.start, part)
            self._check(out, parts)
            return self._whole(out)

    def ranges_later(self, parts: list[slice]) -> Staged:
        """Read several ranges of rows into page-locked memory."""
        with self._one_at_a_time, torch.cuda.stream(self._stream):
            out = self._locked(_rows_of(parts))
            for part, here in _placed(parts):
                self._fill(out, here.start, part)
            self._wait()
        return Staged(out, self, parts)

    def at(self, ids: npt.NDArray[np.int64]) -> Any:
        """Return the rows whose ascending row numbers are `ids`; their values are not checked."""
        with self._one_at_a_time, torch.cuda.stream(self._stream):
            out = self._empty(len(ids))
            self._gather(out, ids)
            return self._whole(out)

    def at_later(self, ids: npt.NDArray[np.int64]) -> Staged:
        """Read the rows whose ascending row numbers are `ids` into page-locked memory.

        `arrive` copies them to the device.
        """
        with self._one_at_a_time, torch.cuda.stream(self._stream):
            out = self._locked(len(ids))
            self._gather(out, ids)
            self._wait()
        return Staged(out, self, [])

    def fetch(self, staged: Locked, parts: list[slice]) -> Any:
        """Copy page-locked rows to the device.

        Check their values if `parts` says which ranges of the source they are.
        """
        with on(self._device):
            out = self._empty(len(staged))
            for rows, here in staged.within(slice(0, len(staged))):
                out[here].copy_(rows, non_blocking=True)
            if parts:
                self._check(out, parts)
            if self._stream is not None:
                torch.cuda.current_stream(self._device).synchronize()
        return out

    def _fill(self, out: Any, first: int, rows: slice) -> None:
        """Read a range of the source into the rows of `out` from row `first` on.

        `out` is on the device or in host memory.
        """
        source, begin = self._source, rows.start
        if isinstance(source, FileSource):
            for part, some in source.parts(begin, rows.stop):
                self._send(some, None, out, slice(first + part.start, first + part.stop))
        else:
            for part in cut(rows.stop - begin, source.block_rows):
                some = source.rows(begin + part.start, begin + part.stop)
                self._place(some, out, slice(first + part.start, first + part.stop))

    def _gather(self, out: Any, ids: npt.NDArray[np.int64]) -> None:
        """Read the rows `ids` of the source into `out`, which is on the device or page-locked."""
        source = self._source
        if isinstance(source, FileSource):
            for part, rows, numbers in source.parts_at(ids):
                self._send(rows, numbers, out, part)
            return
        # a transformed source would have to transform whole blocks for a few of their rows
        if isinstance(source.origin, FileSource):
            for here in cut(len(ids), shards_tuning.TAKEN_AT_ONCE):
                self._place(source.take(ids[here], min(tuning.MOST_THREADS, default_threads())), out, here)
            return
        for block in cut(source.n, source.block_rows):
            low, high = np.searchsorted(ids, [block.start, block.stop]).tolist()
            if low < high:
                rows = source.rows(block.start, block.stop)
                here = ids[low:high] - block.start
                on_device = inputs.place_of(rows, "source.rows") is not None
                self._place(rows[sent_to(here, rows.device) if on_device else here], out, slice(low, high))

    def _send(self, rows: npt.NDArray[Any], ids: npt.NDArray[np.int64] | None, out: Any, here: slice) -> None:
        """Copy all rows of a mapped file, or its rows `ids`, to the rows `here` of `out`."""
        if isinstance(out, Locked):
            for target, some in out.within(here):
                self._copied(rows[some] if ids is None else rows, None if ids is None else ids[some], target)
            return
        if ids is None:
            self._feeder.send(np.ascontiguousarray(rows), out[here])
        else:
            self._feeder.gather(rows, ids, out[here])
        self._feeder.arrive()

    def _copied(self, rows: npt.NDArray[Any], ids: npt.NDArray[np.int64] | None, out: Any) -> None:
        """Copy all rows of a mapped file, or its rows `ids`, into page-locked memory by several threads."""
        target = out.view(torch.uint8).numpy().view(rows.dtype)

        def copy(part: slice) -> None:
            if ids is None:
                np.copyto(target[part], rows[part])
            else:
                np.take(rows, ids[part], axis=0, out=target[part], mode="clip")

        threads = min(tuning.MOST_THREADS, default_threads())
        # one call per thread, since every call has to wait for the interpreter's lock
        step = max(1, -(-len(target) // threads))
        Workers(threads).map(copy, cut(len(target), step))

    def close(self) -> None:
        """End the threads of the loader."""
        with self._feeder:
            pass

    def _empty(self, rows: int) -> Any:
        return torch.empty((rows, self._source.d), dtype=self._dtype, device=self._device)

    def _locked(self, rows: int) -> Locked:
        """Return page-locked memory for a number of rows."""
        return Locked(rows, self._source.d, self._source.dtype, locked=self._stream is not None)

    def _place(self, rows: Any, out: Any, here: slice) -> None:
        """Copy rows that the caller's object returned, of any library and on any device, to the rows `here` of `out`.

        If the rows are on this loader's device, the copy may still be running on return; see :meth:`_wait`.
        """
        if inputs.place_of(rows, "source.rows") is None:
            rows = over(np.ascontiguousarray(inputs.as_rows(rows, "source.rows", check_values=False)))
        rows = inputs.as_tensor(rows)
        follows = rows.is_cuda and rows.device == self._device
        if follows:
            rows.record_stream(self._stream)  # the caller's object could free its rows before the copy ends
        for target, some in out.within(here) if isinstance(out, Locked) else [(out[here], slice(None))]:
            target.copy_(rows[some], non_blocking=follows)

    def _wait(self) -> None:
        """Wait for the copies on this loader's stream."""
        if self._stream is not None:
            self._stream.synchronize()

    def _check(self, rows: Any, parts: list[slice]) -> None:
        """Raise ValueError for invalid values in `rows`; `parts` are the ranges of the source that `rows` contains."""
        nonnegative = get_metric(self._metric).nonnegative
        low, high = (float(bound) for bound in torch.aminmax(rows))
        if not (math.isfinite(low) and math.isfinite(high)) or (nonnegative and low < 0):
            for part, here in _placed(parts):
                inputs.check_values(rows[here], self._source.name, first=part.start, nonnegative=nonnegative)

    def _whole(self, out: Any) -> Any:
        """Wait for the copies into `out`, reserve its memory for the default stream too, and return `out`."""
        self._wait()
        if self._stream is not None:
            out.record_stream(torch.cuda.default_stream(self._device))
        return out


def _rows_of(parts: list[slice]) -> int:
    return sum(part.stop - part.start for part in parts)


def _placed(parts: list[slice]) -> Iterator[tuple[slice, slice]]:
    """Yield each range of the source with the slice of positions that it occupies once all ranges are concatenated."""
    at = 0
    for part in parts:
        yield part, slice(at, at := at + part.stop - part.start)
