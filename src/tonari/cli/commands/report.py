"""tonari report: write an HTML page about a graph."""

from __future__ import annotations

from pathlib import Path

import click

from tonari.cli import _common, _options
from tonari.cli._directories import check_points, load_graph, refuse
from tonari.cli._points import Inputs, inputs_option
from tonari.graph.files.directory import Manifest
from tonari.graph.page.contents import contents
from tonari.graph.page.template import render
from tonari.io._atomic import atomic


@click.command()
@_options.file_argument("graph")
@click.argument("points", metavar="[POINTS]", required=False, type=click.Path(path_type=Path))
@_options.output_option(".html, which browsers show")
@click.option("--sample", type=click.IntRange(min=1), default=1000, show_default=True, help="Rows of GRAPH to measure.")
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Seed of the random choice of rows and of the points on the map.",
)
@_options.key_option
@inputs_option
@_options.threads_option
@_options.report_options
@click.pass_context
def report(
    context: click.Context,
    graph: Path,
    points: Path | None,
    output: Path,
    force: bool,
    sample: int,
    seed: int,
    key: str | None,
    read: Inputs,
    threads: int | None,
    progress: bool | None,
    as_json: bool,
) -> None:
    """Write a page about GRAPH: distances, duplicates, local dimension, hubs, components, and a map.

    GRAPH is a .npz file or a directory that "tonari graph" wrote; a directory is read in blocks. The page is one file
    without scripts, which needs no network. With POINTS, from which the graph was built, the recall is measured on a
    random sample of rows, as by "tonari recall". Without POINTS the page shows the recall that is stored in the graph,
    if any.

    SciPy is required.

    \b
    Example:
      tonari report graph.npz points.fbin -o report.html
    """
    if points is None:
        why = "there are no POINTS to measure; name them, or leave this option out"
        refuse(context, ("sample", "key", "columns", "drop", "threads", "progress"), why)
    named = [graph] if points is None else [graph, points]
    output = _common.check_output(output, (".html", ".htm"), inputs=named, force=force)
    made = load_graph(graph)
    rows = None
    if points is not None:
        read.check([points])
        check_points(points, key, graph)
        rows = read.read(points, key)
    # the record of a run shows the plan itself
    plan = Manifest.read(graph).plan if graph.is_dir() and made.record is None else None
    found = contents(made.lists, rows, sample=sample, seed=seed, threads=threads, progress=progress, plan=plan)
    page = render(found, graph.name).encode()
    with atomic(output) as file:
        file.write(page)
    facts = {"output": str(output), "bytes": len(page)} | found.as_dict()
    _common.emit(facts, f"wrote {output}, {len(page):,} bytes", as_json=as_json, inputs=read)
