"""tonari recall: measure the recall of a graph or of a file of neighbours."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import click
import numpy as np

from tonari import io
from tonari.cli import _common, _options
from tonari.cli._directories import check_points, load_graph, refuse
from tonari.cli._points import Inputs, inputs_option
from tonari.core.errors import Unsupported
from tonari.core.results.neighbors import Neighbors
from tonari.graph import recall as quality
from tonari.io.filtered import filters_in, in_words
from tonari.io.neighbors.ground_truth import HDF5_SUFFIXES
from tonari.metrics import get_metric
from tonari.metrics.recall import neighbors_recall

# Largest relative difference between two distances that count as equal. Rounding causes smaller differences, and a
# distance and its square differ by more.
_ALIKE = 1e-3


@click.command()
@click.argument("found", metavar="GRAPH|FOUND", type=click.Path(path_type=Path))
@click.argument("against", metavar="POINTS|TRUTH", type=click.Path(path_type=Path))
@click.option("--sample", type=click.IntRange(min=1), default=1000, show_default=True, help="Rows of GRAPH to measure.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the random choice of rows."
)
@click.option(
    "--metric",
    metavar="METRIC",
    callback=_options.named_metric,
    help="Metric of FOUND and TRUTH, which the files do not record: distances ascend, those of inner_product descend. "
    f"One of {_options.METRIC_NAMES}.  [default: euclidean]",
)
@_options.key_option
@inputs_option
@_options.threads_option
@_options.report_options
@click.pass_context
def recall(
    context: click.Context,
    /,
    found: Path,
    against: Path,
    metric: str | None,
    key: str | None,
    read: Inputs,
    as_json: bool,
    **options: Any,
) -> None:
    """Measure GRAPH against the exact neighbours of a random sample of its POINTS, or FOUND against TRUTH.

    GRAPH is a .npz file or a directory that "tonari graph" wrote, by any method. FOUND and TRUTH are files with the
    neighbours of the same queries in the same order, from "tonari search" (.ibin, .npz) or ann-benchmarks (.hdf5).
    TRUTH may have more columns than FOUND: if FOUND has k columns, the first k of TRUTH count.

    Recall by index is the usual recall@k: the share of the k true neighbours of a query that are among the k found
    ones, averaged over all queries. Recall by distance is the share of found points that are no farther than the k-th
    true neighbour, so any of several tied points counts. The interval is for recall by distance: over all rows of the
    graph, or over all queries if QUERIES are a random sample of them.

    \b
    Example:
      tonari recall graph.npz points.fbin --sample 5000
      tonari recall found.ibin truth.ibin
    """
    if _common.kind_of(found) == "graph":
        refuse(context, ("metric",), f"{found} is a graph, which records its metric; leave this option out")
        read.check([against])
        _graph(found, against, key, read, as_json=as_json, **options)
    else:
        _check_results(found, against)
        why = f"{found} is not a graph, expected one with this option; leave the option out"
        refuse(context, ("sample", "seed", "key", "columns", "drop", "threads", "progress"), why)
        _results(found, against, metric or "euclidean", as_json=as_json)


def _graph(
    graph: Path, points: Path, key: str | None, read: Inputs, *, as_json: bool, seed: int, **options: Any
) -> None:
    """Measure the recall of a graph on its points, with the options of :func:`tonari.graph.recall.graph_recall`."""
    check_points(points, key, graph)
    made = load_graph(graph)
    measured = quality.graph_recall(made.lists, read.read(points, key), seed=seed, **options)
    facts = dataclasses.asdict(measured) | {"of_rows": made.n, "metric": made.metric, "seed": seed}
    text = (
        f"recall by distance  {measured.by_distance:.8g}, 95 % interval {measured.low:.8g} to {measured.high:.8g}\n"
        f"recall by index     {measured.by_index:.8g}\n"
        f"{measured.rows:,} of {made.n:,} rows, k={measured.k}, {made.metric}"
    )
    _common.emit(facts, text, as_json=as_json, inputs=read)


def _check_results(found: Path, truth: Path) -> None:
    """Raise an error unless both files contain neighbours; the error says what they contain instead."""
    if not _has_neighbors(found):
        raise ValueError(
            f"{found}: holds {_contents(found)}, expected a graph (.npz, as tonari graph writes it) or neighbours "
            "(.ibin or .npz, as tonari search writes them; .hdf5)"
        )
    if not _has_neighbors(truth):
        raise ValueError(
            f"{truth}: holds {_contents(truth)}, expected the true neighbours to measure {found} against (.ibin, .npz "
            f"or .hdf5), since {found} holds neighbours, not a graph; find them with tonari search"
        )


def _has_neighbors(path: Path) -> bool:
    suffix = path.suffix.lower()  # any other suffix is read as Big-ANN ground truth
    return suffix in HDF5_SUFFIXES or suffix not in io.SUFFIXES or _common.kind_of(path) == "neighbours"


def _contents(path: Path) -> str:
    if path.suffix.lower() == ".npz":
        names = {"graph": "a graph", "lists": "lists of different lengths"}
        return names.get(_common.kind_of(path), "other arrays")
    facts = io.describe(path)
    return f"{facts.rows:,} x {facts.columns:,} values of {facts.dtype}"


def _results(found_in: Path, truth_in: Path, metric: str, *, as_json: bool) -> None:
    _check_filters(found_in, truth_in)
    found, truth = (_signed(io.read_ground_truth(path)) for path in (found_in, truth_in))
    (m, k), (true_m, true_k) = found.indices.shape, truth.indices.shape
    if m != true_m or k > true_k:
        raise ValueError(
            f"{found_in}: holds {k} neighbours of {m:,} queries, expected at most {true_k} neighbours of {true_m:,} "
            f"queries, as in {truth_in}"
        )
    _check_order(truth_in, truth.distances, metric)
    measured = neighbors_recall(found, truth, metric=metric)
    facts: dict[str, Any] = dataclasses.asdict(measured) | {"metric": metric}
    by_distance = f"{measured.by_distance:.8g}, 95 % interval {measured.low:.8g} to {measured.high:.8g}"
    strange = _disagreement(found, truth)
    if strange:
        facts |= {"by_distance": None, "low": None, "high": None}
        by_distance = "unknown"
        click.echo(f"tonari: warning: {found_in} and {truth_in}: {strange}", err=True)
    text = (
        f"recall@{k} by index     {measured.by_index:.8g}\n"
        f"recall@{k} by distance  {by_distance}\n"
        f"{m:,} queries, k={k}, {metric}"
    )
    _common.emit(facts, text, as_json=as_json)


def _check_filters(found: Path, truth: Path) -> None:
    """Raise an error if the records of two files say that their neighbours were found with different filters."""
    recorded = [filters_in(path) if path.suffix.lower() in (*HDF5_SUFFIXES, ".npz") else {} for path in (found, truth)]
    ours, theirs = recorded
    # HDF5 files store only the names of filters
    known = all(about for filters in recorded for about in filters.values())
    if ours.keys() != theirs.keys() or (known and ours != theirs):
        by_ours, by_theirs = (in_words(filters) or "no filter" for filters in recorded)
        raise Unsupported(
            f"{found}: was found with {by_ours}, and {truth} with {by_theirs}, expected neighbours among the same "
            "points; find the true neighbours with the same filters"
        )


def _signed(neighbors: Neighbors) -> Neighbors:
    indices = neighbors.indices
    return neighbors._replace(indices=indices.astype(np.int64) if indices.dtype.kind == "u" else indices)


def _check_order(path: Path, distances: Any, metric: str) -> None:
    first, last = distances[:, 0], distances[:, -1]
    descending = get_metric(metric).descending
    wrong = first < last if descending else first > last
    if wrong.any():
        row = int(wrong.argmax())
        fix = "leave --metric inner_product out" if descending else "give --metric inner_product for similarities"
        raise ValueError(
            f"{path}: row {row} goes from {first[row]:.6g} to {last[row]:.6g}, expected distances that "
            f"{'descend, as those of inner_product' if descending else 'ascend, nearest first'}; {fix}"
        )


def _disagreement(found: Neighbors, truth: Neighbors) -> str:
    """Return a warning if the two files disagree about distances; otherwise "".

    They disagree if most points that both list at the same rank have different distances.
    """
    same = (found.indices == truth.indices[:, : found.indices.shape[1]]) & (found.indices >= 0)
    ours, theirs = found.distances[same], truth.distances[:, : found.indices.shape[1]][same]
    differ = ~np.isclose(ours, theirs, rtol=_ALIKE)
    if 2 * int(differ.sum()) <= len(differ):
        return ""
    place = int(differ.argmax())
    return (
        f"the distance to point {found.indices[same][place]} of row {np.nonzero(same)[0][place]} is "
        f"{ours[place]:.6g} in one and {theirs[place]:.6g} in the other, and most others differ too "
        "(another metric, or squares); recall by distance is left out"
    )
