"""Cut a stream of queries into chunks; of an iterable of arrays, each array is a chunk."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tonari import inputs, io
from tonari.inputs.arguments import check_whole
from tonari.inputs.arrays.rows import check_shape
from tonari.io.points import dtype_without_rows, no_rows
from tonari.streams import tuning
from tonari.streams.pipeline import Pipeline

LEAST_ROWS = 256  # minimum number of rows per chunk: one block of queries in a kernel


@dataclass(frozen=True)
class Chunk:
    """Consecutive queries of a stream.

    Attributes
    ----------
    number : int
        The position of the chunk in the stream, counted from 0.
    first : int
        The row of the stream at which the chunk begins.
    rows : array of shape (m, d)
        The queries, checked except for their values; C-contiguous if in host memory. m may be 0.
    side : Side
        The library and the device that the results must have.
    sample : str
        The digest of the stream up to the end of this chunk, which identifies the stream in a journal.
    """

    number: int
    first: int
    rows: Any
    side: inputs.Side
    sample: str = ""

    @property
    def last(self) -> int:
        """The row number in the stream that follows the last row of this chunk."""
        return self.first + len(self.rows)

    @property
    def name(self) -> str:
        """The name of the chunk in error messages."""
        rows = f"rows {self.first} to {self.last - 1}" if len(self.rows) else f"no rows, at row {self.first}"
        return f"queries, chunk {self.number} ({rows})"


class Pace:
    """Chooses the number of rows of the next chunk of an array.

    Parameters
    ----------
    most : int
        The largest number of rows per chunk: as many as memory allows, or as many as the caller requested.
    fixed : bool
        Whether all chunks have `most` rows, because the caller requested it. Otherwise the first chunks are small, and
        later ones are expected to take at most about `CHUNK_SECONDS` each.
    """

    def __init__(self, most: int, *, fixed: bool) -> None:
        self.most = most
        self.rows = most if fixed else min(most, tuning.FIRST_ROWS)
        self._fixed = fixed

    def note(self, rows: int, seconds: float) -> None:
        """Adapt the number of rows to the time that the last chunk took."""
        if not self._fixed and seconds > 0:
            fitting = int(rows / seconds * tuning.CHUNK_SECONDS)
            self.rows = min(self.most, max(LEAST_ROWS, min(fitting, tuning.GROWTH * rows)))


class Source:
    """The queries as the caller passes them: an array, the path of a file, or an iterable of arrays.

    Parameters
    ----------
    queries : array of shape (m, d), path, or iterable of arrays of shape (*, d)
    rows : int, optional
        The total number of queries, for an iterable without a length.
    chunk_rows : int, optional
        The number of rows per chunk of an array or file. Default: chosen while the stream is searched.
    """

    def __init__(self, queries: Any, *, rows: int | None = None, chunk_rows: int | None = None) -> None:
        for name, value, least in (("rows", rows, 0), ("chunk_rows", chunk_rows, 1)):
            if value is not None:
                check_whole(name, value, least=least)
        self._without_rows: Path | None = None  # path of a file without rows and without a number of columns
        if isinstance(queries, str | os.PathLike):
            path = Path(queries)
            if dtype_without_rows(path) is None:
                queries = io.read(path)
            else:
                self._without_rows = path
        self.array: Any = None
        self.rows, self.chunk_rows = rows, chunk_rows
        if self._without_rows is not None:
            if rows not in (None, 0):
                raise ValueError(f"rows={rows}: the queries have 0 rows; leave rows out")
            self.rows = 0
        elif hasattr(queries, "shape") and hasattr(queries, "dtype"):
            check_shape(tuple(queries.shape), "queries")
            if rows not in (None, len(queries)):
                raise ValueError(f"rows={rows}: the queries have {len(queries)} rows; leave rows out")
            self.array, self.rows = queries, len(queries)
        elif not isinstance(queries, Iterable):
            kind = type(queries).__name__
            raise TypeError(f"queries: expected an array, a path or an iterable of arrays, got {kind}")
        elif chunk_rows is not None:
            raise ValueError(f"chunk_rows={chunk_rows}: an iterable has its own chunks; leave chunk_rows out")
        elif rows is None and isinstance(queries, list | tuple) and all(hasattr(part, "shape") for part in queries):
            self.rows = sum(map(len, queries))
        self._given: Iterable[Any] = queries

    @property
    def row_bytes(self) -> int:
        """The size of one query in bytes, if the queries are an array."""
        return int(self.array.shape[1]) * inputs.dtype_of(inputs.name_of_dtype(self.array)).itemsize

    def chunks(self, width: int, pace: Pace, pipeline: Pipeline, *, first: int = 0) -> Iterator[Chunk]:
        """Yield chunks of `width` columns: from row `first` of an array on, or the whole of an iterable."""
        arrays = self._given if self._without_rows is None else [no_rows(self._without_rows, width)]
        parts = self._cut(pace, first) if self.array is not None else iter(arrays)
        # An array in memory is searched in place. A memory map is copied here, so that it is read while another chunk
        # is searched. The arrays of an iterable are copied, because the iterable may reuse its buffer.
        copies = self.array is None or isinstance(self.array, np.memmap)
        at = first
        for number in itertools.count():
            pipeline.check()
            try:
                part = next(parts)
            except StopIteration:
                return
            chunk = _checked(part, number, at, width, copies=copies)
            at = chunk.last
            yield chunk
            del part, chunk  # drops the reference: otherwise the chunk would stay in memory until the next one arrives

    def _cut(self, pace: Pace, first: int) -> Iterator[Any]:
        if not len(self.array):
            yield self.array  # A single chunk without rows, so that its width is checked; the answer to it is empty.
        while first < len(self.array):
            part = self.array[first : first + pace.rows]
            first += len(part)
            yield part


def _checked(part: Any, number: int, first: int, width: int, *, copies: bool) -> Chunk:
    """Check a part of the stream, and return it as a chunk; error messages contain the name of the chunk."""
    name = f"queries, chunk {number} (from row {first} on)"
    side = inputs.side_of(part, name)
    shape = tuple(getattr(part, "shape", ()))
    if len(shape) == 2 and -(-shape[1] // 8) == width and inputs.name_of_dtype(part) == "bool":
        # The search itself packs rows of bits.
        return Chunk(number, first, part.copy() if copies and isinstance(part, np.ndarray) else part, side)
    if len(shape) == 2 and shape[0] == 0:
        rows = part  # only the width needs a check
    elif side.place is not None:
        rows = inputs.as_device_rows(part, name)
        rows = rows.clone() if copies else rows
    else:
        rows = inputs.as_rows(part, name, check_values=False)
        rows = np.array(rows) if copies else rows
    chunk = Chunk(number, first, rows, side)
    if rows.shape[1] != width:
        raise ValueError(f"{chunk.name}: expected {width} columns like the points, got shape {tuple(rows.shape)}")
    return chunk


def planned_rows(query_bytes: int, k: int, memory: int | None) -> int:
    """Choose the largest number of rows per chunk of an array.

    Two chunks of queries and two of results are in memory at once. If there is a memory budget, a chunk takes at most
    an eighth of it, which leaves enough for the search itself.

    >>> planned_rows(40, 10, None)
    1118481
    """
    budget = tuning.CHUNK_BYTES if memory is None else min(tuning.CHUNK_BYTES, memory // 8)
    return max(LEAST_ROWS if memory is None else 1, budget // (query_bytes + 8 * k))
