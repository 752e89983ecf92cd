"""Core distances and mutual reachability by definition, and the clusters of hdbscan and fast_hdbscan."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks, consumers

pytest.importorskip("scipy.sparse", reason="matrices")


@pytest.mark.parametrize("include_self", [False, True])
@pytest.mark.parametrize("min_samples", [1, 5])
@pytest.mark.parametrize("data", [checks.gaussian, checks.duplicates])
def test_core_distances_and_reachability_by_definition(include_self: bool, min_samples: int, data: Any) -> None:
    points = data(60, 3)
    graph = tonari.knn_graph(points, 5 + include_self, include_self=include_self)
    distances = np.linalg.norm(points[:, None].astype(np.float64) - points, axis=2).astype(np.float32)
    core = np.sort(distances, axis=1)[:, min_samples]
    np.testing.assert_array_equal(graph.core_distances(min_samples), core)
    found = graph.mutual_reachability(min_samples)
    edges = {(i, j) for i in range(60) for j in tonari.knn_graph(points, 5).indices[i].tolist()}
    assert set(zip(*found.nonzero(), strict=True)) <= (both := edges | {(j, i) for i, j in edges})
    assert found.nnz == len(both)  # including distances of 0
    rows = np.repeat(np.arange(60), np.diff(found.indptr))
    reach = np.maximum(distances[rows, found.indices], np.maximum(core[rows], core[found.indices]))
    np.testing.assert_array_equal(found.data, reach)


def test_what_is_returned_is_not_the_graph_s() -> None:
    graph = tonari.knn_graph(checks.gaussian(60, 3), 5)
    before = graph.distances.copy()
    graph.core_distances(3)[:] = -1
    graph.mutual_reachability(3).data[:] = -1
    np.testing.assert_array_equal(graph.distances, before)


def test_zeros_are_kept_or_nearly_so() -> None:
    _, graph = consumers.hostile(12)
    fast, slow = graph.to_fast_hdbscan(5), tonari.knn_graph(consumers.hostile()[0], 59).to_hdbscan(5)
    for matrix in (fast, slow):
        assert matrix.dtype == np.float64
        assert (matrix != matrix.T).nnz == 0
        assert not matrix.diagonal().any()
    assert (fast.data == 0).any()
    assert slow.data.min() > 0
    assert slow.data.min() == np.finfo(np.float64).smallest_subnormal


def test_refuses_what_would_be_noise_or_an_error() -> None:
    points, graph = consumers.hostile(5)
    for export in (graph.core_distances, graph.mutual_reachability, graph.to_hdbscan, graph.to_fast_hdbscan):
        with pytest.raises(ValueError, match=r"min_samples=6: the graph has 5 .* k=6 or more.*min_cluster_size"):
            export(6)
    with pytest.raises(ValueError, match="min_samples=5: row 7 has fewer neighbours"):
        consumers.with_missing(graph).to_fast_hdbscan(5)
    assert consumers.with_missing(graph).core_distances(3).shape == (60,)
    apart = np.concatenate([points, points + 1e3])
    with pytest.raises(ValueError, match=r"one connected component, and the graph has \d+; .* larger k than 5"):
        tonari.knn_graph(apart, 5).to_hdbscan(5)
    with pytest.raises(ValueError, match="HDBSCAN reads distances"):
        tonari.knn_graph(points, 5, metric="inner_product", include_self=True).core_distances(2)


@pytest.mark.interop
@pytest.mark.parametrize("name", ["hdbscan", "fast_hdbscan"])
def test_clusters_are_those_of_the_points(name: str) -> None:
    library: Any = consumers.consumer(name)
    metrics: Any = consumers.consumer("sklearn.metrics")
    points = consumers.clusters(apart=1.5)[0].astype(np.float64)
    given = {"min_samples": 8, "min_cluster_size": 15}
    graph = tonari.knn_graph(points, 120)
    matrix = graph.to_hdbscan(8) if name == "hdbscan" else graph.to_fast_hdbscan(8)
    exact = {"approx_min_span_tree": False} if name == "hdbscan" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = library.HDBSCAN(metric="precomputed", **given).fit(matrix)
        own = library.HDBSCAN(**given, **exact).fit(points)
    assert own.labels_.max() >= 1
    # Many mutual reachability distances are the same core distance, so there are several minimum spanning trees, in
    # which a point at the border may belong to another cluster; the lengths of their edges are the same.
    trees = (np.sort(each._single_linkage_tree[:, 2]) for each in (ours, own))
    np.testing.assert_allclose(*trees, rtol=1e-5, atol=1e-300)
    assert metrics.adjusted_rand_score(ours.labels_, own.labels_) > 0.98
