"""Components, occurrences and overlap, compared with counts by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tonari.graph import tuning
from tonari.graph.knn_graph import KNNGraph


def _graph(indices: Any, *, include_self: bool = False) -> KNNGraph:
    ids = np.array(indices, np.int32)
    return KNNGraph(ids, np.where(ids < 0, np.inf, 0.0), "euclidean", "by hand", include_self=include_self)


def _spread(graph: KNNGraph) -> list[int]:
    """Find components by propagating the smaller label until nothing changes."""
    labels = list(range(graph.n))
    for _ in range(graph.n):
        for point, row in enumerate(graph.indices.tolist()):
            for other in row:
                if other >= 0:
                    labels[point] = labels[other] = min(labels[point], labels[other])
    numbers = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    return [numbers[label] for label in labels]


@pytest.mark.parametrize("include_self", [False, True])
@pytest.mark.parametrize("n", [2, 7, 60])
@pytest.mark.parametrize("at_once", [1, 1 << 22])
def test_components_are_joined_by_neighbours_of_either_side(
    n: int, include_self: bool, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "READ_AT_ONCE", at_once)  # one row at a time, or all rows
    graph = tonari.knn_graph(checks.tight_far_clusters(n, 3), 1 + include_self, include_self=include_self)
    assert graph.connected_components().tolist() == _spread(graph)


def test_neighbours_at_distance_0_join_and_missing_ones_do_not() -> None:
    assert _graph([[1], [-1], [3], [2], [-1]]).connected_components().tolist() == [0, 0, 1, 1, 2]


def test_one_way_is_enough() -> None:
    assert _graph([[2], [2], [0]]).connected_components().tolist() == [0, 0, 0]


@pytest.mark.parametrize("include_self", [False, True])
@pytest.mark.parametrize("at_once", [40, 1 << 22])
def test_occurrence_counts_the_lists_that_have_a_point(
    include_self: bool, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "READ_AT_ONCE", at_once)
    graph = tonari.knn_graph(checks.gaussian(50, 4), 6, include_self=include_self)
    found = graph.occurrence()
    neighbours = graph.indices[:, int(include_self) :]
    assert found.tolist() == [int((neighbours == point).sum()) for point in range(50)]
    assert found.mean() == 6 - include_self
    assert found.dtype == np.int64


def test_occurrence_leaves_missing_neighbours_out() -> None:
    assert _graph([[1, -1], [0, 2], [-1, -1]]).occurrence().tolist() == [1, 1, 1]


def test_overlap_is_the_share_of_common_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "COMPARED_AT_ONCE", 60)  # blocks of two rows
    one = tonari.knn_graph(checks.gaussian(31, 4), 5)
    other = tonari.knn_graph(checks.gaussian(31, 4)[:, :2].copy(), 7, include_self=True)
    shares = [
        len(set(ours.tolist()) & set(theirs.tolist())) / 6
        for ours, theirs in zip(one.indices, other.indices[:, 1:], strict=True)
    ]
    np.testing.assert_allclose(one.overlap(other), shares, rtol=1e-15)
    np.testing.assert_allclose(other.overlap(one), shares, rtol=1e-15)
    assert 0 < np.mean(shares) < 1
    assert (one.overlap(one) == 1).all()


def test_overlap_of_short_lists() -> None:
    one = _graph([[1, 2], [-1, -1], [0, -1], [0, -1]])
    other = _graph([[2, -1], [-1, -1], [1, 0], [0, -1]])
    assert one.overlap(other).tolist() == [0.5, 1.0, 0.5, 1.0]


def test_overlap_with_the_exact_graph_is_the_recall() -> None:
    points = checks.gaussian(400, 12)
    graph = tonari.knn_graph(points, 8, method="nn-descent", recall=0.5, seed=1)
    truth = tonari.knn_graph(points, 8, method="exact")
    assert graph.overlap(truth).mean() == pytest.approx(graph.recall(points).by_index)


def test_what_cannot_be_compared_is_refused() -> None:
    graph = _graph([[1], [0]])
    with pytest.raises(TypeError, match="other: expected a KNNGraph, got ndarray"):
        graph.overlap(graph.indices)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="of 2 and 3 points"):
        graph.overlap(_graph([[1], [0], [0]]))


@pytest.mark.parametrize("blocks", [1, 1 << 22])
@pytest.mark.parametrize("n", [2, 7, 300, 70_000])
def test_reverse_neighbors_are_the_points_that_list_a_point(
    n: int, blocks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if n > 300 and blocks == 1:
        blocks = 100_000
    monkeypatch.setattr(tuning, "READ_AT_ONCE", blocks)
    rng = np.random.default_rng(n)
    k = min(3, n - 1)
    indices = (np.arange(n)[:, None] + np.sort(rng.choice(min(n - 1, 40), (k,), replace=False)) + 1) % n
    distances = np.sort(rng.random((n, k), dtype=np.float32), axis=1)
    indices[n // 2, k - 1 :], distances[n // 2, k - 1 :] = -1, np.inf
    graph = tonari.KNNGraph(indices.astype(np.int32), distances, "euclidean", "exact")
    found = graph.reverse_neighbors()
    rows, columns = np.nonzero(indices >= 0)
    order = np.lexsort((rows, indices[rows, columns]))
    assert found.indices.tolist() == rows[order].tolist()
    assert found.distances.tolist() == distances[rows, columns][order].tolist()
    assert np.diff(found.indptr).tolist() == graph.occurrence().tolist()
    assert (found.indices.dtype, found.distances.dtype, found.indptr.dtype) == (np.int32, np.float32, np.int64)


def test_reverse_neighbors_leave_out_the_point_itself() -> None:
    points = np.array([[0.0], [1.0], [3.0]], np.float32)
    found = tonari.knn_graph(points, 2, include_self=True).reverse_neighbors()
    assert (found.indptr.tolist(), found.indices.tolist()) == ([0, 1, 3, 3], [1, 0, 2])
    assert tonari.knn_graph(points, 1, include_self=True).reverse_neighbors().indptr.tolist() == [0, 0, 0, 0]
