"""tonari info: the contents of a file."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import click

from tonari import io
from tonari.cli import _common
from tonari.graph.knn_graph import KNNGraph


@click.command()
@_common.file_argument("file")
@click.option("--key", help="Name of an array in FILE, if it is .npz or HDF5.")
@_common.json_option
def info(file: Path, key: str | None, as_json: bool) -> None:
    """Describe FILE: points, neighbours or a graph.

    Only the header is read, except that a graph is loaded and checked.

    \b
    Example:
      tonari info points.fvecs
      tonari info mnist.hdf5 --key test
    """
    facts = _facts(file, key)
    flat = {name: value for name, value in facts.items() if name != "extra"} | facts["extra"]
    text = "\n".join(f"{name:>14}  {_shown(value)}" for name, value in flat.items())
    _common.emit(facts, text, as_json=as_json)


def _facts(path: Path, key: str | None) -> dict[str, Any]:
    kind = _common.kind_of(path) if key is None else "points"
    if kind == "graph":
        return _graph_facts(path)
    if kind == "neighbours" and path.suffix.lower() == ".npz":
        found = io.describe(path, key="indices")
        extra = {"distances": io.describe(path, key="distances").dtype}
        found = dataclasses.replace(found, format="neighbours", extra=extra)
    else:
        found = io.describe(path, key=key)
    return dataclasses.asdict(found) | {"path": str(path)}


def _graph_facts(path: Path) -> dict[str, Any]:
    graph = KNNGraph.load(path)
    report = graph.report
    measured: dict[str, Any] = {}
    if report is not None:
        estimate = report.estimate
        measured = {"target": report.target, "recall": estimate.by_distance, "low": estimate.low, "high": estimate.high}
    return {
        "path": str(path),
        "format": "graph",
        "rows": graph.n,
        "columns": graph.k,
        "dtype": str(graph.indices.dtype),
        "bytes": path.stat().st_size,
        "extra": {
            "distances": str(graph.distances.dtype),
            "metric": graph.metric,
            "method": graph.method,
            "include_self": graph.include_self,
            "seed": graph.seed,
            "missing": int((graph.indices < 0).sum()),
            **measured,
        },
    }


def _shown(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
