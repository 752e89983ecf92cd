"""tonari info: describe the contents of a file, or of a directory with a graph."""

from __future__ import annotations

import dataclasses
import importlib.util
import math
from pathlib import Path
from typing import Any

import click

from tonari import io
from tonari.api.index.files.dense import describe
from tonari.cli import _common, _options
from tonari.cli._points import Inputs, inputs_option
from tonari.core.results.neighbors import index_dtype
from tonari.graph.files.directory import BUILDING, GRAPH, NEIGHBORS, value_dtype
from tonari.graph.knn_graph import KNNGraph
from tonari.graph.lists import Lists
from tonari.graph.statistics import distances_at, missing_neighbours, range_of, zero_distances
from tonari.graph.structure import connected_components
from tonari.io.filtered import filters_in, in_words
from tonari.io.formats.npz import Archive
from tonari.io.record import read_record
from tonari.metrics.recall import Recall
from tonari.shards.plan import ShardPlan
from tonari.shards.state import read_state
from tonari.streams.output import kept


@click.command()
@_options.file_argument("file")
@click.option("--key", help="Name of an array in FILE, if it is .npz or HDF5.")
@inputs_option
@_options.json_option
def info(file: Path, key: str | None, read: Inputs, as_json: bool) -> None:
    """Describe FILE: points, neighbours, a graph or an Index; or the directory of "tonari graph", even unfinished.

    Only the header is read, except that a graph in a file is loaded and checked. For a graph, "first" and "last" are
    the distances to the nearest and to the k-th neighbour, "zero" is the number of neighbours at distance 0, and
    "components" the number of connected components (if SciPy is installed).

    For an unfinished graph in a directory, the numbers of finished and known tasks are printed (finished tasks may add
    new ones), and "covered", the share of neighbours that the graph can find. For a directory, and for OUT.part, the
    unfinished file of a search, the record of the run so far is printed too: the plan, the choices made while it ran,
    and each pass over some rows with its time.

    \b
    Example:
      tonari info points.fvecs
      tonari info mnist.hdf5 --key test
      tonari info graph/ --json
    """
    if read.choice:
        read.check([file])
    facts = _facts(file, key, read)
    extra = dict(facts["extra"])
    plan = extra.pop("plan", {})  # the plan in a directory is that of one shard, not of the whole graph
    ran = extra.pop("record", None)
    if isinstance(extra.get("filters"), dict):
        extra["filters"] = in_words(extra["filters"])
    flat = {name: value for name, value in facts.items() if name != "extra"} | extra
    text = "\n".join(f"{name:>14}  {_shown(value)}" for name, value in flat.items())
    if plan:
        text += f"\n\nplan:\n{ShardPlan.of_manifest(plan)}"
    if ran is not None:
        text += f"\n\nrun:\n{read_record(ran)}"
    _common.emit(facts, text, as_json=as_json)


def _facts(path: Path, key: str | None, read: Inputs) -> dict[str, Any]:
    if path.suffix == ".part":
        return _unfinished_facts(path)
    kind = _common.kind_of(path) if key is None else "points"
    if kind == "index":
        return _index_facts(path)
    if kind == "graph":
        return _directory_facts(path) if path.is_dir() else _graph_facts(path)
    if kind == "lists":
        return _lists_facts(path)
    if kind == "neighbours" and path.suffix.lower() == ".npz":
        found = io.describe(path, key="indices")
        extra = {"distances": io.describe(path, key="distances").dtype, **_filters(path)}
        found = dataclasses.replace(found, format="neighbours", extra=extra)
    else:
        found = read.describe(path, key)
    return dataclasses.asdict(found) | {"path": str(path)}


def _lists_facts(path: Path) -> dict[str, Any]:
    """Describe a file of neighbour lists with different lengths, such as the result of a search within a radius."""
    with Archive(path, math.inf) as archive:
        indptr, indices, distances = (
            archive.header(name, holds="vector") for name in ("indptr", "indices", "distances")
        )
        return {
            "path": str(path),
            "format": "lists of neighbours",
            "rows": max(0, indptr.shape[0] - 1),
            "columns": None,
            "dtype": str(indices.dtype),
            "bytes": archive.size,
            "extra": {"neighbours": indices.shape[0], "distances": str(distances.dtype), **_filters(path)},
        }


def _filters(path: Path) -> dict[str, Any]:
    filters = filters_in(path)
    return {"filters": filters} if filters else {}


def _graph_facts(path: Path) -> dict[str, Any]:
    graph = KNNGraph.load(path)
    report, lists = graph.report, graph.lists
    measured = {} if report is None else {"target": report.target} | _measured(report.estimate)
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
            **({} if graph.weights is None else {"weights": graph.weights}),
            **({"filters": list(graph.filters)} if graph.filters else {}),
            **({} if graph.transform is None else {"transform": list(graph.transform.shape)}),
            "missing": missing_neighbours(lists),
            "first": range_of(distances_at(lists, 0)),
            "last": range_of(distances_at(lists, -1)),
            "zero": zero_distances(lists),
            "components": _components(lists),
            **measured,
        },
    }


def _unfinished_facts(path: Path) -> dict[str, Any]:
    """Describe the unfinished output file of a search by the journal that is stored next to it."""
    journal = kept(path.with_suffix(""))[1]
    if journal is None:
        raise FileNotFoundError(f"{path}.json: does not exist, the journal that tonari search keeps beside OUT.part")
    search, record = journal.search, journal.made
    return {
        "path": str(path),
        "format": "unfinished neighbours",
        "rows": search.get("queries"),
        "columns": search.get("k"),
        "dtype": "int32",
        "bytes": path.stat().st_size,
        "extra": {
            "queries_done": journal.rows,
            **{name: search.get(name) for name in ("points", "dimensions", "metric")},
            **({} if record is None else {"record": record.as_dict()}),
        },
    }


def _index_facts(path: Path) -> dict[str, Any]:
    about = describe(path)
    names = "metric", "method", "asked", "device", "on", "threads", "memory", "next_id"
    return {
        "path": str(path),
        "format": "index",
        "rows": about["n"],
        "columns": about["d"],
        "dtype": about["dtype"],
        "bytes": path.stat().st_size,
        "extra": {name: about[name] for name in names}
        | {name: about[name] for name in ("weights", "transform", "codes") if about.get(name)}
        | ({"rows_in": about["path"]} if "codes" in about else {}),
    }


def _directory_facts(path: Path) -> dict[str, Any]:
    state = read_state(path)
    manifest = state.manifest
    n, request = manifest.source["n"], manifest.request
    extra: dict[str, Any] = {"state": manifest.state}
    if manifest.kind == NEIGHBORS:
        extra["points"] = n
    if manifest.state == BUILDING:
        extra["running"] = state.running
        extra |= {name: getattr(state, name) for name in ("tasks_done", "tasks_known", "all_known")}
    extra |= {"distances": str(value_dtype(manifest.source["dtype"])), "metric": request["metric"]}
    extra["method"] = manifest.method
    if manifest.method != "exact":
        extra |= {"seed": request["seed"], "target": request["recall"]}
    if state.covered is not None:
        extra["covered"] = state.covered
    if state.recall is not None:
        extra |= _measured(state.recall)
    record = state.record
    return {
        "path": str(path),
        "format": f"{'graph' if manifest.kind == GRAPH else 'neighbours'} directory",
        "rows": manifest.shape[0],
        "columns": request["k"],
        "dtype": str(index_dtype(n)),
        "bytes": state.bytes,
        "extra": extra | {"plan": manifest.plan} | ({} if record is None else {"record": record.as_dict()}),
    }


def _measured(estimate: Recall) -> dict[str, Any]:
    return {"recall": estimate.by_distance, "low": estimate.low, "high": estimate.high}


def _components(lists: Lists) -> int | None:
    """Return the number of connected components of a graph, or None if SciPy is not installed."""
    return int(connected_components(lists).max()) + 1 if importlib.util.find_spec("scipy") else None


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, dict):
        return ", ".join(f"{name} {'-' if part is None else f'{part:.6g}'}" for name, part in value.items())
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
