"""scikit-learn with metric="precomputed" gives the result of its own neighbours."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import consumers

pytest.importorskip("sklearn", reason="what takes the graph")

from sklearn import cluster, manifold, neighbors


@pytest.mark.parametrize("include_self", [False, True])
def test_rows_have_self_first_and_keep_zeros(include_self: bool) -> None:
    points, graph = consumers.hostile(5 + include_self, include_self)
    matrix = graph.to_sklearn()
    assert (np.diff(matrix.indptr) == 6).all()
    np.testing.assert_array_equal(matrix.indices[::6], np.arange(60))
    assert not matrix.data[::6].any()
    np.testing.assert_array_equal(matrix.data.reshape(60, 6)[:, 1:], tonari.knn_graph(points, 5).distances)


def test_local_outlier_factors_are_the_same() -> None:
    points = consumers.clusters(copies=1)[0].astype(np.float64)  # which of several copies is listed is undefined
    own = neighbors.LocalOutlierFactor(20).fit(points)
    ours = neighbors.LocalOutlierFactor(20, metric="precomputed").fit(tonari.knn_graph(points, 20).to_sklearn())
    np.testing.assert_allclose(ours.negative_outlier_factor_, own.negative_outlier_factor_, rtol=1e-9)


def test_no_warning_that_rows_are_not_sorted() -> None:
    _, graph = consumers.hostile(5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nearest = neighbors.NearestNeighbors(n_neighbors=5, metric="precomputed").fit(graph.to_sklearn())
        np.testing.assert_array_equal(nearest.kneighbors()[0], graph.distances)


def test_isomap_and_spectral_clustering_are_the_same() -> None:
    points = consumers.clusters(200, apart=0.5, copies=1)[0].astype(np.float64)
    matrix = tonari.knn_graph(points, 31).to_sklearn()
    isomaps = [
        manifold.Isomap(n_neighbors=12, metric=metric).fit(given).dist_matrix_
        for metric, given in (("euclidean", points), ("precomputed", matrix))
    ]
    np.testing.assert_allclose(*isomaps, rtol=1e-9)
    given: dict[str, Any] = {"n_neighbors": 12, "random_state": 0, "n_clusters": 4}
    spectral = [
        cluster.SpectralClustering(affinity=affinity, **given).fit(x).affinity_matrix_.toarray()
        for affinity, x in (("nearest_neighbors", points), ("precomputed_nearest_neighbors", matrix))
    ]
    np.testing.assert_array_equal(*spectral)


@pytest.mark.full
def test_tsne_is_the_same() -> None:
    points = consumers.clusters(200, copies=1)[0].astype(np.float64)
    matrix = tonari.knn_graph(points, 31).to_sklearn()
    tsne: dict[str, Any] = {"perplexity": 10, "init": "random", "random_state": 0, "max_iter": 250}
    ours = manifold.TSNE(**tsne, metric="precomputed").fit_transform(matrix)
    np.testing.assert_allclose(ours, manifold.TSNE(**tsne).fit_transform(points), rtol=1e-3, atol=1e-3)


def test_dbscan_is_the_same_or_the_graph_is_refused() -> None:
    points = consumers.clusters()[0].astype(np.float64)
    eps = 2.0
    # of the ball with the most points
    within = (np.linalg.norm(points[:, None] - points, axis=2) <= eps).sum(axis=1).max() - 1
    own = cluster.DBSCAN(eps=eps).fit(points).labels_
    matrix = tonari.knn_graph(points, within + 1).to_sklearn(eps=eps)
    np.testing.assert_array_equal(cluster.DBSCAN(eps=eps, metric="precomputed").fit(matrix).labels_, own)
    with pytest.raises(ValueError, match=rf"eps=2.0: \d+ of 400 lists of k={within} .* such as {min(399, 2 * within)}"):
        tonari.knn_graph(points, int(within)).to_sklearn(eps=eps)
    with pytest.raises(ValueError, match="1 of 400 lists"):
        consumers.with_missing(tonari.knn_graph(points, int(within) + 1)).to_sklearn(eps=eps)
    assert tonari.knn_graph(points, 399).to_sklearn(eps=1e9).nnz == 400 * 400


def test_a_list_that_ends_at_eps_may_lack_points_there() -> None:
    line = np.arange(6, dtype=np.float32)[:, None]
    graph = tonari.knn_graph(line, 2)
    assert graph.distances[:, -1].max() == 2
    for eps, count in ((1.0, 4), (2.0, 6)):  # four lists end at distance 1, the first and the last at 2
        with pytest.raises(ValueError, match=f"eps={eps}: {count} of 6 lists"):
            graph.to_sklearn(eps=eps)
    assert graph.to_sklearn(eps=0.999).nnz == 18


def test_refuses() -> None:
    points, graph = consumers.hostile(5)
    with pytest.raises(ValueError, match="scikit-learn reads distances"):
        tonari.knn_graph(points, 5, metric="inner_product", include_self=True).to_sklearn()
    for bad in (-1, "1", float("nan")):
        with pytest.raises(ValueError, match="expected a number of at least 0"):
            graph.to_sklearn(eps=bad)  # type: ignore[arg-type]


def test_filters_leave_points_out_of_the_balls_of_dbscan() -> None:
    points = np.random.default_rng(0).random((40, 2), dtype=np.float32)
    graph = tonari.knn_graph(points, 10, batch=np.arange(40) % 2)
    with pytest.raises(ValueError, match=r"was built with batch=, .*DBSCAN assumes"):
        graph.to_sklearn(eps=0.01)
    assert graph.to_sklearn().shape == (40, 40)
