"""The graph class: attributes, refused lists, and graphs of tensors."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.devices import HAS_TORCH, needs_torch
from tests.helpers.graphs import (
    K,
    N,
    true_graph,
)
from tonari.graph.knn_graph import KNNGraph
from tonari.metrics.reference import brute

if HAS_TORCH:
    import torch


def test_describes_itself() -> None:
    graph = true_graph()
    assert (graph.n, graph.k, graph.seed, graph.include_self) == (N, K, None, False)
    assert repr(graph) == "KNNGraph(n=30, k=5, metric='euclidean', method='brute')"
    seeded = KNNGraph(np.array([[0], [1]]), np.zeros((2, 1)), "l1", "descent", include_self=True, seed=4)
    assert repr(seeded) == "KNNGraph(n=2, k=1, metric='l1', method='descent', seed=4, include_self=True)"
    assert graph == graph
    assert graph != true_graph()
    with pytest.raises(FrozenInstanceError):
        graph.metric = "l1"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda i, d: (i[:-1], d), ValueError, r"same non-empty shape \(n, k\), got \(29, 5\) and \(30, 5\)"),
        (lambda i, d: (i[:, 0], d[:, 0]), ValueError, "same non-empty shape"),
        (lambda i, d: (i[:, :0], d[:, :0]), ValueError, "same non-empty shape"),
        (lambda i, d: (i.astype(np.uint32), d), TypeError, "got uint32 and float32"),
        (lambda i, d: (i, d.astype(np.float16)), TypeError, "got int32 and float16"),
        (lambda i, d: (np.where(i == i[4, 1], N, i), d), ValueError, "has an index outside -1 to 29"),
        (lambda i, d: (np.where(i == 0, -2, i), d), ValueError, "outside -1 to"),
        (lambda i, d: (np.where(np.eye(N, K, -6, bool), np.arange(N)[:, None], i), d), ValueError, "row 6 has its own"),
    ],
)
def test_refuses(change: Any, error: type[Exception], message: str) -> None:
    graph = true_graph()
    with pytest.raises(error, match=message):
        KNNGraph(*change(graph.indices.astype(np.int32), graph.distances), "euclidean", "brute")


def test_refuses_self_where_it_must_not_be() -> None:
    with_self, without = true_graph(include_self=True), true_graph()
    with pytest.raises(ValueError, match="row 0 does not have its own point in column 0"):
        KNNGraph(without.indices, without.distances, "euclidean", "brute", include_self=True)
    with pytest.raises(ValueError, match="row 0 has its own point among its neighbours"):
        KNNGraph(with_self.indices, with_self.distances, "euclidean", "brute")
    twice = with_self.indices.copy()
    twice[5, 3] = 5
    with pytest.raises(ValueError, match="row 5 has its own point among"):
        KNNGraph(twice, with_self.distances, "euclidean", "brute", include_self=True)
    with pytest.raises(ValueError, match="unknown metric 'euclid'"):
        KNNGraph(without.indices, without.distances, "euclid", "brute")


@needs_torch
@pytest.mark.parametrize("include_self", [False, True])
@pytest.mark.parametrize(
    "how", [{"method": "exact"}, {"method": "kdtree"}, {"method": "nn-descent"}, {"metric": "inner_product"}]
)
def test_a_graph_of_tensors_in_host_memory_has_tensors(how: dict[str, Any], include_self: bool, tmp_path: Path) -> None:
    points = checks.gaussian(200, 3)
    expected = tonari.knn_graph(points, 4, include_self=include_self, **how)
    graph = tonari.knn_graph(torch.from_numpy(points), 4, include_self=include_self, **how)
    for ours, theirs in zip((graph.indices, graph.distances), (expected.indices, expected.distances), strict=True):
        assert type(theirs) is np.ndarray
        assert isinstance(ours, torch.Tensor)
        assert ours.numpy().dtype == theirs.dtype
        assert ours.numpy().tobytes() == theirs.tobytes()
    assert repr(graph) == repr(expected)
    assert graph.recall(torch.from_numpy(points), sample=50) == expected.recall(points, sample=50)
    assert (graph.to_csr() != expected.to_csr()).nnz == 0
    graph.save(tmp_path / "ours.npz")
    KNNGraph.load(tmp_path / "ours.npz").save(tmp_path / "again.npz")
    assert (tmp_path / "ours.npz").read_bytes() == (tmp_path / "again.npz").read_bytes()
    as_numpy = graph.to_numpy()
    assert type(as_numpy.indices) is type(as_numpy.distances) is np.ndarray
    assert np.shares_memory(as_numpy.distances, graph.distances.numpy())


@needs_torch
def test_a_graph_of_self_alone_has_tensors() -> None:
    assert isinstance(tonari.knn_graph(torch.zeros(5, 2), 1, include_self=True).indices, torch.Tensor)


@needs_torch
def test_a_graph_to_start_with_may_have_tensors() -> None:
    points = checks.gaussian(200, 3)
    begun = [tonari.knn_graph(x, 4, include_self=True) for x in (points, torch.from_numpy(points))]
    made = [tonari.knn_graph(points, 4, method="nn-descent", start=start) for start in begun]
    assert made[0].indices.tobytes() == made[1].indices.tobytes()


@needs_torch
def test_arrays_of_two_kinds_are_refused() -> None:
    graph = true_graph()
    with pytest.raises(TypeError, match="indices are of torch and distances of numpy: both must be"):
        KNNGraph(torch.from_numpy(graph.indices), graph.distances, "euclidean", "brute")


def test_scikit_learn_takes_the_graph() -> None:
    neighbors = pytest.importorskip("sklearn.neighbors")
    points = checks.gaussian(60, 4)
    model = neighbors.NearestNeighbors(n_neighbors=6, metric="precomputed")
    model.fit(true_graph(points, k=6).to_csr(include_self=True))
    _, ids = model.kneighbors()
    assert ids.tolist() == brute(points, points, 6, self_ids=np.arange(60)).indices.tolist()


def test_recall_of_a_true_graph_is_one() -> None:
    points = checks.gaussian(N, 3)
    result = true_graph(points).recall(points, sample=10, seed=1, threads=1)
    assert (result.by_index, result.by_distance, result.high) == (1.0, 1.0, 1.0)
    assert (result.rows, result.k) == (10, K)
    assert 0.7 < result.low < 1.0
