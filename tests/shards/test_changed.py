"""Builds by metrics that compare transformed rows: rows are transformed when they are read."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers.checks import assert_same_neighbors
from tests.helpers.shards import by_shards, lists, small, stopped
from tonari.core.results.neighbors import Neighbors
from tonari.graph.files.directory import LARGEST_MATRIX
from tonari.metrics.transforms.change import change_for
from tonari.shards import tuning
from tonari.shards.source import ArraySource, ChangedSource, FileSource

RNG = np.random.default_rng(0)
POINTS = RNG.random((240, 6))
POINTS /= POINTS.sum(axis=1, keepdims=True)
METRICS: dict[str, dict[str, Any]] = {
    "mahalanobis": {"covariance": np.cov(POINTS.T) + 0.01 * np.eye(6)},
    "seuclidean": {"V": POINTS.var(axis=0)},
    "cosine": {"transform": RNG.standard_normal((6, 3))},
    "l1": {"weights": [1, 2, 0, 1, 1, 3]},
    "hellinger": {},
    "braycurtis": {},
}


@pytest.fixture
def points(tmp_path: Path) -> Path:
    np.save(tmp_path / "points.npy", POINTS)
    return tmp_path / "points.npy"


@pytest.mark.parametrize("metric", METRICS)
def test_a_resumed_build_has_the_bits_of_a_graph_in_memory(
    metric: str, points: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"metric": metric, **METRICS[metric]}
    expected = tonari.knn_graph(POINTS, 4, **given)
    monkeypatch.setattr(tuning, "CHANGED_BYTES", 700)  # several pieces for each slab
    stopped(points, tmp_path / "graph", "exact", 2, monkeypatch, **given)
    by_shards(monkeypatch, 60)
    graph = small(points, tmp_path / "graph", **given)
    assert_same_neighbors(lists(graph), lists(expected))
    assert (graph.metric, graph.weights) == (expected.metric, expected.weights)
    if expected.transform is not None:
        np.testing.assert_array_equal(graph.transform, expected.transform)
    if metric == "hellinger":
        found = tonari.build_neighbors(points, POINTS[:50], 4, tmp_path / "found", metric=metric)
        assert_same_neighbors(Neighbors(*map(np.array, found)), tonari.search(POINTS[:50], POINTS, 4, metric=metric))


def test_the_recall_is_measured_by_the_requested_metric(
    points: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_shards(monkeypatch, 60)
    graph = small(points, tmp_path / "graph", "clusters", metric="hellinger")
    expected = tonari.knn_graph(POINTS, 4, metric="hellinger")
    assert graph.report is not None
    share = (graph.distances <= expected.distances[:, -1:]).mean()
    assert graph.report.estimate.by_distance == pytest.approx(share, abs=1e-12)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"VI": 2 * np.eye(6), "metric": "mahalanobis"}, "of another matrix"),
        ({"metric": "euclidean"}, r"of metric='mahalanobis', not 'euclidean'"),
    ],
)
def test_another_matrix_or_metric_is_another_graph(
    given: dict[str, Any], message: str, points: Path, tmp_path: Path
) -> None:
    small(points, tmp_path / "graph", metric="mahalanobis", VI=np.eye(6))
    with pytest.raises(ValueError, match=f"holds a graph {message}"):
        small(points, tmp_path / "graph", **given)


def test_messages_name_the_range_of_a_row(points: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = POINTS.copy()
    wrong[100, 3] = -1
    monkeypatch.setattr(tuning, "CHANGED_BYTES", 96 * 90)
    with pytest.raises(ValueError, match=r"points\[90:180\]: row 10 .*-1"):
        small(wrong, tmp_path / "graph", metric="hellinger")
    with pytest.raises(ValueError, match="VI or covariance: is for rows of 5 columns, but points have 6"):
        small(points, tmp_path / "other", metric="mahalanobis", VI=np.eye(5))
    with pytest.raises(ValueError, match=r"transform: has .* bytes, and a directory stores at most"):
        small(points, tmp_path / "other", transform=np.ones((6, LARGEST_MATRIX // 48 + 1)))


def test_rows_by_range_and_by_number_are_the_same(points: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "CHANGED_BYTES", 700)
    monkeypatch.setattr(tuning, "TAKEN_AT_ONCE", 13)
    change = change_for("minkowski:3")
    assert change is not None
    ids = np.flatnonzero(RNG.random(240) < 0.5)
    for origin in (FileSource([os.fspath(points)]), ArraySource(POINTS.astype(np.float32))):
        source = pickle.loads(pickle.dumps(ChangedSource(origin, change)))
        whole = change.rows(origin.rows(0, 240), "points")
        np.testing.assert_array_equal(source.rows(3, 200), whole[3:200])
        np.testing.assert_array_equal(source.take(ids, 1), whole[ids])
