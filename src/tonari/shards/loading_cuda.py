"""Rows of a source as tensors on a CUDA device, copied on a stream of their own beside what the device computes."""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from tonari import inputs
from tonari.core.slices import cut
from tonari.cuda.devices import on, over
from tonari.cuda.prefetch import Feeder
from tonari.metrics import get_metric
from tonari.shards.source import FileSource, Source


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
            out = self._empty(sum(part.stop - part.start for part in parts))
            at = 0
            for part in parts:
                here = out[at : (at := at + part.stop - part.start)]
                self._fill(here, part.start, part.stop)
                self._check(here, part.start)
            return self._whole(out)

    def _fill(self, out: Any, begin: int, end: int) -> None:
        source = self._source
        if isinstance(source, FileSource):
            for part, rows in source.parts(begin, end):
                self._feeder.send(np.ascontiguousarray(rows), out[part])
                self._feeder.arrive()
        else:
            for part in cut(end - begin, source.block_rows):
                self._place(source.rows(begin + part.start, begin + part.stop), out[part])

    def at(self, ids: npt.NDArray[np.int64]) -> Any:
        """Return the rows with these numbers, which ascend."""
        source = self._source
        with self._one_at_a_time, torch.cuda.stream(self._stream):
            out = self._empty(len(ids))
            if isinstance(source, FileSource):
                for part, rows, numbers in source.parts_at(ids):
                    self._feeder.gather(rows, numbers, out[part])
                    self._feeder.arrive()
            else:
                for block in cut(source.n, source.block_rows):
                    low, high = np.searchsorted(ids, [block.start, block.stop]).tolist()
                    if low < high:
                        rows = source.rows(block.start, block.stop)
                        here = ids[low:high] - block.start
                        on_device = inputs.place_of(rows, "source.rows") is not None
                        self._place(rows[torch.from_numpy(here).to(rows.device) if on_device else here], out[low:high])
            return self._whole(out)

    def close(self) -> None:
        """End the threads."""
        with self._feeder:
            pass

    def _empty(self, rows: int) -> Any:
        return torch.empty((rows, self._source.d), dtype=self._dtype, device=self._device)

    def _place(self, rows: Any, out: Any) -> None:
        """Copy rows that an object made, which may be anywhere."""
        if inputs.place_of(rows, "source.rows") is None:
            rows = over(np.ascontiguousarray(inputs.as_rows(rows, "source.rows", check_values=False)))
        out.copy_(inputs.as_tensor(rows))

    def _check(self, rows: Any, first: int) -> None:
        nonnegative = get_metric(self._metric).nonnegative
        low, high = (float(bound) for bound in torch.aminmax(rows))
        if not (math.isfinite(low) and math.isfinite(high)) or (nonnegative and low < 0):
            inputs.check_values(rows, self._source.name, first=first, nonnegative=nonnegative)

    def _whole(self, out: Any) -> Any:
        """Wait for the copies; the memory is not used anew before other work with it is done."""
        if self._stream is not None:
            self._stream.synchronize()
            out.record_stream(torch.cuda.default_stream(self._device))
        return out
