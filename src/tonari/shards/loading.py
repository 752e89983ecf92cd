"""Load rows of a source for a worker: as NumPy arrays, or as tensors on its device (``loading_cuda.py``)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.metrics import get_metric
from tonari.shards.source import Source
from tonari.streams.pipeline import Pipeline


class Arriving(Protocol):
    """Rows that are read ahead for the next task, outside of the memory of the current task."""

    def arrive(self) -> Any:
        """Return the rows on the worker's device; this is called again if a task is repeated."""


class Arrived:
    """Rows that are already on the worker's device."""

    def __init__(self, rows: Any) -> None:
        self._rows = rows

    def arrive(self) -> Any:
        return self._rows


class Share:
    """The rows of one task among rows that were read for several tasks together.

    The rows of all these tasks stay on the device until the last task drops its share.

    Parameters
    ----------
    waiting : Arriving
    places : int64 array
        The positions of this task's rows among all rows that are waiting.
    """

    def __init__(self, waiting: Arriving, places: npt.NDArray[np.int64]) -> None:
        self._waiting, self._places = waiting, places

    def arrive(self) -> Any:
        return inputs.rows_at(self._waiting.arrive(), self._places)


class Loader(Protocol):
    """Reads rows of a source for one worker, whose threads may all call it."""

    def range(self, begin: int, end: int) -> Any:
        """Return rows [begin, end) of the source."""

    def ranges(self, parts: list[slice]) -> Any:
        """Return several ranges of rows, concatenated to one array in the order of the ranges."""

    def at(self, ids: npt.NDArray[np.int64]) -> Any:
        """Return the rows whose ascending row numbers are `ids`."""

    def ranges_later(self, parts: list[slice]) -> Arriving:
        """Start to read several ranges of rows into host memory; `arrive` of the result returns them."""

    def at_later(self, ids: npt.NDArray[np.int64]) -> Arriving:
        """Start to read the rows whose ascending row numbers are `ids` into host memory.

        `arrive` of the result returns them.
        """

    def close(self) -> None:
        """End the loader's threads."""


class HostLoader:
    """Reads rows into host memory.

    Checks the values of rows that are read by ranges, but not of rows read by row number.
    """

    def __init__(self, source: Source, metric: str, threads: int) -> None:
        self._source, self._metric, self._threads = source, metric, threads

    def range(self, begin: int, end: int) -> npt.NDArray[Any]:
        return self.ranges([slice(begin, end)])

    def ranges(self, parts: list[slice]) -> npt.NDArray[Any]:
        source = self._source
        out = np.empty((sum(part.stop - part.start for part in parts), source.d), inputs.dtype_of(source.dtype))
        at = 0
        for part in itertools.chain.from_iterable(source.pieces(part.start, part.stop) for part in parts):
            here = out[at : (at := at + part.stop - part.start)]
            here[:] = inputs.as_rows(
                inputs.to_host(source.rows(part.start, part.stop)), source.name, check_values=False
            )
            inputs.check_held_values(
                here, source.name, first=part.start, nonnegative=get_metric(self._metric).nonnegative
            )
        return out

    def at(self, ids: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        return self._source.take(ids, self._threads)

    def ranges_later(self, parts: list[slice]) -> Arriving:
        return Arrived(self.ranges(parts))

    def at_later(self, ids: npt.NDArray[np.int64]) -> Arriving:
        return Arrived(self.at(ids))

    def close(self) -> None:
        """Do nothing: this loader has no threads."""


def loader_for(source: Source, metric: str, threads: int, device: str) -> Loader:
    """Return the loader of a worker: for host memory or for its CUDA device."""
    if device == "cpu":
        return HostLoader(source, metric, threads)
    from tonari.shards.loading_cuda import CudaLoader

    return CudaLoader(source, metric, device)


def blocks(load: Loader, parts: list[slice], *, ahead: bool) -> Iterator[tuple[slice, Any]]:
    """Yield each range with its rows; with `ahead`, the next rows are read while the caller uses the current ones.

    The caller must drop the rows of a range before it asks for the next range, so that memory suffices.
    """
    read = ((part, load.range(part.start, part.stop)) for part in parts)
    if not ahead:
        yield from read
        return
    with Pipeline() as pipeline:
        yield from pipeline.prefetch(read, "read", foreign=True)
