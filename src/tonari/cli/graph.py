"""tonari graph: from a file of points to a file with their k-nearest-neighbour graph."""

from __future__ import annotations

import time
from pathlib import Path

import click

from tonari import api, io
from tonari.cli import _common
from tonari.graph.knn_graph import KNNGraph


@click.command()
@_common.file_argument("points")
@_common.k_option
@_common.output_option(".npz, which tonari.KNNGraph.load and numpy.load read")
@_common.metric_option
@_common.graph_method_option
@_common.recall_option
@_common.seed_option
@click.option("--include-self", is_flag=True, help="Make each point the first of its own k neighbours.")
@_common.key_option
@_common.device_option
@_common.threads_option
@_common.memory_option
@_common.progress_option
@_common.json_option
@_common.verbose_option
def graph(
    points: Path,
    k: int,
    output: Path,
    force: bool,
    metric: str,
    method: str,
    recall: float | None,
    seed: int | None,
    include_self: bool,
    key: str | None,
    device: str | list[str],
    threads: int | None,
    memory: int | None,
    progress: bool | None,
    as_json: bool,
) -> None:
    """Build the k-nearest-neighbour graph of POINTS.

    A point is not its own neighbour, but duplicates of it are. Equal distances are ordered by row number.

    A graph by NN-Descent may lack some neighbours. Its recall is measured on a sample of rows and printed; if it is
    below --recall, a warning says so.

    \b
    Example:
      tonari graph points.fbin -k 10 --metric cosine -o graph.npz
      tonari graph points.fbin -k 10 --method nn-descent --recall 0.99 --seed 0 -o graph.npz
    """
    output = _common.check_output(output, (".npz",), inputs=(points,), force=force)
    started = time.perf_counter()
    with _common.warnings_as_lines():
        made = api.knn_graph(
            io.read(points, key=key),
            k,
            metric=metric,
            method=method,
            recall=recall,
            seed=seed,
            include_self=include_self,
            device=device,
            threads=threads,
            memory=memory,
            progress=progress,
        )
    made.save(output)
    emit_graph(made, output, time.perf_counter() - started, as_json=as_json)


def emit_graph(made: KNNGraph, output: Path, seconds: float, *, as_json: bool) -> None:
    """Print the properties of a graph that was built and written to `output`."""
    size = output.stat().st_size
    facts = {
        "output": str(output),
        "rows": made.n,
        "k": made.k,
        "metric": made.metric,
        "method": made.method,
        "include_self": made.include_self,
        "seconds": seconds,
        "bytes": size,
    }
    lines = [f"{made.n:,} rows, k={made.k}, {made.metric}, {made.method}, in {seconds:.3g} s"]
    if made.report is not None:
        facts["report"] = made.report.as_dict()
        lines.append(str(made.report))
    lines.append(f"wrote {click.format_filename(output)}, {size:,} bytes")
    _common.emit(facts, "\n".join(lines), as_json=as_json)
