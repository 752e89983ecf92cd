"""tonari graph: the same graph as from the library, its summary and its log."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.command_line import as_json, refused, run
from tonari import io
from tonari.graph.knn_graph import KNNGraph
from tonari.metrics.reference import brute
from tonari.metrics.transforms.roots import cube_root

N, M, D, K = 300, 20, 8, 5


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
    record = facts.pop("record")
    assert (record["title"], record["rows"], record["plan"]["k"]) == ("knn_graph", N, K)
    assert sum(step.get("proved", 0) for step in record["steps"]) == N
    assert facts.pop("read") == [{"path": "points.fbin", "rows": N, "columns": D, "names": None}]
    assert facts == {
        "output": "g.npz",
        "rows": N,
        "k": K,
        "metric": metric,
        "method": tonari.knn_graph(io.read("points.fbin"), K, metric=metric, threads=1).method,  # whichever is faster
        "include_self": False,
        "bytes": (folder / "g.npz").stat().st_size,
    }


def test_graph_can_include_self(folder: Path) -> None:
    assert as_json("graph", "points.fbin", "-k", str(K), "-o", "g.npz", "--include-self")["include_self"] is True
    graph = KNNGraph.load("g.npz")
    np.testing.assert_array_equal(graph.indices[:, 0], np.arange(N))
    np.testing.assert_array_equal(graph.indices[:, 1:], _truth(k=K - 1).indices)


def test_graph_writes_all_ties(folder: Path) -> None:
    points = (np.arange(N)[:, None] // 3).astype(np.float32)
    io.write("ties.npy", points)
    facts = as_json("graph", "ties.npy", "-k", "2", "--ties", "all", "--exclude-within", "2", "-o", "t.npz")
    truth = tonari.knn_graph(points, 2, ties="all", exclude_within=2)
    with np.load("t.npz") as found:
        for name, part in truth._asdict().items():
            np.testing.assert_array_equal(found[name], part)
    assert (facts["rows"], facts["neighbours"], facts["k"]) == (N, len(truth.indices), 2)
    assert facts["record"]["title"] == "knn_graph"
    about = as_json("info", "t.npz")
    assert (about["format"], about["rows"], about["dtype"]) == ("lists of neighbours", N, "int32")
    assert about["extra"] == {"neighbours": len(truth.indices), "distances": "float32"}
    for output in ("t.hdf5", "t/"):
        assert f"{output} cannot be combined with --ties; name a .npz file" in refused(
            "graph", "ties.npy", "-k", "2", "--ties", "all", "-o", output, code=2
        )
    given = ("--ties", "all", "--include-self", "-o", "u.npz")
    assert "lists by --ties have no column for the point itself" in refused(
        "graph", "ties.npy", "-k", "2", *given, code=2
    )
    np.savez("t.npz", indptr=np.zeros((2, 2)), indices=truth.indices, distances=truth.distances)
    assert "t.npz, array 'indptr': found" in refused("info", "t.npz", code=1)


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
