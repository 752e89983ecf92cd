"""Write the neighbours of a stream of queries to a file, in bounded memory; an interrupted run can be resumed."""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path

from tonari.core.process.progress import ProgressLike
from tonari.core.trail import recording
from tonari.streams.chunks import Source
from tonari.streams.journal import search_facts
from tonari.streams.output import Output
from tonari.streams.pipeline import Pipeline
from tonari.streams.searching import Searcher, answers, pace_of, progress_of

logger = logging.getLogger("tonari")


def write_neighbors(
    source: Source, index: Searcher, k: int, out: Path, *, resume: bool, overwrite: bool, progress: ProgressLike
) -> None:
    """Write the k nearest points of each query to a file while later queries are searched."""
    assert source.rows is not None
    search = search_facts(index, source.rows, k)
    with (
        Output(out, search, source.rows, k, source.array, resume=resume, overwrite=overwrite) as output,
        recording("search_to_file", source.rows) as record,
    ):
        if output.record is not None:
            record.add(dataclasses.replace(output.record, rows=0))
        if output.rows:
            record.decided("resumed", f"{output.rows:,} of {source.rows:,} queries were on the disk")
        _stream(source, index, k, output, progress)
        output.finish()
    logger.info("%s", record)


def _stream(source: Source, index: Searcher, k: int, output: Output, progress: ProgressLike) -> None:
    pace = pace_of(index, source, k)
    with Pipeline() as pipeline, progress_of(progress, source.rows, output.rows) as bar:
        first = 0 if source.array is None else output.rows
        pieces = source.chunks(index.d, pace, pipeline, first=first)
        chunks = pipeline.prefetch(output.to_do(pieces, first=first), "read", foreign=True)
        found = pipeline.prefetch(answers(index, chunks, k, pace, pipeline, bar), "search")
        for _ in pipeline.prefetch(output.written(found), "write"):
            pass
