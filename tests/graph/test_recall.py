"""The recall of a graph: compared with counts by hand, ties count as found, and sampling is seeded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers import checks
from tonari.core.results.neighbors import Neighbors
from tonari.graph import recall as measuring
from tonari.graph.knn_graph import KNNGraph
from tonari.metrics import METRICS
from tonari.metrics.recall import Recall, neighbors_recall
from tonari.metrics.reference import brute

N, K = 40, 4


def graph_recall(graph: KNNGraph, points: Any, **given: Any) -> Recall:
    return measuring.graph_recall(graph.lists, points, **given)


def _graph(points: Any, k: int = K, metric: str = "euclidean") -> KNNGraph:
    distances, indices = brute(points, points, k, metric, self_ids=np.arange(len(points)))
    return KNNGraph(indices, distances, metric, "brute")


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("name", checks.HOSTILE)
def test_a_true_graph_has_recall_one(metric: str, name: str) -> None:
    points = np.abs(checks.HOSTILE[name](N, 5, 0))
    assert graph_recall(_graph(points, metric=metric), points) == Recall(1.0, 1.0, 1.0, 1.0, N, K)


@pytest.mark.parametrize("metric", ["euclidean", "inner_product"])
def test_counts_what_is_missing_and_what_is_wrong(metric: str) -> None:
    points = checks.gaussian(N, 5)
    graph = _graph(points, metric=metric)
    everything = brute(points, points, N - 1, metric, self_ids=np.arange(N))
    graph.indices[3, 2:] = -1
    graph.indices[9, 0] = everything.indices[9, -1]  # the farthest point, listed with the distance of the nearest
    graph.indices[20] = everything.indices[20, 2 : 2 + K]
    expected = 1 - (2 + 1 + 2) / (N * K)
    assert graph_recall(graph, points) == Recall(expected, expected, expected, expected, N, K)


def test_stored_distances_are_not_believed() -> None:
    points = checks.gaussian(N, 5)
    graph = _graph(points)
    graph.distances[:] = 0
    assert graph_recall(graph, points).by_distance == 1.0
    shifted = KNNGraph((np.arange(N)[:, None] + [1, 2, 3, 4]).astype(np.int32) % N, graph.distances, "l1", "wrong")
    assert graph_recall(shifted, points).by_distance < 0.5


def test_any_of_several_tied_points_will_do() -> None:
    points = checks.all_equal(N, 3)
    others = ((np.arange(N)[:, None] + [9, 10, 11, 12]) % N).astype(np.int32)
    result = graph_recall(KNNGraph(others, np.zeros((N, K), np.float32), "euclidean", "any"), points)
    assert result.by_distance == 1.0
    assert result.by_index < 0.5


def test_self_is_dropped_on_both_sides() -> None:
    points = checks.duplicates(N, 3)
    without = _graph(points)
    own = np.arange(N, dtype=np.int32)[:, None]
    with_self = KNNGraph(
        np.hstack([own, without.indices]),
        np.hstack([np.zeros((N, 1), np.float32), without.distances]),
        "euclidean",
        "brute",
        include_self=True,
    )
    assert graph_recall(with_self, points) == Recall(1.0, 1.0, 1.0, 1.0, N, K)
    only_self = KNNGraph(own, np.zeros((N, 1), np.float32), "euclidean", "brute", include_self=True)
    with pytest.raises(ValueError, match="no neighbour other than self"):
        graph_recall(only_self, points)


def test_the_sample_is_seeded_and_without_repeats() -> None:
    points = checks.gaussian(N, 5)
    graph = _graph(points)
    graph.indices[::2, 1:] = -1
    first = graph_recall(graph, points, sample=10, seed=3)
    assert first == graph_recall(graph, points, sample=10, seed=3)
    assert first.rows == 10
    assert len({graph_recall(graph, points, sample=10, seed=s).by_index for s in range(20)}) > 2
    assert graph_recall(graph, points, sample=10**6).by_index == (1 + 1 / K) / 2


def test_threads_and_progress_reach_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    points, seen = checks.gaussian(N, 5), {}

    def neighbors(queries: Any, x: Any, k: int, *, metric: str, self_ids: Any, **options: Any) -> Neighbors:
        seen.update(options)
        return brute(queries, x, k, metric, self_ids=self_ids)

    monkeypatch.setattr("tonari.graph.recall.exact.neighbors", neighbors)
    graph_recall(_graph(points), points, threads=2, progress=False)
    assert seen == {"threads": 2, "progress": False}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda g, x: graph_recall(g, x[:-1]), "the graph has 40 rows, points has 39"),
        (lambda g, x: graph_recall(g, x, sample=0), "sample=0"),
        (lambda g, x: graph_recall(g, x * np.float32(np.nan)), "points: row 0"),
        (lambda g, x: graph_recall(KNNGraph(g.indices, g.distances, "chi2", "m"), x), "negative value"),
        (lambda g, x: graph_recall(_repeated(g), x), "row 6 lists a point twice"),
        (lambda g, x: graph_recall(_repeated(g), x, sample=39), "row 6 lists a point twice"),
        (lambda g, x: neighbors_recall(_lists(g), Neighbors(g.distances[:5], g.indices[:5])), r"\(40, 4\) cannot be"),
        (lambda g, x: neighbors_recall(_lists(g), Neighbors(g.distances[:, :2], g.indices[:, :2])), "cannot be"),
        (lambda g, x: neighbors_recall(_lists(_repeated(g)), _lists(g)), "row 6 lists"),
        (lambda g, x: neighbors_recall(*[Neighbors(g.distances[:0], g.indices[:0])] * 2), "nothing to measure"),
        (lambda g, x: neighbors_recall(_lists(g), _lists(g), metric="l7"), "unknown metric"),
    ],
)
def test_refuses(call: Any, message: str) -> None:
    points = checks.gaussian(N, 5)
    with pytest.raises(ValueError, match=message):
        call(_graph(points), points)


def _lists(graph: KNNGraph) -> Neighbors:
    return Neighbors(graph.distances, graph.indices)


def _repeated(graph: KNNGraph) -> KNNGraph:
    indices = graph.indices.copy()
    indices[6, 3] = indices[6, 0]
    return KNNGraph(indices, graph.distances, graph.metric, graph.method)
