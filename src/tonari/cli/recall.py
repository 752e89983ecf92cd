"""tonari recall: how many of the true neighbours a graph has."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from tonari import io, quality
from tonari.cli import _common
from tonari.graph import KNNGraph


@click.command()
@click.argument("graph", metavar="GRAPH", type=click.Path(path_type=Path))
@_common.file_argument("points")
@click.option("--sample", type=click.IntRange(min=1), default=1000, show_default=True, help="Rows to measure.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the draw of those rows.")
@_common.key_option
@_common.threads_option
@_common.progress_option
@_common.json_option
@_common.verbose_option
def recall(
    graph: Path,
    points: Path,
    sample: int,
    seed: int,
    key: str | None,
    threads: int | None,
    progress: bool | None,
    as_json: bool,
) -> None:
    """Measure GRAPH, a .npz file of any method, against the exact neighbours of a random sample of its rows.

    By distance, any of several tied points counts; by index, only the one that comes first. The interval is for the
    recall by distance over all rows.

    \b
    Example:
      tonari recall graph.npz points.fbin --sample 5000
    """
    made = KNNGraph.load(graph)
    measured = quality.graph_recall(
        made, io.read(points, key=key), sample=sample, seed=seed, threads=threads, progress=progress
    )
    facts = dataclasses.asdict(measured) | {"of_rows": made.n, "metric": made.metric, "seed": seed}
    text = (
        f"recall by distance  {measured.by_distance:.8g}, 95 % interval {measured.low:.8g} to {measured.high:.8g}\n"
        f"recall by index     {measured.by_index:.8g}\n"
        f"{measured.rows:,} of {made.n:,} rows, k={measured.k}, {made.metric}"
    )
    _common.emit(facts, text, as_json=as_json)
