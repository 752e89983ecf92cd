"""tonari verify: compare neighbours found by any program with the exact neighbours."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import click

from tonari import io
from tonari.api import verifying
from tonari.cli import _common, _options
from tonari.cli._directories import load_graph, refuse
from tonari.cli._points import Inputs, inputs_option
from tonari.core.errors import Unsupported
from tonari.graph.lists import refuse_filtered
from tonari.io.filtered import filters_in, in_words
from tonari.io.neighbors.ground_truth import HDF5_SUFFIXES

_WHY = "compare it with tonari.knn_graph by the same filters, as by graph.overlap(other)"


@click.command()
@_options.file_argument("found")
@_options.file_argument("points")
@click.argument("queries", metavar="[QUERIES]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--distances",
    metavar="FILE.npy",
    type=click.Path(path_type=Path),
    help="The distances of FOUND, if it is a .npy file of row numbers.",
)
@click.option("--sample", type=click.IntRange(min=1), default=1000, show_default=True, help="Rows of FOUND to compare.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the random choice of rows."
)
@click.option(
    "--metric",
    metavar="METRIC",
    callback=_options.named_metric,
    help=f"Metric of FOUND; a graph records its own. One of {_options.METRIC_NAMES}.  [default: euclidean]",
)
@_options.columns_options
@_options.key_option
@inputs_option
@click.option("--queries-key", help="Name of the array in QUERIES, if it is .npz or HDF5.")
@_options.work_options
@click.pass_context
def verify(
    context: click.Context,
    /,
    found: Path,
    points: Path,
    queries: Path | None,
    distances: Path | None,
    sample: int,
    seed: int,
    metric: str | None,
    key: str | None,
    queries_key: str | None,
    device: str | list[str],
    threads: int | None,
    memory: int | None,
    progress: bool | None,
    as_json: bool,
    read: Inputs,
    **options: Any,
) -> None:
    """Compare the neighbours in FOUND with the exact ones among the POINTS, on a random sample of rows.

    FOUND has a list for each of the QUERIES; without QUERIES, for each of the POINTS, which is then not its own
    neighbour. It is a .npy file of row numbers, a file of neighbours (.ibin, .npz, .hdf5), or a graph of tonari.

    \b
    Example:
      tonari verify found.npy base.npy queries.npy --distances distances.npy --metric sqeuclidean
      tonari verify graph.npz points.fbin
    """
    columns = _options.with_columns(options)
    read.check([points] if queries is None else [points, queries])
    if found.suffix.lower() == ".npy":
        lists = _options.read_array(found), None if distances is None else _options.read_array(distances)
    else:
        refuse(context, ("distances",), f"{found} has its own distances; leave this option out")
        if _common.kind_of(found) == "graph":
            alone = f"{found} is a graph, which records its metric; leave this option out"
            refuse(context, ("metric", *_options.COLUMNS), alone)
            if queries is not None:
                message = f"{found} is a graph of its points; leave {queries} out"
                raise click.UsageError(message, context)
            graph = load_graph(found)
            refuse_filtered(graph.filters, str(found), _WHY)
            first = int(graph.lists.include_self)
            lists, metric = (graph.indices[:, first:], graph.distances[:, first:]), graph.metric
            columns = {"weights": graph.weights, "transform": graph.transform}
        else:
            if found.suffix.lower() in (*HDF5_SUFFIXES, ".npz") and (filters := filters_in(found)):
                raise Unsupported(
                    f"{found}: was found with {in_words(filters)}, so its lists leave out points that are nearer than "
                    "its neighbours, expected neighbours among all points; compare it with the result of the same "
                    "filters, as by tonari recall"
                )
            neighbors = io.read_ground_truth(found)
            lists = neighbors.indices, neighbors.distances
    base = read.read(points, key)
    report = verifying.verify(
        None if queries is None else read.read_queries(queries, queries_key, base),
        base,
        *lists,
        metric=metric or "euclidean",
        **columns,
        sample=sample,
        seed=seed,
        device=device,
        threads=threads,
        memory=memory,
        progress=progress,
    )
    facts = _plain(dataclasses.asdict(report)) | {"exact": report.exact, "seed": seed}
    _common.emit(facts, str(report), as_json=as_json, inputs=read)


def _plain(fact: Any) -> Any:
    """Replace NaN and infinity, which JSON does not have, by null."""
    if isinstance(fact, dict):
        return {name: _plain(value) for name, value in fact.items()}
    if isinstance(fact, list | tuple):
        return [_plain(value) for value in fact]
    return None if isinstance(fact, float) and not math.isfinite(fact) else fact
