"""The command line: what it writes and prints, what it refuses and with which exit code, and how it stops."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import tonari
from tests.helpers import checks
from tests.helpers.command_line import ENVIRONMENT, as_json, refused, run
from tests.helpers.devices import needs_torch
from tonari import io
from tonari.api import graphs, searching
from tonari.cli import main
from tonari.cuda import memory as device_memory
from tonari.graph import recall as quality
from tonari.graph.knn_graph import KNNGraph
from tonari.methods import plan as planning
from tonari.methods import warm as warming
from tonari.methods.registry import NAMES, overrides_of
from tonari.metrics.recall import neighbors_recall
from tonari.metrics.reference import brute
from tonari.metrics.roots import cube_root

N, M, D, K = 300, 20, 8, 5
COMMANDS = ("graph", "search", "pairs", "merge", "recall", "report", "info", "convert", "plan", "warm")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with points.fbin and queries.npy."""
    io.write(tmp_path / "points.fbin", checks.gaussian(N, D, seed=1))
    io.write(tmp_path / "queries.npy", checks.gaussian(M, D, seed=2))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _truth(metric: str = "euclidean", k: int = K) -> Any:
    points = io.read("points.fbin")
    return brute(points, points, k, metric, self_ids=np.arange(N))


# ---------------------------------------------------------------- graph


def test_metrics_have_other_names(folder: Path) -> None:
    facts = as_json("graph", "points.fbin", "-k", str(K), "-o", "g.npz", "--metric", "Manhattan")
    assert facts["metric"] == KNNGraph.load("g.npz").metric == "l1"
    facts = as_json("search", "points.fbin", "queries.npy", "-k", str(K), "-o", "f.npz", "--metric", "IP")
    assert facts["metric"] == "inner_product"
    error = refused("graph", "points.fbin", "-k", str(K), "-o", "h.npz", "--metric", "manhatan", code=2)
    assert "Did you mean 'manhattan'?" in error


def test_minkowski_distances(folder: Path) -> None:
    facts = as_json("graph", "points.fbin", "-k", str(K), "-o", "g.npz", "--metric", "minkowski:3.0")
    graph, points = KNNGraph.load("g.npz"), io.read("points.fbin").astype(np.float64)
    assert facts["metric"] == graph.metric == "minkowski:3"
    sums = brute(points, points, K, "power:3", self_ids=np.arange(N))
    np.testing.assert_array_equal(graph.indices, sums.indices)
    np.testing.assert_array_equal(graph.distances, cube_root(sums.distances))
    facts = as_json("search", "points.fbin", "queries.npy", "-k", str(K), "-o", "f.npz", "--metric", "minkowski:2")
    assert facts["metric"] == "euclidean"
    for metric in ("minkowski", "minkowski:7"):
        error = refused("graph", "points.fbin", "-k", str(K), "-o", "h.npz", "--metric", metric, code=2)
        assert f": metric '{metric}' is not supported: " in error
        assert "expected 'minkowski:p' with p = 0.5, 1, 1.5" in error


@pytest.mark.parametrize("metric", ["euclidean", "inner_product", "l1"])
def test_graph_writes_the_exact_graph(folder: Path, metric: str) -> None:
    facts = as_json("graph", "points.fbin", "-k", str(K), "-o", "g.npz", "--metric", metric, "--threads", "1")
    graph, truth = KNNGraph.load("g.npz"), _truth(metric)
    np.testing.assert_array_equal(graph.indices, truth.indices)
    np.testing.assert_array_equal(graph.distances, truth.distances)
    assert graph.metric == metric
    assert facts.pop("seconds") > 0
    assert facts.pop("read") == [{"path": "points.fbin", "rows": N, "columns": D, "names": None}]
    assert facts == {
        "output": "g.npz",
        "rows": N,
        "k": K,
        "metric": metric,
        "method": tonari.knn_graph(io.read("points.fbin"), K, metric=metric, threads=1).method,  # whatever is sooner
        "include_self": False,
        "bytes": (folder / "g.npz").stat().st_size,
    }


def test_graph_can_include_self(folder: Path) -> None:
    assert as_json("graph", "points.fbin", "-k", str(K), "-o", "g.npz", "--include-self")["include_self"] is True
    graph = KNNGraph.load("g.npz")
    np.testing.assert_array_equal(graph.indices[:, 0], np.arange(N))
    np.testing.assert_array_equal(graph.indices[:, 1:], _truth(k=K - 1).indices)


def test_graph_ends_with_a_summary(folder: Path) -> None:
    result = run("graph", "points.fbin", "-k", str(K), "-o", "g.npz")
    method = tonari.knn_graph(io.read("points.fbin"), K).method
    assert f"{N} rows, k={K}, euclidean, {method}, in " in result.stdout
    assert f"wrote g.npz, {(folder / 'g.npz').stat().st_size:,} bytes" in result.stdout
    assert result.stderr == ""


def test_verbose_logs_the_rows_per_precision(folder: Path) -> None:
    logger = logging.getLogger("tonari")
    before = logger.level, logger.handlers[:]
    rows = 3000  # too many for exact values alone
    io.write("more.fbin", checks.gaussian(rows, D))
    result = run("graph", "more.fbin", "-k", str(K), "-o", "g.npz", "--method", "exact", "-v", "--json")
    assert result.stderr.startswith(f"tonari: {rows} rows in ")
    assert sum(map(int, re.findall(r"(\d+) at (?:int8|bfloat16|float32)", result.stderr))) == rows
    assert json.loads(result.stdout)["rows"] == rows
    assert (logger.level, logger.handlers) == before


def test_progress_is_on_stderr_and_only_if_wanted(folder: Path) -> None:
    command = ("graph", "points.fbin", "-k", "3", "--force", "-o", "g.npz")
    assert "neighbours" in run(*command, "--progress").stderr
    assert "neighbours" not in run(*command, "--progress").stdout
    assert run(*command, "--no-progress").stderr == ""


def test_memory_and_method_reach_the_search(folder: Path) -> None:
    command = ("graph", "points.fbin", "-k", "3", "-o", "g.npz")
    assert "memory budget of 3000 bytes" in refused(*command, "--memory", "3kB", code=1)
    assert "'--memory'" in refused(*command, "--memory", "3", code=2)
    assert "unknown method 'guess'" in refused(*command, "--method", "guess", code=2)
    assert not (folder / "g.npz").exists()


# ---------------------------------------------------------------- search


@pytest.mark.parametrize("name", ["t.npz", "t.ibin"])
def test_search_writes_the_exact_neighbours(folder: Path, name: str) -> None:
    facts = as_json("search", "points.fbin", "queries.npy", "-k", str(K), "-o", name, "--metric", "sqeuclidean")
    truth = brute(io.read("queries.npy"), io.read("points.fbin"), K, "sqeuclidean")
    if name == "t.npz":
        with np.load(name) as archive:
            assert set(archive.files) == {"indices", "distances"}
            found = tonari.Neighbors(archive["distances"], archive["indices"])
    else:
        found = io.read_ground_truth(name)
    np.testing.assert_array_equal(found.indices, truth.indices)
    np.testing.assert_array_equal(found.distances, truth.distances)
    assert facts.pop("seconds") > 0
    size = (folder / name).stat().st_size
    assert [one["path"] for one in facts.pop("read")] == ["points.fbin", "queries.npy"]
    assert facts == {"output": name, "rows": M, "points": N, "k": K, "metric": "sqeuclidean", "bytes": size}


def test_keys_name_the_points_and_the_queries(folder: Path) -> None:
    points, queries = io.read("points.fbin"), io.read("queries.npy")
    np.savez("both.npz", base=points, asked=queries)
    command = ("search", "both.npz", "both.npz", "-k", "3", "-o", "t.npz")
    assert "base, asked" in refused(*command, code=1)
    run(*command, "--key", "base", "--queries-key", "asked")
    with np.load("t.npz") as archive:
        np.testing.assert_array_equal(archive["indices"], brute(queries, points, 3).indices)


def test_queries_in_hdf5_are_the_test_set(folder: Path) -> None:
    h5py = pytest.importorskip("h5py")
    points, queries = io.read("points.fbin"), io.read("queries.npy")
    with h5py.File("set.hdf5", "w") as file:
        file["train"], file["test"] = points, queries
    run("search", "set.hdf5", "set.hdf5", "-k", "3", "-o", "t.ibin")
    np.testing.assert_array_equal(io.read_ground_truth("t.ibin").indices, brute(queries, points, 3).indices)
    run("search", "set.hdf5", "set.hdf5", "--queries-key", "train", "-k", "1", "-o", "own.ibin")
    np.testing.assert_array_equal(io.read_ground_truth("own.ibin").indices[:, 0], np.arange(N))


# ---------------------------------------------------------------- recall


def _damaged_graph() -> KNNGraph:
    """The true graph, with a far point as last neighbour in a third of the rows."""
    truth = _truth()
    far = brute(io.read("points.fbin"), io.read("points.fbin"), N - 1, self_ids=np.arange(N)).indices[:, -1]
    indices = truth.indices.copy()
    indices[::3, -1] = far[::3]
    return KNNGraph(indices, truth.distances, "euclidean", "by hand")


def test_recall_of_all_rows_and_of_a_sample(folder: Path) -> None:
    graph = _damaged_graph()
    graph.save("g.npz")
    whole = as_json("recall", "g.npz", "points.fbin")
    assert whole["rows"] == whole["of_rows"] == N
    assert whole["by_distance"] == whole["low"] == whole["high"] == pytest.approx(1 - 1 / (3 * K))
    assert (whole["k"], whole["metric"], whole["seed"]) == (K, "euclidean", 0)

    part = as_json("recall", "g.npz", "points.fbin", "--sample", "40", "--seed", "3")
    expected = quality.graph_recall(graph.lists, io.read("points.fbin"), sample=40, seed=3)
    assert (part["by_distance"], part["low"], part["high"]) == (expected.by_distance, expected.low, expected.high)
    assert (part["rows"], part["seed"]) == (40, 3)
    assert part["low"] < part["by_distance"] < part["high"]
    other = quality.graph_recall(graph.lists, io.read("points.fbin"), sample=40, seed=0)
    assert other.by_distance != expected.by_distance, "the seed would not be seen"

    text = run("recall", "g.npz", "points.fbin", "--sample", "40", "--seed", "3").stdout
    assert f"{expected.by_distance:.8g}, 95 % interval {expected.low:.8g} to {expected.high:.8g}" in text
    assert f"40 of {N} rows" in text


def test_recall_refuses_other_points(folder: Path) -> None:
    _damaged_graph().save("g.npz")
    assert f"the graph has {N} rows, points has {M}" in refused("recall", "g.npz", "queries.npy", code=1)
    assert "absent.npz" in refused("recall", "absent.npz", "points.fbin", code=1)
    whole = (folder / "g.npz").read_bytes()
    (folder / "g.npz").write_bytes(whole[:-300])
    assert f"found {len(whole) - 300} bytes" in refused("recall", "g.npz", "points.fbin", code=1)


def _found_and_truth(metric: str = "euclidean") -> tuple[tonari.Neighbors, tonari.Neighbors]:
    """In found.* and truth.*, of .ibin and .npz: the true neighbours, and those with a third of the rows spoilt."""
    truth = brute(io.read("queries.npy"), io.read("points.fbin"), 2 * K, metric)
    indices, distances = (np.array(part[:, :K]) for part in (truth.indices, truth.distances))
    indices[::3, -1], distances[::3, -1] = truth.indices[::3, -1], truth.distances[::3, -1]
    found = tonari.Neighbors(distances, indices)
    for name, part in (("found", found), ("truth", truth)):
        io.write_ground_truth(f"{name}.ibin", part)
        np.savez(f"{name}.npz", indices=part.indices, distances=part.distances)
    return found, truth


@pytest.mark.parametrize("suffixes", [(".ibin", ".ibin"), (".npz", ".ibin"), (".ibin", ".npz"), (".ibin", ".hdf5")])
@pytest.mark.parametrize("metric", ["euclidean", "inner_product"])
def test_recall_of_found_neighbours(folder: Path, suffixes: tuple[str, str], metric: str) -> None:
    found, truth = _found_and_truth(metric)
    with pytest.importorskip("h5py").File("truth.hdf5", "w") as file:
        file["neighbors"], file["distances"] = truth.indices, truth.distances
    given = () if metric == "euclidean" else ("--metric", metric)
    facts = as_json("recall", f"found{suffixes[0]}", f"truth{suffixes[1]}", *given)
    shared = [
        len(set(a) & set(b)) / K for a, b in zip(found.indices.tolist(), truth.indices[:, :K].tolist(), strict=True)
    ]
    assert facts["by_index"] == pytest.approx(np.mean(shared)) == pytest.approx(1 - 7 / (M * K))
    expected = neighbors_recall(found, truth, metric=metric)
    assert (facts["by_distance"], facts["low"], facts["high"]) == (expected.by_distance, expected.low, expected.high)
    assert (facts["rows"], facts["k"], facts["metric"]) == (M, K, metric)
    result = run("recall", f"found{suffixes[0]}", f"truth{suffixes[1]}", *given)
    assert f"recall@{K} by index     {expected.by_index:.8g}" in result.stdout
    assert f"recall@{K} by distance  {expected.by_distance:.8g}, 95 % interval" in result.stdout
    assert result.stderr == ""


def test_recall_of_what_tonari_search_writes(folder: Path) -> None:
    for name in ("a.ibin", "b.npz"):
        run("search", "points.fbin", "queries.npy", "-k", str(K), "-o", name)
    for pair in (("a.ibin", "b.npz"), ("b.npz", "a.ibin")):
        facts = as_json("recall", *pair)
        assert (facts["by_index"], facts["by_distance"]) == (1.0, 1.0)


def test_recall_says_what_a_file_is_and_what_was_expected(folder: Path) -> None:
    _damaged_graph().save("g.npz")
    _found_and_truth()
    np.savez("many.npz", a=np.ones((2, 2)), b=np.ones((3, 2)))
    io.write("ids.ibin", np.ones((M, K), np.int32))
    for pair, said in (
        (("found.ibin", "points.fbin"), "points.fbin: holds 300 x 8 values of float32, expected the true neighbours"),
        (
            ("found.npz", "points.fbin"),
            "to measure found.npz against (.ibin, .npz or .hdf5), since found.npz holds ne",
        ),
        (("found.ibin", "g.npz"), "g.npz: holds a graph, expected the true neighbours"),
        (("points.fbin", "points.fbin"), "points.fbin: holds 300 x 8 values of float32, expected a graph (.npz, as to"),
        (("many.npz", "points.fbin"), "many.npz: holds other arrays, expected a graph"),
        (("ids.ibin", "truth.ibin"), "ids.ibin: holds 20 x 5 values of int32, expected a graph"),
        (("g.npz", "truth.ibin"), "truth.ibin: holds neighbours, expected the points from which g.npz was built"),
        (("g.npz", "found.npz"), "found.npz: holds neighbours, expected the points from which g.npz was built"),
        (("g.npz", "g.npz"), "g.npz: holds a graph, expected the points from which"),
        (
            ("truth.ibin", "found.ibin"),
            "truth.ibin: holds 10 neighbours of 20 queries, expected at most 5 neighbours of 20 queries",
        ),
        (("found.ibin", "absent.ibin"), "absent.ibin: no such file"),
    ):
        line = refused("recall", *pair, code=1)
        assert said in line, (pair, line)
        assert "pickle" not in line


def test_recall_of_distances_that_are_not_of_one_kind(folder: Path) -> None:
    found, truth = _found_and_truth()
    io.write_ground_truth("found.ibin", found._replace(distances=found.distances**2))
    result = run("recall", "found.ibin", "truth.ibin", "--json")
    facts = json.loads(result.stdout)
    assert facts["by_index"] == neighbors_recall(found, truth).by_index
    assert [facts[name] for name in ("by_distance", "low", "high")] == [None] * 3
    assert result.stderr.startswith(
        f"tonari: warning: found.ibin and truth.ibin: the distance to point {truth.indices[0, 0]} of row 0 is "
        f"{found.distances[0, 0] ** 2:.6g} in one and {found.distances[0, 0]:.6g} in the other"
    )
    assert f"recall@{K} by distance  unknown" in run("recall", "found.ibin", "truth.ibin").stdout
    io.write_ground_truth("found.ibin", found._replace(distances=found.distances * np.float32(1 + 1e-5)))
    assert as_json("recall", "found.ibin", "truth.ibin")["by_distance"] is not None  # another program's last bits


def test_recall_looks_at_the_order_of_the_truth(folder: Path) -> None:
    _found_and_truth("inner_product")
    line = refused("recall", "found.ibin", "truth.ibin", code=1)
    assert "truth.ibin: row 0 goes from" in line
    assert "give --metric inner_product for similarities" in line
    _found_and_truth()
    line = refused("recall", "found.ibin", "truth.ibin", "--metric", "inner_product", code=1)
    assert "leave --metric inner_product out" in line


def test_recall_refuses_options_that_it_would_not_use(folder: Path) -> None:
    _damaged_graph().save("g.npz")
    _found_and_truth()
    for option in (("--sample", "9"), ("--seed", "1"), ("--key", "x"), ("--threads", "1"), ("--progress",)):
        line = refused("recall", "found.ibin", "truth.ibin", *option, code=2)
        assert f"'{option[0]}" in line
        assert "found.ibin is not a graph, expected one with this option; leave the option out" in line
    assert "'--metric'" in refused("recall", "g.npz", "points.fbin", "--metric", "l1", code=2)


# ---------------------------------------------------------------- info


def test_info_describes_points(folder: Path) -> None:
    facts = as_json("info", "points.fbin")
    size = 8 + 4 * N * D
    expected = {"path": "points.fbin", "format": "fbin", "rows": N, "columns": D, "dtype": "float32", "bytes": size}
    assert {name: value for name, value in facts.items() if name != "extra"} == expected
    lines = dict(line.split(maxsplit=1) for line in run("info", "points.fbin").stdout.splitlines())
    assert (lines["rows"], lines["columns"], lines["bytes"]) == (str(N), str(D), f"{size:,}")


def test_info_tells_of_an_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    index = tonari.Index(checks.gaussian(30, 4), metric="l1", method="exact", threads=1)
    index.remove([2])
    index.save("points.npy")  # under any name
    facts = as_json("info", "points.npy")
    assert (facts["format"], facts["rows"], facts["columns"], facts["dtype"]) == ("index", 29, 4, "float32")
    assert facts["bytes"] == Path("points.npy").stat().st_size
    expected = {"metric": "l1", "method": "exact", "asked": "exact", "device": "auto", "on": None}
    assert facts["extra"] == expected | {"threads": 1, "memory": None, "next_id": 30}
    assert "next_id  30" in run("info", "points.npy").stdout
    tonari.Index(index.points, weights=[1, 2, 0, 0.5]).save("weighted")
    assert as_json("info", "weighted")["extra"]["weights"] == [1, 2, 0, 0.5]
    Path("points.npy").write_bytes(Path("points.npy").read_bytes()[:-1])
    assert "expected what tonari.Index.save writes" in refused("info", "points.npy", code=1)


def _range(distances: np.ndarray) -> dict[str, float]:
    values = distances.astype(np.float64)
    return {"min": values.min(), "median": np.median(values), "max": values.max()}


def test_info_describes_a_graph(folder: Path) -> None:
    graph = _damaged_graph()
    graph.indices[4, 3:], graph.distances[4, 3:] = -1, np.inf
    KNNGraph(graph.indices, graph.distances, "l1", "by hand", seed=7).save("g.npz")
    facts = as_json("info", "g.npz")
    assert (facts["format"], facts["rows"], facts["columns"], facts["dtype"]) == ("graph", N, K, "int32")
    assert facts["bytes"] == (folder / "g.npz").stat().st_size
    assert facts["extra"] == {
        "distances": "float32",
        "metric": "l1",
        "method": "by hand",
        "include_self": False,
        "seed": 7,
        "missing": K - 3,
        "first": _range(graph.distances[:, 0]),
        "last": _range(np.delete(graph.distances[:, -1], 4)),
        "zero": int((graph.distances == 0).sum()),
        "components": int(graph.connected_components().max()) + 1,
    }
    lines = dict(line.split(maxsplit=1) for line in run("info", "g.npz").stdout.splitlines())
    told = _range(graph.distances[:, 0])
    assert lines["first"] == f"min {told['min']:.6g}, median {told['median']:.6g}, max {told['max']:.6g}"
    assert as_json("info", "g.npz", "--key", "distances")["dtype"] == "float32"


def test_info_of_similarities_and_of_a_graph_without_neighbours(folder: Path) -> None:
    tonari.knn_graph(io.read("points.fbin"), 1, include_self=True).save("self.npz")
    tonari.knn_graph(io.read("points.fbin"), K, metric="inner_product").save("similar.npz")
    assert as_json("info", "similar.npz")["extra"]["zero"] is None
    facts = as_json("info", "self.npz")["extra"]
    assert (facts["first"], facts["zero"], facts["components"]) == (None, 0, N)
    assert "first  -\n" in run("info", "self.npz").stdout


def test_info_of_distances_beyond_their_dtype(folder: Path) -> None:
    graph = _damaged_graph()
    graph.distances[:, -1] = np.inf
    KNNGraph(graph.indices, graph.distances, "l1", "by hand").save("g.npz")
    assert as_json("info", "g.npz")["extra"]["last"] == {"min": None, "median": None, "max": None}
    assert "last  min -, median -, max -\n" in run("info", "g.npz").stdout


def test_info_describes_found_neighbours(folder: Path) -> None:
    for name, form in (("t.npz", "neighbours"), ("t.ibin", "ground truth")):
        run("search", "points.fbin", "queries.npy", "-k", str(K), "-o", name)
        facts = as_json("info", name)
        assert (facts["format"], facts["rows"], facts["columns"], facts["dtype"]) == (form, M, K, "int32")
        assert facts["extra"] == {"distances": "float32"}


def test_info_refuses_what_it_cannot_describe(folder: Path) -> None:
    np.savez("many.npz", a=np.ones((2, 2)), b=np.ones((3, 2)))
    assert "a, b" in refused("info", "many.npz", code=1)
    assert as_json("info", "many.npz", "--key", "b")["rows"] == 3
    whole = (folder / "many.npz").read_bytes()
    (folder / "cut.npz").write_bytes(whole[: len(whole) // 2])
    assert f"found {len(whole) // 2} bytes" in refused("info", "cut.npz", code=1)
    assert "absent.fbin: no such file" in refused("info", "absent.fbin", code=1)


# ---------------------------------------------------------------- plan


def test_plan_is_that_of_the_library(folder: Path) -> None:
    graph = planning.plan(N, N, D, K, threads=2)
    told = tonari.explain(None, (N, D), K, threads=2)
    assert run("plan", "points.fbin", "-k", str(K), "--threads", "2").stdout == f"{graph}\n\n{told}\n"
    facts = as_json("plan", "points.fbin", "-k", str(K), "--queries", "7", "--metric", "l1", "--memory", "1GB")
    given: dict[str, Any] = {"metric": "l1", "memory": "1GB"}
    search, told = planning.plan(N, 7, D, K, **given), tonari.explain((7, D), (N, D), K, **given)
    assert facts == json.loads(json.dumps(search.as_dict() | {"auto": told.as_dict()}))


def test_plan_tells_every_method(folder: Path) -> None:
    told = as_json("plan", "points.fbin", "-k", "3", "--recall", "0.9", "--method", "nn-descent")["auto"]
    assert [made["method"] for made in told["candidates"]] == ["exact", "kdtree", "nn-descent", "bits"]
    assert all(made["seconds"] > 0 and made["nbytes"] > 0 for made in told["candidates"][:3])
    assert "hamming" in told["candidates"][3]["why_not"]
    told = as_json("plan", "points.fbin", "-k", "3", "--queries", "2", "--metric", "cosine")["auto"]
    assert (told["method"], told["reason"]) == ("exact", "brute force is done before a tree is built")
    whys = {made["method"]: made["why_not"] for made in told["candidates"]}
    assert whys["exact"] == ""
    assert "not cosine" in whys["kdtree"]
    assert "builds a graph" in whys["nn-descent"]


def _set(*settings: str, also: tuple[str, ...] = ()) -> dict[str, Any]:
    return as_json("plan", "points.fbin", "-k", "3", *also, *(part for one in settings for part in ("--set", one)))


def test_plan_takes_overrides(folder: Path) -> None:
    facts = _set("precisions=float32", "isa=generic", "resident=no")
    assert (facts["precisions"], facts["isa"], facts["resident"]) == (["float32"], "generic", False)
    assert _set("adaptive=yes")["adaptive"] is True
    assert _set("adaptive=false")["adaptive"] is False
    facts = _set("query_block=9", "point_chunk=192", " capacity = 5000 ")
    assert (facts["query_block"], facts["point_chunk"], facts["capacity"]) == (9, 192, 5000)
    facts = _set("point_splits=1", "sample_stride=4", "sample_rank=11")
    assert (facts["point_splits"], facts["sample_stride"], facts["sample_rank"]) == (1, 4, 11)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("leaf", "'leaf': expected name=value, such as isa=…"),
        ("capacity=", "'capacity=': expected name=value"),
        ("capacty=5", "'capacty' cannot be set; these can be: active_rows, adaptive, capacity, "),
        ("capacty=5", "Did you mean 'capacity'?"),
        ("capacity=5.5", "capacity=5.5: expected a whole number of at least 1"),
        ("capacity=0", "capacity must be a whole number of at least 1, got 0"),
        ("resident=maybe", "resident=maybe: expected yes or no"),
    ],
)
def test_a_setting_that_cannot_be(folder: Path, setting: str, message: str) -> None:
    assert message in refused("plan", "points.fbin", "-k", "1", "--set", setting, code=1)


def test_help_lists_what_can_be_set() -> None:
    told = run("plan", "--help").stdout
    for name in NAMES:
        for device in ("cpu", "cuda"):
            assert f"{name} on {device}:" in told
            for field, known in overrides_of(name, device).items():
                assert re.search(rf"^ +{field} +{re.escape(known.meaning)}$", told, re.MULTILINE), field


def test_warm_asks_for_what_the_file_has(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def warm(*sizes: int, **given: Any) -> int:
        asked.append((sizes, given["dtype"], given["metric"], given["device"], given["self_join"]))
        return 7

    monkeypatch.setattr(warming, "warm", warm)
    assert run("warm", "points.fbin", "-k", "3").stdout == "7 kernels compiled\n"
    told = as_json("warm", "points.fbin", "-k", "3", "--queries", "9", "--metric", "L1", "--device", "cuda:1")
    assert told == {"compiled": 7}
    assert asked == [
        ((N, N, D, 3), "float32", "euclidean", "cuda", True),
        ((N, 9, D, 3), "float32", "l1", "cuda:1", False),
    ]
    monkeypatch.undo()
    assert "expected" in refused("warm", "points.fbin", "-k", "3", "--device", "gpu", code=2)


def test_plan_refuses_what_the_verbs_would(folder: Path) -> None:
    assert f"the largest k is {N - 1}" in refused("plan", "points.fbin", "-k", str(N), code=1)
    assert as_json("plan", "points.fbin", "-k", str(N), "--queries", "1")["k"] == N
    assert "precisions=('int3',): expected" in refused(
        "plan", "points.fbin", "-k", "1", "--set", "precisions=int3", code=1
    )
    np.save("whole.npy", np.ones((9, 2), np.int32))
    assert "int32 is not supported" in refused("plan", "whole.npy", "-k", "1", code=1)


# ---------------------------------------------------------------- devices


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((), "auto"),
        (("--device", "cpu"), "cpu"),
        (("--device", "cuda"), "cuda"),
        (("--device", "cuda:1"), "cuda:1"),
        (("--device", "cuda:all"), "cuda:all"),
        (("--device", "cuda:0,cuda:1"), ["cuda:0", "cuda:1"]),
    ],
)
def test_the_device_reaches_the_verbs(
    folder: Path, monkeypatch: pytest.MonkeyPatch, given: tuple[str, ...], expected: Any
) -> None:
    seen = []

    def verb(*arguments: Any, device: Any, **options: Any) -> None:
        seen.append(device)
        raise ValueError("enough")

    for module, name in ((graphs, "knn_graph"), (searching, "search"), (planning, "plan")):
        monkeypatch.setattr(module, name, verb)
    refused("graph", "points.fbin", "-k", "3", "-o", "g.npz", *given, code=1)
    refused("search", "points.fbin", "queries.npy", "-k", "3", "-o", "t.npz", *given, code=1)
    refused("plan", "points.fbin", "-k", "3", *given, code=1)
    assert seen == [expected] * 3


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cpu,cuda:0", "cuda:0,"])
def test_a_device_that_is_none_is_wrong_usage(folder: Path, device: str) -> None:
    assert "'--device'" in refused("plan", "points.fbin", "-k", "3", "--device", device, code=2)


@needs_torch
def test_plan_of_a_gpu(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tonari.inputs, "devices_for", lambda device: ("cuda:0",))
    monkeypatch.setattr(device_memory, "free_memory", lambda devices: 10**10)
    command = ("plan", "points.fbin", "-k", "3", "--device", "cuda")
    made = planning.plan(N, N, D, 3, self_join=True, device="cuda")
    assert run(*command).stdout.startswith(f"{made}\n\n")
    facts = _set("group=16", "width=5", "query_batch=9", "precisions=float16,values", also=("--device", "cuda"))
    assert (facts["group"], facts["width"], facts["query_batch"]) == (16, 5, 9)
    assert facts["precisions"] == ["float16", "values"]
    facts = _set("route=streamed", "query_slab=100", "point_slab=128", also=("--device", "cuda"))
    assert (facts["route"], facts["query_slab"], facts["point_slab"]) == ("streamed", 100, 128)
    named = refused(*command, "--set", "isa=avx2", code=1)
    assert "'isa' cannot be set; these can be: form_dim, group, point_slab, precisions" in named
    assert "leave threads out" in refused(*command, "--threads", "2", code=1)


# ---------------------------------------------------------------- errors and outputs


def test_an_existing_output_is_refused_before_any_work(folder: Path) -> None:
    (folder / "old.npz").write_bytes(b"precious")
    # The points do not exist: had they been looked at first, the message would say so.
    assert "old.npz: exists already; --force" in refused("graph", "absent.fbin", "-k", "1", "-o", "old.npz", code=1)
    assert "old.npz: exists already" in refused("search", "absent.fbin", "no.npy", "-k", "1", "-o", "old.npz", code=1)
    assert (folder / "old.npz").read_bytes() == b"precious"
    run("graph", "points.fbin", "-k", "1", "-o", "old.npz", "--force")
    assert KNNGraph.load("old.npz").n == N


def test_a_failed_search_leaves_a_forced_output_as_it_was(folder: Path) -> None:
    (folder / "old.npz").write_bytes(b"precious")
    refused("graph", "points.fbin", "-k", str(N), "-o", "old.npz", "--force", code=1)
    assert (folder / "old.npz").read_bytes() == b"precious"


@pytest.mark.parametrize("command", ["graph", "search"])
def test_an_input_is_never_the_output(folder: Path, command: str) -> None:
    np.savez("points.npz", io.read("points.fbin"))
    before = (folder / "points.npz").read_bytes()
    (folder / "link.npz").symlink_to("points.npz")
    inputs = ["points.npz"] if command == "graph" else ["points.fbin", "points.npz"]
    for output in ("points.npz", "link.npz"):
        line = refused(command, *inputs, "-k", "1", "-o", output, "--force", code=2)
        assert f"{output} is also an input; name another file" in line
    assert (folder / "points.npz").read_bytes() == before


def test_outputs_that_cannot_be_written(folder: Path) -> None:
    for output, code, said in (
        ("g.txt", 2, "expected .arrow, .csv, .h5, .hdf5, .npz"),
        ("g.ibin", 2, "expected .arrow, .csv, .h5, .hdf5, .npz"),
        ("no/g.npz", 1, "no does not exist"),
        ("points.fbin/g.npz", 1, "is a file, not a directory"),
    ):
        assert said in refused("graph", "absent.fbin", "-k", "1", "-o", output, code=code)
    assert "is a directory" in refused("merge", *("absent",) * 4, "-o", ".", code=1)
    assert ".hdf5, .ibin, .npz, .parquet" in refused("search", "a.fbin", "b.fbin", "-k", "1", "-o", "t.fbin", code=2)


def test_bad_data_is_one_line_and_exit_code_1(folder: Path) -> None:
    bad = checks.gaussian(9, 3)
    bad[4, 1] = np.nan
    np.save("nan.npy", bad)
    np.save("narrow.npy", bad[:2])
    (folder / "cut.fbin").write_bytes((folder / "points.fbin").read_bytes()[:1000])
    np.save("whole.npy", np.ones((9, 2), np.int64))
    for points, said in (
        ("nan.npy", "row 4"),
        ("cut.fbin", "found 1000 bytes"),
        ("whole.npy", "int64 is not supported"),
        ("absent.fbin", "absent.fbin: no such file"),
        ("points.txt", "unknown suffix '.txt'"),
    ):
        assert said in refused("graph", points, "-k", "1", "-o", "g.npz", code=1)
    assert f"the largest k is {N - 1}" in refused("graph", "points.fbin", "-k", str(N), "-o", "g.npz", code=1)
    narrow = ("search", "points.fbin", "narrow.npy", "-k", "1", "-o", "t.npz")
    assert "same number of columns" in refused(*narrow, code=1)
    assert not [path for path in folder.iterdir() if "g.npz" in path.name or "t.npz" in path.name]


def test_wrong_usage_is_one_line_and_exit_code_2(folder: Path) -> None:
    for arguments, said in (
        (("--nonsense",), "--nonsense"),
        (("nonsense",), "No such command 'nonsense'"),
        (("graph",), "Missing argument 'POINTS...'"),
        (("graph", "points.fbin", "-o", "g.npz"), "'-k'"),
        (("graph", "points.fbin", "-k", "1"), "'-o'"),
        (("graph", "points.fbin", "-k", "0", "-o", "g.npz"), "'-k'"),
        (("graph", "points.fbin", "-k", "1", "-o", "g.npz", "--metric", "cosin"), "'cosine'"),
        (("graph", "points.fbin", "-k", "1", "-o", "g.npz", "--threads", "0"), "'--threads'"),
        (("recall", "g.npz", "points.fbin", "--sample", "0"), "'--sample'"),
        (("plan", "points.fbin", "-k", "1", "--queries", "0"), "'--queries'"),
    ):
        line = refused(*arguments, code=2)
        assert said in line
        assert "--help')" in line


def test_the_traceback_is_kept_for_those_who_ask(folder: Path) -> None:
    result = run("graph", "absent.fbin", "-k", "1", "-o", "g.npz", "-vv", code=1)
    assert "Traceback" in result.stderr
    assert result.stderr.endswith("tonari: error: absent.fbin: no such file\n")


def test_a_defect_is_not_dressed_up_as_bad_data(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(io, "describe", broken)
    result = CliRunner().invoke(main, ["info", "points.fbin"])
    assert isinstance(result.exception, ZeroDivisionError)


@pytest.mark.parametrize(
    ("module", "verb", "arguments"),
    [
        (graphs, "knn_graph", ("graph", "points.fbin", "-k", "3", "-o", "o.npz")),
        (searching, "search", ("search", "points.fbin", "queries.npy", "-k", "3", "-o", "o.npz")),
        (planning, "plan", ("plan", "points.fbin", "-k", "3")),
        (quality, "graph_recall", ("recall", "g.npz", "points.fbin")),
    ],
)
def test_options_reach_the_library(
    folder: Path, monkeypatch: pytest.MonkeyPatch, module: Any, verb: str, arguments: tuple[str, ...]
) -> None:
    _damaged_graph().save("g.npz")
    called: dict[str, Any] = {}
    real = getattr(module, verb)

    def record(*positional: Any, **named: Any) -> Any:
        called.update(named)
        return real(*positional, **named)

    monkeypatch.setattr(module, verb, record)
    wanted: dict[str, Any] = {"threads": 3}
    options = ["--threads", "3"]
    if verb != "plan":
        wanted["progress"] = True
        options.append("--progress")
    if verb != "graph_recall":
        wanted |= {"metric": "l1", "method": "exact", "memory": 10**9}
        options += ["--metric", "l1", "--method", "exact", "--memory", "1GB"]
    run(*arguments, *options)
    assert {name: called[name] for name in wanted} == wanted


@pytest.mark.parametrize("command", ["graph", "recall", "plan", "info"])
def test_a_key_names_the_array(folder: Path, command: str) -> None:
    _damaged_graph().save("g.npz")
    np.savez("both.npz", points=io.read("points.fbin"), few=io.read("queries.npy"))
    arguments = {
        "graph": ["both.npz", "-k", "2", "-o", "o.npz"],
        "recall": ["g.npz", "both.npz"],
        "plan": ["both.npz", "-k", "2"],
        "info": ["both.npz"],
    }[command]
    assert "points, few" in refused(command, *arguments, code=1)
    assert as_json(command, *arguments, "--key", "points")["n" if command == "plan" else "rows"] == N


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_with_an_example(command: str) -> None:
    text = run(command, "--help").stdout
    assert f"Example:\n    tonari {command} " in text
    assert "--json" in text


def test_help_without_a_command() -> None:
    assert all(f"  {command} " in run("-h").stdout for command in COMMANDS)
    bare = run(code=2)
    assert bare.stdout == ""
    assert "Usage:" in bare.stderr
    assert tonari.__version__ in run("--version").stdout


# ---------------------------------------------------------------- as a process


def _process(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tonari", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=ENVIRONMENT)


@pytest.mark.process
def test_a_process_runs(folder: Path) -> None:
    done = _process("graph", "points.fbin", "-k", str(K), "-o", "g.npz", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["rows"] == N
    np.testing.assert_array_equal(KNNGraph.load("g.npz").indices, _truth().indices)


@pytest.mark.process
def test_a_process_fails_with_its_exit_code(folder: Path) -> None:
    (folder / "cut.fbin").write_bytes(b"\x01\x02")
    done = _process("graph", "cut.fbin", "-k", "1", "-o", "g.npz")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("tonari: error: cut.fbin: found 2 bytes")
    assert done.stderr.count("\n") == 1
    assert _process("graph", "cut.fbin", "-k", "none", "-o", "g.npz").returncode == 2


@pytest.mark.process
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_stops_a_search_and_leaves_nothing(folder: Path, threads: int) -> None:
    # The slowest kernel there is: minutes of work, were it not stopped.
    io.write("many.fbin", np.abs(checks.gaussian(200_000, 32)))
    command = ["search", "many.fbin", "many.fbin", "-k", "10", "-o", "t.npz", "--metric", "chi2"]
    before = sorted(path.name for path in folder.iterdir())
    with subprocess.Popen(
        [sys.executable, "-m", "tonari", *command, "--progress", "--threads", str(threads)],
        stderr=subprocess.PIPE,
        env=ENVIRONMENT | {"TONARI_ISA": "generic"},
    ) as running:
        try:
            assert running.stderr is not None
            seen = b""
            while b"neighbours:" not in seen or b" 0.00/" in seen.split(b"\r")[-1]:  # until the bar has moved
                piece = os.read(running.stderr.fileno(), 4096)
                assert piece, f"ended before it could be interrupted: {seen!r}"
                seen += piece
            running.send_signal(signal.SIGINT)
            sent = time.perf_counter()
            rest = running.stderr.read()
            code = running.wait(timeout=30)
            took = time.perf_counter() - sent
        finally:
            running.kill()
    assert code == 130
    assert took < 2.0, f"took {took:.1f} s to stop"
    assert rest.rstrip().endswith(b"tonari: interrupted")
    assert b"Traceback" not in rest
    assert sorted(path.name for path in folder.iterdir()) == before


def test_ctrl_c_while_writing_leaves_the_old_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "old.npz").write_bytes(b"precious")
    before = sorted(path.name for path in folder.iterdir())

    def half(file: Any, **_: Any) -> None:
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", half)
    for command in (("graph", "points.fbin"), ("search", "points.fbin", "queries.npy")):
        result = run(*command, "-k", "1", "-o", "old.npz", "--force", code=130)
        assert result.stderr.strip() == "tonari: interrupted"
        assert (folder / "old.npz").read_bytes() == b"precious"
        assert sorted(path.name for path in folder.iterdir()) == before


# Sends an interrupt when a module is about to be imported.
INTERRUPTING = """
import os, signal, sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["WHEN"]:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
"""


@pytest.mark.process
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("when", ["numpy", "tonari.core._native", "tonari.api", "click", "tonari.cli.info"])
@pytest.mark.parametrize("how", ["-m", "script"])
def test_ctrl_c_while_the_command_line_is_imported(folder: Path, when: str, how: str) -> None:
    (folder / "sitecustomize.py").write_text(INTERRUPTING)
    script = folder / "tonari"  # as pip makes it
    script.write_text("import sys\nfrom tonari.cli import main\nif __name__ == '__main__':\n    sys.exit(main())\n")
    arguments = ["-m", "tonari"] if how == "-m" else [str(script)]
    done = subprocess.run(
        [sys.executable, *arguments, "info", "points.fbin"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=ENVIRONMENT | {"WHEN": when, "PYTHONPATH": os.pathsep.join([str(folder), ENVIRONMENT["PYTHONPATH"]])},
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "tonari: interrupted\n")


@pytest.mark.process
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_program_that_imports_the_library_keeps_its_interrupts(folder: Path) -> None:
    code = "import signal, tonari; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=ENVIRONMENT)
    assert done.stdout == "True\n", done.stderr
    (folder / "tonari").write_text(f"from tonari.cli import main\ntry:\n    main(['-h'])\nfinally:\n    {code}\n")
    done = subprocess.run([sys.executable, "tonari"], capture_output=True, text=True, env=ENVIRONMENT)
    assert done.stdout.endswith("True\n"), done.stderr


def _imported(*arguments: str) -> set[str]:
    """Modules that a fresh interpreter has after running the arguments."""
    command = [sys.executable, "-X", "importtime", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, env=ENVIRONMENT)
    return {line.rsplit("|", 1)[1].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}


@pytest.mark.process
def test_importing_the_library_does_not_import_the_command_line() -> None:
    modules = _imported("-c", "import tonari; [getattr(tonari, name) for name in tonari.__all__]")
    assert "tonari.methods.answer" in modules
    assert not {name for name in modules if name.split(".")[0] == "click" or name.startswith("tonari.cli")}


@pytest.mark.process
def test_help_imports_nothing_heavy() -> None:
    modules = _imported("-m", "tonari", "--help")
    assert "click" in modules
    assert not modules & {"scipy", "h5py", "torch", "tqdm", "sklearn"}
