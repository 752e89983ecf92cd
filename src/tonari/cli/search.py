"""tonari search: from files of points and queries to a file with the nearest points of every query."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click
import numpy as np

from tonari import api, io
from tonari.api import search_to_file
from tonari.cli import _common
from tonari.io._atomic import atomic
from tonari.io.ground_truth import HDF5_SUFFIXES
from tonari.streams.output import kept


@click.command()
@_common.file_argument("points")
@_common.file_argument("queries")
@_common.k_option
@_common.output_option(".npz (arrays indices and distances) or .ibin (Big-ANN ground truth, distances in float32)")
@_common.metric_option
@_common.method_option
@_common.key_option
@click.option("--queries-key", help='Name of the array in QUERIES, if it is .npz or HDF5; default in HDF5: "test".')
@_common.device_option
@_common.threads_option
@_common.memory_option
@_common.progress_option
@_common.json_option
@_common.verbose_option
def search(
    points: Path,
    queries: Path,
    k: int,
    output: Path,
    force: bool,
    metric: str,
    method: str,
    key: str | None,
    queries_key: str | None,
    device: str | list[str],
    threads: int | None,
    memory: int | None,
    progress: bool | None,
    as_json: bool,
) -> None:
    """Find the k nearest POINTS of each of the QUERIES.

    Equal distances are ordered by row number.

    An .ibin file is written chunk by chunk while other queries are read and searched, so there may be more queries
    than fit in memory. Until it is complete it is named OUT.part; after an interruption the same command resumes where
    it stopped, and --force starts over.

    \b
    Example:
      tonari search base.u8bin queries.u8bin -k 100 -o truth.ibin
    """
    output = _common.check_output(output, (".npz", ".ibin"), inputs=(points, queries), force=force)
    if queries_key is None and queries.suffix.lower() in HDF5_SUFFIXES:
        queries_key = "test"  # the name in ann-benchmarks; the reader's default, "train", would be the points again
    started = time.perf_counter()
    base, asked = io.read(points, key=key), io.read(queries, key=queries_key)
    options: dict[str, Any] = {
        "metric": metric,
        "method": method,
        "device": device,
        "threads": threads,
        "memory": memory,
    }
    if output.suffix.lower() == ".ibin":
        try:
            with _common.warnings_as_lines():
                search_to_file(asked, base, k, output, resume=not force, progress=progress, **options)
        except KeyboardInterrupt:
            _tell_what_is_kept(output, len(asked), force=force)
            raise
    else:
        found = api.search(asked, base, k, progress=progress, **options)
        with atomic(output) as file:
            np.savez(file, indices=found.indices, distances=found.distances)
    seconds = time.perf_counter() - started
    size = output.stat().st_size
    facts = {
        "output": str(output),
        "rows": len(asked),
        "points": len(base),
        "k": k,
        "metric": metric,
        "seconds": seconds,
        "bytes": size,
    }
    text = (
        f"{len(asked):,} queries in {len(base):,} points, k={k}, {metric}, in {seconds:.3g} s\n"
        f"wrote {click.format_filename(output)}, {size:,} bytes"
    )
    _common.emit(facts, text, as_json=as_json)


def _tell_what_is_kept(output: Path, rows: int, *, force: bool) -> None:
    part, done = kept(output)
    if done:
        how = "the same command without --force" if force else "the same command"
        click.echo(f"tonari: {done:,} of {rows:,} queries are in {part.name}; {how} resumes from there", err=True)
