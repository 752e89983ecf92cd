"""Graphs by metrics of transformed rows, merged and changed: they equal new graphs, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tonari.graph import tuning
from tonari.graph.knn_graph import KNNGraph

K = 5


def lists(graph: KNNGraph) -> tonari.Neighbors:
    return tonari.Neighbors(graph.to_numpy().distances, graph.to_numpy().indices)


@pytest.fixture(autouse=True)
def _no_new_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    """For so few points, a new graph is the fastest way."""
    for name in ("CHANGED_ENTRY", "SEARCHED_AGAIN"):
        monkeypatch.setattr(tuning, name, 0.0)


SHARES = np.abs(checks.gaussian(90, 4, dtype=np.float64)) + 0.1
SHARES /= SHARES.sum(axis=1, keepdims=True)
SHARES[50:60] = SHARES[:10]
CHANGED: dict[str, dict[str, Any]] = {
    "weights": {"weights": [1.0, 4.0, 0.0, 0.5]},
    "weights of l1": {"metric": "l1", "weights": [1.0, 3.0, 0.0, 0.5]},
    "transform": {"metric": "cosine", "transform": checks.gaussian(4, 3, dtype=np.float64)},
    "mahalanobis": {"metric": "mahalanobis", "VI": np.diag([1.0, 4.0, 2.0, 0.5])},
    "seuclidean": {"metric": "seuclidean", "V": [1.0, 4.0, 2.0, 0.5]},
    "hellinger": {"metric": "hellinger"},
    "braycurtis": {"metric": "braycurtis"},
    "haversine": {"metric": "haversine"},
    "minkowski": {"metric": "minkowski:3"},
}


@pytest.mark.parametrize("name", CHANGED)
@pytest.mark.parametrize("include_self", [False, True])
def test_graphs_of_transformed_rows(name: str, include_self: bool) -> None:
    rows, given = SHARES[:, :2] if name == "haversine" else SHARES, CHANGED[name] | {"include_self": include_self}
    graph, other = (tonari.knn_graph(part, K, **given) for part in (rows[:70], rows[70:]))
    ids, new = [3, 60, 11], rows[[20, 80, 50]]
    for found, points in (
        (graph.add(rows[:70], rows[70:]), rows),
        (graph.add(rows[:70], rows[70:72]), rows[:72]),
        (tonari.merge(graph, other, rows[:70], rows[70:]), rows),
        (graph.remove(rows[:70], ids), np.delete(rows[:70], ids, axis=0)),
        (graph.replace(rows[:70], ids, new), np.array([*rows[:70]])),
        (graph.replace(rows[:70], [], rows[:0]), rows[:70]),
    ):
        if found.n == 70 and points is not rows[:70] and not np.shares_memory(points, rows):
            points[ids] = new
        expected = tonari.knn_graph(points, K, **given)
        for ours, theirs in zip(lists(found), lists(expected), strict=True):
            assert ours.tobytes() == theirs.tobytes()
        assert (found.metric, found.weights, found.include_self) == (graph.metric, graph.weights, include_self)
        assert np.array_equal(found.transform, graph.transform)
        assert found.lists.exact


def test_graphs_of_other_transformed_rows() -> None:
    graph = tonari.knn_graph(SHARES, K, metric="hellinger")
    with pytest.raises(ValueError, match=r"row 0 lists point \d+ with hellinger .*, but rows 0 and \d+ of points have"):
        graph.remove(SHARES[::-1], [1])
    with pytest.raises(ValueError, match="the graph has 90 rows, points 80: they must be the same points"):
        graph.add(SHARES[:80], SHARES[:2])
    weighted = tonari.knn_graph(SHARES, K, weights=[1.0, 2.0, 3.0, 4.0])
    with pytest.raises(ValueError, match="graph_a and graph_b have different weights"):
        tonari.merge(weighted, tonari.knn_graph(SHARES, K), SHARES, SHARES)
    with pytest.raises(ValueError, match="pass the points from which"):
        weighted.remove(SHARES[::-1], [1])
