"""Chunks of queries: an array or a file cut into them, or an iterable's own."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tonari import inputs, io
from tonari.inputs.arguments import check_whole
from tonari.inputs.rows import check_shape
from tonari.streams.pipeline import Flow

# Queries and results of a chunk. Large enough that what a search costs by itself vanishes, small beside any memory.
CHUNK_BYTES = 128 << 20
LEAST_ROWS = 256  # a kernel's block of queries
# A chunk is what a killed process loses, so slow searches have small ones. How slow one is, the first chunk tells.
CHUNK_SECONDS = 10.0
_FIRST_ROWS = 8192
_GROWTH = 8


@dataclass(frozen=True)
class Chunk:
    """Consecutive queries of a stream.

    Attributes
    ----------
    number : int
        From 0.
    first : int
        Row of the stream at which it begins.
    rows : array of shape (m, d)
        In host memory C-contiguous and checked but for the values; m may be 0.
    side : Side
        What the results are to be.
    sample : str
        What a journal knows the stream by, up to the end of this chunk.
    """

    number: int
    first: int
    rows: Any
    side: inputs.Side
    sample: str = ""

    @property
    def last(self) -> int:
        """The row after it."""
        return self.first + len(self.rows)

    @property
    def name(self) -> str:
        """For messages."""
        rows = f"rows {self.first} to {self.last - 1}" if len(self.rows) else f"no rows, at row {self.first}"
        return f"queries, chunk {self.number} ({rows})"


class Pace:
    """How many rows the next chunk of an array has.

    Parameters
    ----------
    most : int
        What memory allows.
    fixed : bool
        Whether that is what the caller wants. Else the first chunks are small, and none is to take much over
        `CHUNK_SECONDS`.
    """

    def __init__(self, most: int, *, fixed: bool) -> None:
        self.most = most
        self.rows = most if fixed else min(most, _FIRST_ROWS)
        self._fixed = fixed

    def note(self, rows: int, seconds: float) -> None:
        """Learn from a chunk that was searched."""
        if not self._fixed and seconds > 0:
            fitting = int(rows / seconds * CHUNK_SECONDS)
            self.rows = min(self.most, max(LEAST_ROWS, min(fitting, _GROWTH * rows)))


class Source:
    """Queries as they were given: an array, the path of a file, or an iterable of arrays.

    Parameters
    ----------
    queries : array of shape (m, d), path, or iterable of arrays of shape (*, d)
    rows : int, optional
        How many queries an iterable holds, where it cannot tell itself.
    chunk_rows : int, optional
        Rows per chunk of an array or file.
    """

    def __init__(self, queries: Any, *, rows: int | None = None, chunk_rows: int | None = None) -> None:
        for name, value in (("rows", rows), ("chunk_rows", chunk_rows)):
            if value is not None:
                check_whole(name, value, least=1)
        if isinstance(queries, str | os.PathLike):
            queries = io.read(queries)
        self.array: Any = None
        self.rows, self.chunk_rows = rows, chunk_rows
        if hasattr(queries, "shape") and hasattr(queries, "dtype"):
            check_shape(tuple(queries.shape), "queries")
            if rows not in (None, len(queries)):
                raise ValueError(f"rows={rows}: the queries have {len(queries)} rows; leave rows out")
            self.array, self.rows = queries, len(queries)
        elif not isinstance(queries, Iterable):
            kind = type(queries).__name__
            raise TypeError(f"queries: expected an array, a path or an iterable of arrays, got {kind}")
        elif chunk_rows is not None:
            raise ValueError(f"chunk_rows={chunk_rows}: the chunks of an iterable are searched as they come")
        elif rows is None and isinstance(queries, list | tuple) and all(hasattr(part, "shape") for part in queries):
            self.rows = sum(map(len, queries))
        self._given: Iterable[Any] = queries

    @property
    def row_bytes(self) -> int:
        """Bytes of one query of an array."""
        return int(self.array.shape[1]) * inputs.dtype_of(inputs.name_of_dtype(self.array)).itemsize

    def chunks(self, width: int, pace: Pace, flow: Flow, *, first: int = 0) -> Iterator[Chunk]:
        """Chunks of rows that are `width` wide; an array's from row `first` on, an iterable's from its beginning."""
        parts = self._cut(pace, first) if self.array is not None else iter(self._given)
        # What is in memory for good is searched where it is. A map is read here, while others are searched; and an
        # iterator may fill the same buffer again.
        copies = self.array is None or isinstance(self.array, np.memmap)
        at = first
        for number in itertools.count():
            flow.check()
            try:
                part = next(parts)
            except StopIteration:
                return
            chunk = _checked(part, number, at, width, copies=copies)
            at = chunk.last
            yield chunk
            del part, chunk  # a chunk lives as long as its search, not until the next one is there

    def _cut(self, pace: Pace, first: int) -> Iterator[Any]:
        while first < len(self.array):
            part = self.array[first : first + pace.rows]
            first += len(part)
            yield part


def _checked(part: Any, number: int, first: int, width: int, *, copies: bool) -> Chunk:
    """A chunk that can be searched; an error names it."""
    name = f"queries, chunk {number} (from row {first} on)"
    side = inputs.side_of(part, name)
    shape = tuple(getattr(part, "shape", ()))
    if len(shape) == 2 and shape[0] == 0:
        rows = part  # nothing to check but its width
    elif side.place is not None:
        rows = inputs.as_device_rows(part, name)
        rows = rows.clone() if copies else rows
    else:
        rows = inputs.as_rows(part, name, check_values=False)
        rows = np.array(rows) if copies else rows
    chunk = Chunk(number, first, rows, side)
    if rows.shape[1] != width:
        raise ValueError(f"{chunk.name}: expected {width} columns, as the points have, got shape {tuple(rows.shape)}")
    return chunk


def planned_rows(query_bytes: int, k: int, memory: int | None) -> int:
    """Rows per chunk of an array.

    Two chunks of queries and two of results are held at a time. Where a search is to keep a budget, its chunks are an
    eighth of it, so that the results of one fit beside what is searched.

    >>> planned_rows(40, 10, None)
    1118481
    """
    budget = CHUNK_BYTES if memory is None else min(CHUNK_BYTES, memory // 8)
    return max(LEAST_ROWS if memory is None else 1, budget // (query_bytes + 8 * k))
