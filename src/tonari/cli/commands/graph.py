"""tonari graph: build the k-nearest-neighbour graph of points, and write it to a file or a directory."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click
import numpy as np

from tonari.api import graphs
from tonari.api.shards import build_graph
from tonari.cli import _common, _options
from tonari.cli._directories import names_a_directory, refuse, told
from tonari.cli._points import Inputs, check_named, id_option, inputs_option
from tonari.core.trail import recording
from tonari.graph.exports.arrow import about
from tonari.graph.knn_graph import KNNGraph
from tonari.io._atomic import atomic
from tonari.io.neighbors.found import SUFFIXES, check_writable, write_found
from tonari.methods.registry import check_method
from tonari.shards.plan import METHODS
from tonari.shards.state import bytes_of


@click.command()
@click.argument("points", metavar="POINTS...", type=click.Path(path_type=Path), nargs=-1, required=True)
@_options.k_option
@_options.output_option(
    ".npz, which tonari.KNNGraph.load and numpy.load read; or, for other programs, .hdf5, .parquet, .arrow (lists) "
    "or .csv, .tsv (from, to, distance)",
    directories=True,
)
@_options.metric_option
@_options.columns_options
@click.option(
    "--method",
    default="auto",
    show_default=True,
    help='"exact" (brute force), "kdtree" (for few dimensions), "nn-descent" (approximate, to the given --recall), or '
    '"auto" for the fastest; without --recall "auto" is exact. In a directory: "exact", "clusters" or "ggm" (both '
    'approximate), or "auto".',
)
@_options.recall_option
@_options.seed_option
@click.option("--include-self", is_flag=True, help="Make each point the first of its own k neighbours.")
@_options.exclude_within_option
@_options.ties_option
@_options.key_option
@inputs_option
@id_option
@_options.work_options
@click.pass_context
def graph(
    context: click.Context,
    /,
    points: tuple[Path, ...],
    k: int,
    output: str,
    force: bool,
    method: str,
    include_self: bool,
    exclude_within: int | None,
    ties: str,
    key: str | None,
    read: Inputs,
    as_json: bool,
    **options: Any,
) -> None:
    """Build the k-nearest-neighbour graph of POINTS.

    A point is not its own neighbour, but duplicates of it are. Equal distances are ordered by row number.

    With --ties all, the neighbours of point i are indices[indptr[i]:indptr[i + 1]], and distances in the same way.

    A graph by NN-Descent may lack some neighbours. Its recall is measured on a sample of rows and printed; if it is
    below --recall, a warning says so.

    If the output is a directory, the points may be larger than memory, and may be several files, which are
    concatenated. --memory then includes the points, and the plan is printed before the start. After an interruption the
    same command resumes; --force starts over. tonari info DIR shows the progress.

    \b
    Example:
      tonari graph points.fbin -k 10 --metric cosine -o graph.npz
      tonari graph points.fbin -k 10 --method nn-descent --recall 0.99 --seed 0 -o graph.npz
      tonari graph table.csv -k 10 --id name -o edges.csv
      tonari graph a.npy b.npy -k 10 --recall 0.95 --memory 8GB -o graph/
    """
    names = None
    folder = names_a_directory(output)
    _check_method(context, method, folder=folder)
    if ties == "all":
        _options.check_ties_output(context, output)
        refuse(context, ("include_self",), "lists by --ties have no column for the point itself; leave it out")
    options = _options.with_columns(options)
    started = time.perf_counter()
    if folder:
        refuse(
            context,
            ("key", "columns", "drop", "ids", "include_self", "exclude_within"),
            f"{output} is a directory, which does not support this; leave it out",
        )
        target = Path(output)
        options["seed"] = options["seed"] or 0
        with told(target, force=force):
            graph = build_graph(list(points), k, target, method=method, resume=not force, overwrite=force, **options)
    else:
        if len(points) > 1:
            raise click.UsageError(f"got {len(points)} files of points: their graph is a directory, -o DIR/", context)
        target = _common.check_output(Path(output), (".npz", *SUFFIXES), inputs=points, force=force)
        check_writable(target)
        check_named(context, target, read)
        read.check(points)
        names = read.names_of_rows(points[0])
        rows = read.read(points[0], key)
        options |= {"method": method, "exclude_within": exclude_within}
        if ties == "all":
            _with_ties(rows, k, target, options, started, read, as_json=as_json)
            return
        with _common.warnings_as_lines():
            graph = graphs.knn_graph(rows, k, include_self=include_self, **options)
        if target.suffix.lower() == ".npz":
            graph.save(target)
        else:
            distances, indices = graph.lists.in_numpy()
            write_found(target, indices, distances, about(graph.lists), names=(names, names))
    emit_graph(graph, target, time.perf_counter() - started, read, as_json=as_json)


def _with_ties(
    rows: Any, k: int, target: Path, options: dict[str, Any], started: float, read: Inputs, *, as_json: bool
) -> None:
    """Find each point's k nearest neighbours and all points tied with the k-th, and write them to a .npz file."""
    with recording("knn_graph", len(rows)) as record:
        found = graphs.knn_graph(rows, k, ties="all", **options)
    with atomic(target) as file:
        np.savez(file, **found._asdict())
    count = len(found.indices)
    facts = {"rows": len(rows), "k": k, "neighbours": count, "metric": options["metric"], "record": record.as_dict()}
    text = f"{count:,} neighbours of {len(rows):,} rows, k={k}"
    _common.emit_output(target, facts, text, started, as_json=as_json, inputs=read)


def _check_method(context: click.Context, name: str, *, folder: bool) -> None:
    try:
        if not folder:
            check_method(name)
        elif name not in METHODS:
            raise ValueError(f"unknown method {name!r}; expected one of {', '.join(map(repr, METHODS))} in a directory")
    except ValueError as error:
        also = "" if folder or name not in METHODS else f"; {name!r} is for an output in a directory, -o DIR/"
        raise click.BadParameter(f"{error}{also}", context, param_hint="'--method'") from error


def emit_graph(made: KNNGraph, output: Path, seconds: float, read: Inputs, *, as_json: bool) -> None:
    """Print the properties of a graph that has been written to `output`."""
    size = bytes_of(output) if output.is_dir() else output.stat().st_size
    facts = {
        "output": str(output),
        "rows": made.n,
        "k": made.k,
        "metric": made.metric,
        "method": made.method,
        "include_self": made.include_self,
        **({"filters": list(made.filters)} if made.filters else {}),
        "seconds": seconds,
        "bytes": size,
    }
    by = f", with {' and '.join(made.filters)}" if made.filters else ""
    lines = [f"{made.n:,} rows, k={made.k}, {made.metric}, {made.method}{by}, in {seconds:.3g} s"]
    if made.report is not None:
        facts["report"] = made.report.as_dict()
        lines.append(str(made.report))
    if made.record is not None:
        facts["record"] = made.record.as_dict()
    lines.append(f"wrote {click.format_filename(output)}, {size:,} bytes")
    _common.emit(facts, "\n".join(lines), as_json=as_json, inputs=read)
