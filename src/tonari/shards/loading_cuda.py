"""Load rows of a source as tensors on a CUDA device; a separate stream copies them while the device computes.

The rows of the next task may be kept in page-locked host memory instead, which a device reads at 50 GB/s. They then
take no memory on the device.
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
from tonari.core.slices import cut
from tonari.cuda import tuning
from tonari.cuda.copying.prefetch import Feeder
from tonari.cuda.copying.staging import empty_on_host
from tonari.cuda.devices import on, over
from tonari.metrics import get_metric
from tonari.shards.source import FileSource, Source


class Staged:
    """Rows in page-locked memory; see :class:`tonari.shards.loading.Arriving`.

    Parameters
    ----------
    rows : tensor in page-locked memory
    parts : list of slices
        The ranges of the source that these rows fill, for checks of values; empty if rows were read by number.
    """

    def __init__(self, rows: Any, loader: CudaLoader, parts: list[slice]) -> None:
        self._waiting, self._loader, self._parts = rows, loader, parts
        self._arrived: Any = None

    def arrive(self) -> Any:
        """Return the rows on the device."""
        if self._arrived is None:
            self._arrived = self._loader.fetch(self._waiting, self._parts)
            self._waiting = None
        return self._arrived


class CudaLoader:
    """:class:`tonari.shards.loading.Loader` for a device."""

    def __init__(self, source: Source, metric: str, device: str) -> None:
        self._source, self._metric = source, metric
        self._device = torch.device(device)
        self._dtype = getattr(torch, source.dtype)
        with on(self._device):
            self._stream = torch.cuda.Stream(self._device) if self._device.type == "cuda" else None
            self._feeder = Feeder(self._device)
        self._one_at_a_time = threading.Lock()  # a task may read while the next one is read

    def range(self, begin: int, end: int) -> Any:
        """Return rows [begin, end), with values that the metric accepts."""
        return self.ranges([slice(begin, end)])

    def ranges(self, parts: list[slice]) -> Any:
        """Return several ranges of rows, one after the other, as one tensor."""
        with self._one_at_a_time, torch.cuda.stream(self._stream):
            out = self._empty(_rows_of(parts))
            for part, here in _placed(parts):
                self._fill(out[here], part.start, part.stop)
                self._check(out[here], part.start)
            return self._whole(out)

    def ranges_later(self, parts: list[slice]) -> Staged:
        """Read several ranges of rows into page-locked memory."""
        with self._one_at_a_time:
            out = self._locked(_rows_of(parts))
            for part, here in _placed(parts):
                self._fill(out[here], part.start, part.stop, locked=True)
        return Staged(out, self, parts)

    def at(self, ids: npt.NDArray[np.int64]) -> Any:
        """Return the rows with these numbers, which ascend."""
        with self._one_at_a_time, torch.cuda.stream(self._stream):
            out = self._empty(len(ids))
            self._gather(out, ids)
            return self._whole(out)

    def at_later(self, ids: npt.NDArray[np.int64]) -> Staged:
        """Read the rows with these numbers, which ascend, into page-locked memory."""
        with self._one_at_a_time:
            out = self._locked(len(ids))
            self._gather(out, ids, locked=True)
        return Staged(out, self, [])

    def fetch(self, staged: Any, parts: list[slice]) -> Any:
        """Copy page-locked rows to the device, and check the values of ranges."""
        with on(self._device):
            out = self._empty(len(staged))
            out.copy_(staged, non_blocking=True)
            for part, here in _placed(parts):
                self._check(out[here], part.start)
            if self._stream is not None:
                torch.cuda.current_stream(self._device).synchronize()
        return out

    def _fill(self, out: Any, begin: int, end: int, *, locked: bool = False) -> None:
        """Read a range of rows, to the device or into page-locked memory."""
        source = self._source
        if isinstance(source, FileSource):
            for part, rows in source.parts(begin, end):
                if locked:
                    self._copied(rows, None, out[part])
                else:
                    self._feeder.send(np.ascontiguousarray(rows), out[part])
                    self._feeder.arrive()
        else:
            for part in cut(end - begin, source.block_rows):
                self._place(source.rows(begin + part.start, begin + part.stop), out[part])

    def _gather(self, out: Any, ids: npt.NDArray[np.int64], *, locked: bool = False) -> None:
        """Read rows by their numbers, to the device or into page-locked memory."""
        source = self._source
        if isinstance(source, FileSource):
            for part, rows, numbers in source.parts_at(ids):
                if locked:
                    self._copied(rows, numbers, out[part])
                else:
                    self._feeder.gather(rows, numbers, out[part])
                    self._feeder.arrive()
            return
        for block in cut(source.n, source.block_rows):
            low, high = np.searchsorted(ids, [block.start, block.stop]).tolist()
            if low < high:
                rows = source.rows(block.start, block.stop)
                here = ids[low:high] - block.start
                on_device = inputs.place_of(rows, "source.rows") is not None
                self._place(rows[torch.from_numpy(here).to(rows.device) if on_device else here], out[low:high])

    def _copied(self, rows: npt.NDArray[Any], ids: npt.NDArray[np.int64] | None, out: Any) -> None:
        """Copy rows, all or by number, into page-locked memory by several threads."""
        target = out.view(torch.uint8).numpy().view(rows.dtype)

        def copy(part: slice) -> None:
            if ids is None:
                np.copyto(target[part], rows[part])
            else:
                np.take(rows, ids[part], axis=0, out=target[part], mode="clip")

        threads = min(tuning.MOST_THREADS, default_threads())
        step = max(1, -(-len(target) // threads))  # one call each: every call waits for its turn in Python
        Workers(threads).map(copy, cut(len(target), step))

    def close(self) -> None:
        """End the threads."""
        with self._feeder:
            pass

    def _empty(self, rows: int) -> Any:
        return torch.empty((rows, self._source.d), dtype=self._dtype, device=self._device)

    def _locked(self, rows: int) -> Any:
        """Return page-locked memory."""
        return empty_on_host((rows, self._source.d), self._source.dtype, locked=self._stream is not None)

    def _place(self, rows: Any, out: Any) -> None:
        """Copy rows that an object returned, in any library and on any device."""
        if inputs.place_of(rows, "source.rows") is None:
            rows = over(np.ascontiguousarray(inputs.as_rows(rows, "source.rows", check_values=False)))
        out.copy_(inputs.as_tensor(rows))

    def _check(self, rows: Any, first: int) -> None:
        nonnegative = get_metric(self._metric).nonnegative
        low, high = (float(bound) for bound in torch.aminmax(rows))
        if not (math.isfinite(low) and math.isfinite(high)) or (nonnegative and low < 0):
            inputs.check_values(rows, self._source.name, first=first, nonnegative=nonnegative)

    def _whole(self, out: Any) -> Any:
        """Wait for the copies, and keep the memory from reuse until other work with it is done."""
        if self._stream is not None:
            self._stream.synchronize()
            out.record_stream(torch.cuda.default_stream(self._device))
        return out


def _rows_of(parts: list[slice]) -> int:
    return sum(part.stop - part.start for part in parts)


def _placed(parts: list[slice]) -> Iterator[tuple[slice, slice]]:
    """Yield ranges, each with the position of its rows."""
    at = 0
    for part in parts:
        yield part, slice(at, at := at + part.stop - part.start)
