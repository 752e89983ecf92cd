"""Graphs from the results of other libraries: sorted, with the point itself in the right column, bad lists refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks, consumers
from tonari import KNNGraph

METRICS = ("euclidean", "sqeuclidean", "inner_product", "l1")


def _assert_same(found: KNNGraph, graph: KNNGraph) -> None:
    assert (found.metric, found.include_self, found.method) == (graph.metric, graph.include_self, "imported")
    assert found.distances.dtype == graph.distances.dtype
    np.testing.assert_array_equal(found.indices, graph.indices)
    np.testing.assert_array_equal(found.distances, graph.distances)


def _shuffled(graph: KNNGraph) -> tuple[Any, Any]:
    order = np.random.default_rng(0).permuted(np.tile(np.arange(graph.k), (graph.n, 1)), axis=1)
    return np.take_along_axis(graph.indices, order, axis=1), np.take_along_axis(graph.distances, order, axis=1)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("include_self", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lists_in_any_order_become_the_graph(metric: str, include_self: bool, dtype: Any) -> None:
    points = checks.duplicates(60, 3).astype(dtype)
    graph = tonari.knn_graph(points, 7, metric=metric, include_self=include_self)
    _assert_same(KNNGraph.from_arrays(*_shuffled(graph), metric=metric, include_self=include_self), graph)


def test_self_is_taken_out_wherever_it_is() -> None:
    points, graph = consumers.hostile(6)
    with_self = tonari.knn_graph(points, 7, include_self=True)
    _assert_same(KNNGraph.from_arrays(*_shuffled(with_self)), graph)
    # A search of points among themselves lists the seven nearest, which may lack the point itself among its duplicates.
    found = tonari.search(points, points, 7)
    lacking = ~(found.indices == np.arange(60)[:, None]).any(axis=1)
    assert 0 < lacking.sum() < 60
    made = KNNGraph.from_arrays(found.indices, found.distances)
    np.testing.assert_array_equal(made.distances, graph.distances)
    np.testing.assert_array_equal(made.indices[lacking], found.indices[lacking, :6])


def test_the_distance_of_self_is_that_of_the_definition() -> None:
    indices, distances = np.array([[1, 0], [1, 0]]), np.array([[2.0, 1e-5], [3e-5, 2.0]])
    made = KNNGraph.from_arrays(indices, distances, include_self=True)
    assert made.distances.tolist() == [[0.0, 2.0], [0.0, 2.0]]
    made = KNNGraph.from_arrays(indices, np.array([[2.0, 1.5], [0.5, 2.0]]), metric="ip", include_self=True)
    assert made.distances.tolist() == [[1.5, 2.0], [0.5, 2.0]]


def test_missing_neighbours_go_to_the_end() -> None:
    made = KNNGraph.from_arrays(np.array([[-1, 2], [2, 0], [1, -1]]), np.array([[0, 2], [1, 1], [1, np.nan]], "f2"))
    assert made.indices.tolist() == [[2, -1], [0, 2], [1, -1]]
    assert made.distances.tolist() == [[2, np.inf], [1, 1], [1, np.inf]]
    assert made.distances.dtype == np.float32


@pytest.mark.parametrize(
    ("indices", "distances", "error", "message"),
    [
        ([[1.0], [0.0]], [[1], [0]], TypeError, "indices: got float64; .* indices come first"),
        ([[1], [2]], [[1.0], [1.0]], ValueError, "row 1 has an index outside -1 to 1"),
        ([[1], [-2]], [[1.0], [1.0]], ValueError, "row 1 has an index outside -1 to 1"),
        ([[1], [0]], [[1.0], [-1e-9]], ValueError, r"row 1 has a negative distance; use numpy.maximum"),
        ([[1], [0]], [[1.0], [np.nan]], ValueError, "row 1 has a distance that is NaN"),
        ([[1, 0], [0, 0]], [[1.0, 0.0], [1.0, 1.0]], ValueError, "row 1 lists a point twice"),
        ([[1, 1], [1, 0]], [[1.0, 1.0], [1.0, 1.0]], ValueError, "row 0 lists a point twice"),
        ([[0], [1]], [[0.0], [0.0]], ValueError, "no neighbour other than the point itself"),
        ([[1], [0]], [[1.0, 1.0]], ValueError, r"shape \(2, 1\) and distances \(1, 2\)"),
        ([1, 0], [1.0, 1.0], ValueError, r"expected a non-empty array of shape \(n, k\), got \(2,\)"),
    ],
)
def test_refuses(indices: Any, distances: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        KNNGraph.from_arrays(np.array(indices), np.array(distances))


def test_self_that_is_lacking_is_refused_where_it_is_asked_for() -> None:
    _, graph = consumers.hostile()
    with pytest.raises(ValueError, match="row 0 does not have its own point"):
        KNNGraph.from_arrays(graph.indices, graph.distances, include_self=True)


@pytest.mark.parametrize("include_self", [False, True])
@pytest.mark.parametrize("order", ["distance", "index"])
def test_a_matrix_brings_the_graph_back(include_self: bool, order: Any) -> None:
    graph = consumers.with_missing(consumers.hostile(6, include_self)[1])
    _assert_same(KNNGraph.from_csr(graph.to_csr(order=order), include_self=include_self), graph)
    without = graph if not include_self else KNNGraph.from_arrays(graph.indices, graph.distances)
    _assert_same(KNNGraph.from_csr(graph.to_csr(order=order).tocoo()), without)


def test_rows_of_a_matrix_may_differ_in_length() -> None:
    _, graph = consumers.hostile(3)
    union = graph.to_csr(symmetric="union")
    made = KNNGraph.from_csr(union)
    assert made.k == np.diff(union.indptr).max()
    assert (made.to_csr() != union).nnz == 0
    assert made.to_csr().nnz == union.nnz  # including zeros


def test_the_longest_row_of_a_matrix_keeps_its_neighbours_though_others_have_self() -> None:
    from scipy.sparse import csr_matrix

    rows, columns = [0, 0, 1, 1, 2], [0, 1, 0, 2, 1]
    made = KNNGraph.from_csr(csr_matrix(([0.0, 1.0, 1.0, 3.0, 3.0], (rows, columns))))
    assert made.indices.tolist() == [[1, -1], [0, 2], [1, -1]]


def test_refuses_matrices_that_are_no_graph() -> None:
    from scipy.sparse import csr_matrix

    with pytest.raises(TypeError, match="expected a SciPy sparse matrix or array, got ndarray"):
        KNNGraph.from_csr(np.eye(3))
    with pytest.raises(ValueError, match=r"expected a square one with entries, got shape \(2, 3\)"):
        KNNGraph.from_csr(csr_matrix(np.ones((2, 3))))
    with pytest.raises(ValueError, match="with 0 entries"):
        KNNGraph.from_csr(csr_matrix((3, 3)))
    with pytest.raises(TypeError, match="expected distances, got bool"):
        KNNGraph.from_csr(csr_matrix(np.ones((2, 2), bool)))


def test_faiss_returns_squares_first() -> None:
    indices, distances = np.array([[0, 1, -1], [1, 0, -1]]), np.array([[-1e-6, 4, 3e38], [0, 4, 3e38]], np.float32)
    assert KNNGraph.from_faiss(distances, indices).distances.tolist() == [[2.0, np.inf], [2.0, np.inf]]
    squared = KNNGraph.from_faiss(distances, indices, metric="sqeuclidean", include_self=True)
    assert squared.distances.tolist() == [[0.0, 4.0, np.inf], [0.0, 4.0, np.inf]]
    with pytest.raises(TypeError, match="distances: got int64; faiss returns"):
        KNNGraph.from_faiss(indices, distances)
    with pytest.raises(ValueError, match=r"from_arrays\(I, 1 - D, metric='cosine'\)"):
        KNNGraph.from_faiss(distances, indices, metric="cosine")


@pytest.mark.interop
@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "inner_product", "l1", "linf"])
def test_a_search_by_faiss_is_the_graph(metric: str) -> None:
    faiss: Any = consumers.consumer("faiss")
    points = np.random.default_rng(0).integers(-9, 9, (80, 4)).astype(np.float32)  # exact in float32, with ties
    names = {"inner_product": "METRIC_INNER_PRODUCT", "l1": "METRIC_L1", "linf": "METRIC_Linf"}
    index = faiss.IndexFlat(4, getattr(faiss, names.get(metric, "METRIC_L2")))
    index.add(points)
    made = KNNGraph.from_faiss(*index.search(points, 11), metric=metric)
    graph = tonari.knn_graph(points, 10, metric=metric)
    if metric == "inner_product":  # a point may be missing among its own eleven nearest
        assert made.k == 10
        return
    np.testing.assert_array_equal(made.distances, graph.distances)
