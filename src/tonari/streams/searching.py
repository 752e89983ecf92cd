"""Search a stream of queries in an Index; the next chunk is searched while the caller uses the last answer."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.core.process.progress import Progress, ProgressLike
from tonari.core.results.neighbors import Neighbors, no_neighbors, value_dtype
from tonari.core.results.radius_neighbors import RadiusNeighbors, none_within
from tonari.core.trail import current, part
from tonari.metrics import get_metric
from tonari.streams import tuning
from tonari.streams.chunks import Chunk, Pace, Source, planned_rows
from tonari.streams.pipeline import Pipeline

Found = TypeVar("Found", Neighbors, RadiusNeighbors)


class Base(Protocol):
    """The properties of :class:`tonari.Index` that every search of a stream uses."""

    d: int
    metric: str
    weights: tuple[float, ...] | None
    transform: npt.NDArray[np.float64] | None

    @property
    def dtype(self) -> str:
        """The dtype of the rows that are compared."""

    @property
    def n(self) -> int:
        """The number of points."""

    @property
    def points(self) -> Any:
        """The checked points."""


class Searcher(Base, Protocol):
    """The properties and methods of :class:`tonari.Index` that a search of a stream for the k nearest uses."""

    @property
    def devices(self) -> tuple[str, ...]:
        """The CUDA devices; empty on the CPU."""

    @property
    def memory(self) -> int | None:
        """The memory budget in bytes, if there is one."""

    def search(self, queries: Any, k: int, *, progress: ProgressLike = None) -> Neighbors:
        """Find the k nearest points of every query."""


def search_chunks(
    index: Searcher,
    queries: Any,
    k: int,
    *,
    rows: int | None = None,
    chunk_rows: int | None = None,
    progress: ProgressLike = None,
) -> Iterator[Neighbors]:
    """Yield the neighbours of each chunk of queries; see :meth:`tonari.Index.search_chunks`."""
    source = Source(queries, rows=rows, chunk_rows=chunk_rows)
    k = inputs.check_k(k, index.n, without_self=False)
    return _search_chunks(index, source, k, progress)


def _search_chunks(index: Searcher, source: Source, k: int, progress: ProgressLike) -> Iterator[Neighbors]:
    pace = pace_of(index, source, k)
    with Pipeline() as pipeline, progress_of(progress, source.rows) as bar:
        chunks = pipeline.prefetch(source.chunks(index.d, pace, pipeline), "read", foreign=True)
        for answer in pipeline.prefetch(answers(index, chunks, k, pace, pipeline, bar), "search"):
            found = answer.found
            del answer
            yield found
            del found  # drops the reference before the next chunk is searched


class Answer(NamedTuple):
    """The neighbours of the queries in one chunk, and the facts that a journal records about them.

    Attributes
    ----------
    first : int
        The row of the stream at which the chunk begins.
    found : Neighbors
    sample : str
        The digest of the stream up to the end of the chunk.
    record : dict, optional
        The record of the call up to this chunk, as plain values for JSON; None if the call is not recorded.
    """

    first: int
    found: Neighbors
    sample: str
    record: dict[str, Any] | None = None


def pace_of(index: Searcher, source: Source, k: int) -> Pace:
    """Return the pace of a source, which chooses the number of rows of each chunk."""
    if source.chunk_rows is not None:
        return Pace(source.chunk_rows, fixed=True)
    if source.array is None:  # the chunks of an iterable are its arrays
        return Pace(1, fixed=True)
    return Pace(planned_rows(source.row_bytes, k, None if index.devices else index.memory), fixed=False)


def progress_of(wanted: ProgressLike, rows: int | None, done: int = 0) -> Progress:
    """Return a progress counter for queries; `done` queries are already finished."""
    return Progress(wanted, total=rows or 0, seconds=None, label="neighbours", unit="query", done=done)


def answers(
    index: Searcher, chunks: Iterable[Chunk], k: int, pace: Pace, pipeline: Pipeline, bar: Progress
) -> Iterator[Answer]:
    """Search each chunk, and yield its answer, in order."""
    for chunk in chunks:
        pipeline.check()
        started, record = time.perf_counter(), current.get()
        with part("search", len(chunk.rows)):
            found = _answer(index, chunk, k, pipeline, bar)
        answer = Answer(chunk.first, found, chunk.sample, None if record is None else record.as_dict())
        pace.note(len(chunk.rows), time.perf_counter() - started)
        del found
        del chunk
        yield answer
        del answer


def _answer(index: Searcher, chunk: Chunk, k: int, pipeline: Pipeline, bar: Progress) -> Neighbors:
    def find(rows: Any, progress: ProgressLike) -> Neighbors:
        return index.search(rows, k, progress=progress)

    def none(value: str) -> Neighbors:
        return no_neighbors(k, index.n, value)

    return answer_of(index, chunk, find, none, pipeline, bar)


def answer_of(
    index: Base,
    chunk: Chunk,
    find: Callable[[Any, ProgressLike], Found],
    none: Callable[[str], Found],
    pipeline: Pipeline,
    bar: Progress,
) -> Found:
    """Search a chunk with `find`, and return the answer in the library of the chunk's rows.

    Parameters
    ----------
    find : callable(rows, progress)
        Searches the rows of a chunk.
    none : callable(dtype)
        Returns the answer to a chunk without rows, given the dtype of distances.
    """
    if len(chunk.rows) == 0:
        found = none(value_dtype(inputs.name_of_dtype(chunk.rows), index.dtype))
    else:
        counted = Counted(len(chunk.rows), pipeline, bar)
        try:
            found = find(chunk.rows, counted)
        except ValueError:
            # The search reports row numbers within the chunk; messages for the caller need row numbers in the stream.
            nonnegative = get_metric(index.metric).nonnegative
            inputs.check_values(chunk.rows, "queries", first=chunk.first, nonnegative=nonnegative)
            raise
        counted.count(len(chunk.rows))
    return type(found)(*(inputs.hand_back(part, chunk.side) for part in found))


class Counted:
    """The progress callback for the search of one chunk.

    It counts queries, and ends the search if the pipeline is stopped.
    """

    def __init__(self, rows: int, pipeline: Pipeline, bar: Progress) -> None:
        self._rows, self._pipeline, self._bar = rows, pipeline, bar
        self._seen = 0

    def __call__(self, done: int, total: int) -> None:
        self._pipeline.check()
        self.count(self._rows * done // max(1, total))

    def count(self, queries: int) -> None:
        amount = min(queries, self._rows) - self._seen
        if amount > 0:
            self._seen += amount
            self._bar.add(amount)


Find = Callable[[Any, ProgressLike], RadiusNeighbors]  # the search of one chunk: (queries, progress) -> result


def radius_chunks(
    index: Base, queries: Any, find: Find, *, rows: int | None, chunk_rows: int | None, progress: ProgressLike
) -> Iterator[RadiusNeighbors]:
    """Yield the result of a radius search for each chunk of queries; see :meth:`tonari.Index.radius_chunks`."""
    source = Source(queries, rows=rows, chunk_rows=chunk_rows)
    pace = Pace(chunk_rows or min(tuning.RADIUS_FIRST_ROWS, max(1, source.rows or 1)), fixed=True)
    return _chunks(index, source, find, pace, progress)


def _chunks(index: Base, source: Source, find: Find, pace: Pace, progress: ProgressLike) -> Iterator[RadiusNeighbors]:
    with Pipeline() as pipeline, progress_of(progress, source.rows) as bar:
        chunks = pipeline.prefetch(source.chunks(index.d, pace, pipeline), "read", foreign=True)
        for found in pipeline.prefetch(_answers(index, chunks, find, source, pace, pipeline, bar), "search"):
            yield found
            del found  # drops the reference before the next chunk is searched


def _answers(
    index: Base,
    chunks: Iterator[Chunk],
    find: Find,
    source: Source,
    pace: Pace,
    pipeline: Pipeline,
    bar: Progress,
) -> Iterator[RadiusNeighbors]:
    for chunk in chunks:
        pipeline.check()
        started = time.perf_counter()
        found = answer_of(index, chunk, find, functools.partial(none_within, index.n), pipeline, bar)
        if source.chunk_rows is None:
            pace.rows = _next_rows(len(chunk.rows), len(found.indices), time.perf_counter() - started)
        del chunk
        yield found
        del found


def _next_rows(rows: int, found: int, seconds: float) -> int:
    """Return the number of rows of the next chunk, limited by the neighbours and the time that it is expected to take.

    >>> _next_rows(4096, 4096 * 100, 0.01), _next_rows(4096, 4096 * 100_000, 0.01)
    (83886, 83)
    """
    fitting = min(tuning.RADIUS_NEIGHBORS * rows // max(1, found), int(10 * rows / max(seconds, 1e-3)))
    return max(1, min(fitting, tuning.RADIUS_MOST_ROWS))
