"""Search a stream of queries for all neighbours within a radius in an Index, chunk by chunk."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from typing import Any

from tonari.core.process.progress import Progress, ProgressLike
from tonari.core.results.radius_neighbors import RadiusNeighbors, none_within
from tonari.streams import tuning
from tonari.streams.chunks import Chunk, Pace, Source
from tonari.streams.pipeline import Pipeline
from tonari.streams.searching import Base, answer_of, progress_of

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
