"""tonari merge: merge the graphs of two sets of points into the graph of all points."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from tonari.api import graphs as verbs
from tonari.cli import _common, _options
from tonari.cli._points import Inputs, inputs_option
from tonari.cli.commands.graph import emit_graph
from tonari.graph.knn_graph import KNNGraph


@click.command()
@_options.file_argument("graph_a")
@_options.file_argument("graph_b")
@_options.file_argument("points_a")
@_options.file_argument("points_b")
@_options.output_option(".npz, which tonari.KNNGraph.load and numpy.load read")
@click.option(
    "--recall",
    metavar="SHARE",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.99,
    show_default=True,
    help="Share of the true neighbours to find, unless the graphs are merged exactly.",
)
@click.option(
    "--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Seed of the random choices."
)
@click.option("--key", help="Name of the array in POINTS_A and POINTS_B, if they are .npz or HDF5.")
@inputs_option
@_options.work_options
def merge(
    graph_a: Path,
    graph_b: Path,
    points_a: Path,
    points_b: Path,
    output: Path,
    force: bool,
    key: str | None,
    read: Inputs,
    as_json: bool,
    **options: Any,
) -> None:
    """Merge GRAPH_A of POINTS_A and GRAPH_B of POINTS_B into the graph of all points.

    The points of B follow those of A. Each point starts with its neighbours and is compared with points of the other
    set: with all points if one set is small; otherwise NN-Descent chooses the points to compare, and its recall is
    measured on a sample of rows.

    \b
    Example:
      tonari merge a.npz b.npz a.fbin b.fbin -o both.npz
    """
    output = _common.check_output(output, (".npz",), inputs=(graph_a, graph_b, points_a, points_b), force=force)
    read.check([points_a, points_b])
    started = time.perf_counter()
    with _common.warnings_as_lines():
        graph = verbs.merge(
            KNNGraph.load(graph_a),
            KNNGraph.load(graph_b),
            read.read(points_a, key),
            read.read(points_b, key),
            **options,
        )
    graph.save(output)
    emit_graph(graph, output, time.perf_counter() - started, read, as_json=as_json)
