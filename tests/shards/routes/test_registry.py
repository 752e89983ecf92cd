"""Graphs by clusters and by merging pairs report their true recall, and their lists are valid."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.checks import assert_same_neighbors
from tests.helpers.shards import (
    MOST_METRICS,
    Shuffled,
    built,
    by_executor,
    by_shards,
    check_built,
    clustered,
    contents,
    lists,
)
from tonari.core.errors import Unsupported
from tonari.metrics.recall import neighbors_recall

ROUTES = ("clusters", "ggm")


@pytest.mark.parametrize("method", ROUTES)
@pytest.mark.parametrize("rows", [160, 240])
@pytest.mark.parametrize("recall", [0.5, 0.9, 0.99])
def test_the_recall_of_all_rows(
    recall: float, rows: int, method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_shards(monkeypatch, rows)
    points = clustered(500)  # fewer rows than are sampled: recall is measured on all of them
    graph = built(points, 6, tmp_path, method, recall=recall)
    truth = check_built(graph, points)
    assert graph.report is not None
    measured = neighbors_recall(lists(graph), truth)
    assert graph.report.estimate.by_index == measured.by_index
    assert graph.report.estimate.by_distance == measured.by_distance >= recall
    assert (graph.report.reached, graph.report.target, graph.method) == (True, recall, "nn-descent")
    assert contents(tmp_path / "graph") == ["distances.npy", "indices.npy", "lock", "manifest.json"]


@pytest.mark.parametrize("method", ROUTES)
def test_the_recall_of_a_sample(method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_shards(monkeypatch, 900)
    points = clustered(4000)
    graph = built(points, 6, tmp_path, method, recall=0.8)
    truth = tonari.knn_graph(points, 6)
    assert graph.report is not None
    measured = neighbors_recall(lists(graph), lists(truth))
    assert graph.report.estimate.rows == 1000
    assert graph.report.estimate.low - 0.01 <= measured.by_distance <= graph.report.estimate.high + 0.01
    assert measured.by_distance >= 0.8


@pytest.mark.parametrize("method", ROUTES)
def test_the_largest_seed_serves_every_shard(method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_shards(monkeypatch, 200)
    points = clustered(500)
    check_built(built(points, 6, tmp_path, method, recall=0.9, seed=2**32 - 1), points)


@pytest.mark.parametrize("metric", MOST_METRICS)
@pytest.mark.parametrize("method", ROUTES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8", pytest.param("float16", marks=pytest.mark.full)])
def test_metrics_and_dtypes(
    dtype: str, method: str, metric: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = np.abs(20 * clustered(300)).clip(0, 200).astype(dtype)
    if (method, metric) == ("clusters", "inner_product"):
        with pytest.raises(Unsupported, match="use method='ggm' or 'exact'"):
            built(points, 5, tmp_path, method, metric=metric, recall=0.5)
        return
    by_shards(monkeypatch, 120)
    graph = built(points, 5, tmp_path, method, metric=metric, recall=0.5)
    check_built(graph, points, metric)


@pytest.mark.parametrize("name", ["all_equal", "offset_float64", "zero_rows"])
@pytest.mark.parametrize("method", ROUTES)
def test_hostile_points(method: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_shards(monkeypatch, 100)
    points = checks.HOSTILE[name](350, 6, 0)
    graph = built(points, 5, tmp_path, method, recall=0.5)
    check_built(graph, points)


@pytest.mark.parametrize(
    ("n", "k", "rows"), [(2, 1, 1), (3, 2, 2), (9, 8, 3), (10, 3, 2), (17, 3, 4), (40, 39, 25), (41, 5, 8)]
)
@pytest.mark.parametrize("method", ROUTES)
def test_small_graphs_have_no_missing_entries(
    method: str, n: int, k: int, rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if method == "ggm":  # whose shards have more than k rows
        rows = max(rows, 2 * (k + 1))
    by_shards(monkeypatch, rows)
    points = checks.gaussian(n, 3)
    graph = built(points, k, tmp_path, method, recall=0.5)
    check_built(graph, points)


@pytest.mark.parametrize("method", ["exact", *ROUTES])
def test_neither_order_nor_workers_change_the_bits(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_shards(monkeypatch, 110)
    np.save(tmp_path / "points.npy", clustered(500))
    given: dict[str, Any] = {"method": method} | ({} if method == "exact" else {"recall": 0.9})
    wanted = tonari.build_graph(tmp_path / "points.npy", 5, tmp_path / "wanted", **given)
    for workers, threads in ((1, 1), (3, 2)):
        with monkeypatch.context() as patch:
            by_executor(patch, Shuffled(workers, workers))
            graph = tonari.build_graph(tmp_path / "points.npy", 5, tmp_path / str(workers), threads=threads, **given)
        assert_same_neighbors(lists(graph), lists(wanted))


@pytest.mark.parametrize("shards", [2, 3, 5, 6])
def test_any_number_of_shards_is_merged(shards: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_shards(monkeypatch, -(-360 // shards))
    points = clustered(360)
    graph = built(points, 6, tmp_path, "ggm", recall=0.9)
    measured = neighbors_recall(lists(graph), check_built(graph, points))
    assert measured.by_distance >= 0.9
