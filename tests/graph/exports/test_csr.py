"""A graph as a SciPy matrix: order, the point itself, both directions, dtypes, and refusals."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.graphs import K, N, true_graph
from tonari.graph.knn_graph import KNNGraph


def _with_missing() -> KNNGraph:
    graph = true_graph()
    graph.indices[3, 2:], graph.distances[3, 2:] = -1, np.inf
    graph.indices[7], graph.distances[7] = -1, np.inf
    return graph


def test_csr_keeps_the_order_and_every_entry() -> None:
    graph = true_graph()
    matrix = graph.to_csr()
    assert type(matrix).__name__ == "csr_matrix"  # scanpy does not accept csr_array
    assert matrix.shape == (N, N)
    assert matrix.indptr.tolist() == list(range(0, N * K + 1, K))
    assert matrix.indices.reshape(N, K).tolist() == graph.indices.tolist()
    assert matrix.data.reshape(N, K).tobytes() == graph.distances.tobytes()
    assert matrix.indices.dtype == matrix.indptr.dtype == np.int32
    matrix.data[:] = -1
    matrix.indices[:] = 0
    assert graph.distances.min() > 0, "the matrix shares memory with the graph"
    assert graph.indices.max() > 0


def test_csr_in_order_of_index() -> None:
    graph = true_graph()
    matrix = graph.to_csr(order="index")
    assert matrix.has_canonical_format
    assert (np.diff(matrix.indices.reshape(N, K)) > 0).all()
    np.testing.assert_array_equal(matrix.toarray(), graph.to_csr().toarray())
    assert not graph.to_csr().has_sorted_indices


@pytest.mark.parametrize("order", ["distance", "index"])
def test_csr_keeps_distances_of_zero_and_drops_missing_entries(order: Any) -> None:
    equal = true_graph(checks.all_equal(6, 2), k=3).to_csr(order=order)
    assert equal.nnz == 18
    assert not equal.data.any()
    matrix = _with_missing().to_csr(order=order)
    counts = np.diff(matrix.indptr)
    assert counts[3] == 2
    assert counts[7] == 0
    assert matrix.nnz == N * K - 3 - 5
    assert np.isfinite(matrix.data).all()
    assert sorted(matrix[3].indices) == sorted(true_graph().indices[3, :2])


@pytest.mark.parametrize("has", [True, False])
@pytest.mark.parametrize("wants", [True, False, None])
def test_csr_with_and_without_self(has: bool, wants: bool | None) -> None:
    graph = true_graph(include_self=has, k=K + has)
    matrix = graph.to_csr(include_self=wants)
    expected = has if wants is None else wants
    assert (np.diff(matrix.indptr) == K + expected).all()
    rows = matrix.indices.reshape(N, -1)
    assert rows[:, int(expected) :].tolist() == true_graph().indices.tolist()
    if expected:
        assert rows[:, 0].tolist() == list(range(N))
        assert not matrix.data.reshape(N, -1)[:, 0].any()
    assert matrix.indices.dtype == np.int32
    assert matrix.data.dtype == np.float32


def test_csr_adds_self_to_a_row_without_neighbours() -> None:
    matrix = _with_missing().to_csr(include_self=True)
    assert matrix[7].indices.tolist() == [7]
    assert np.diff(matrix.indptr)[3] == 3


def test_csr_of_similarities() -> None:
    without = true_graph(metric="inner_product")
    with pytest.raises(ValueError, match="build it with include_self=True"):
        without.to_csr(include_self=True)
    assert without.to_csr().nnz == N * K
    points = checks.gaussian(N, 3)
    kept = true_graph(points, metric="inner_product", include_self=True).to_csr(include_self=True)
    np.testing.assert_allclose(kept.diagonal(), np.square(points).sum(axis=1), rtol=1e-6)


def test_csr_refuses_another_order_and_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match='order=\'row\': expected "distance" or "index"'):
        true_graph().to_csr(order="row")  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    with pytest.raises(ImportError, match=r"pip install 'tonari\[sparse\]'"):
        true_graph().to_csr()


@pytest.mark.parametrize("symmetric", [None, "union", "mutual"])
@pytest.mark.parametrize("order", ["distance", "index"])
@pytest.mark.parametrize("include_self", [False, True])
@pytest.mark.parametrize("dtype", [None, "float32", np.float64])
def test_csr_of_a_dtype_has_the_same_entries_in_the_same_order(
    dtype: Any, include_self: bool, order: Any, symmetric: Any
) -> None:
    for points in (checks.gaussian(40, 3), checks.offset_float64(40, 3)):
        graph = tonari.knn_graph(points, 4)
        given: dict[str, Any] = {"order": order, "include_self": include_self, "symmetric": symmetric}
        plain, made = graph.to_csr(**given), graph.to_csr(dtype=dtype, **given)
        assert made.data.dtype == np.dtype(dtype or graph.distances.dtype)
        assert made.data.tobytes() == plain.data.astype(made.data.dtype).tobytes()
        assert made.indices.tolist() == plain.indices.tolist()
        assert made.indptr.tolist() == plain.indptr.tolist()


def _both_ways(graph: KNNGraph, how: str, include_self: bool) -> dict[tuple[int, int], float]:
    """Compute a symmetric matrix entry by entry."""
    nearer = max if graph.metric == "inner_product" else min
    first = int(graph.include_self)
    listed = {
        (i, int(j)): float(value)
        for i in range(graph.n)
        for j, value in zip(graph.indices[i, first:], graph.distances[i, first:], strict=True)
        if j >= 0
    }
    both = {}
    for (i, j), value in listed.items():
        other = listed.get((j, i))
        if how == "union" or other is not None:
            both[i, j] = both[j, i] = value if other is None else nearer(value, other)
    if include_self:
        both |= {(i, i): float(graph.distances[i, 0]) if first else 0.0 for i in range(graph.n)}
    return both


def _odd(graph: KNNGraph) -> KNNGraph:
    """Make a graph as if from elsewhere: its distances depend on the direction."""
    graph.distances[:] *= 1 + np.arange(N)[:, None] / 100
    return graph


SYMMETRIC: dict[str, Any] = {
    "plain": lambda: (true_graph(), False),
    "with self": lambda: (true_graph(include_self=True), True),
    "self added": lambda: (true_graph(), True),
    "self taken away": lambda: (true_graph(include_self=True), False),
    "similarities": lambda: (true_graph(metric="inner_product", include_self=True), True),
    "all equal": lambda: (true_graph(checks.all_equal(N, 2)), True),
    "duplicates": lambda: (true_graph(checks.duplicates(N, 2)), False),
    "missing": lambda: (_with_missing(), False),
    "differing distances": lambda: (_odd(_with_missing()), False),
    "differing similarities": lambda: (_odd(true_graph(metric="inner_product")), False),
}


@pytest.mark.parametrize("order", ["distance", "index"])
@pytest.mark.parametrize("how", ["union", "mutual"])
@pytest.mark.parametrize("what", SYMMETRIC)
def test_csr_both_ways(what: str, how: Any, order: Any) -> None:
    graph, include_self = SYMMETRIC[what]()
    matrix = graph.to_csr(symmetric=how, order=order, include_self=include_self)
    wanted = _both_ways(graph, how, include_self)
    rows = np.repeat(np.arange(N), np.diff(matrix.indptr))
    entries = list(zip(rows.tolist(), matrix.indices.tolist(), strict=True))
    assert len(entries) == len(set(entries)) == len(wanted)  # also those at distance 0
    assert dict(zip(entries, matrix.data.tolist(), strict=True)) == wanted
    sign = -1 if graph.metric == "inner_product" else 1
    keys: dict[str, Any] = {
        "index": lambda entry: entry,
        "distance": lambda entry: (entry[0], entry[0] != entry[1], sign * wanted[entry], entry[1]),
    }
    assert entries == sorted(entries, key=keys[order])
    assert type(matrix).__name__ == "csr_matrix"
    assert matrix.indices.dtype == matrix.indptr.dtype == np.int32
    assert matrix.data.dtype == np.float32


def test_csr_refuses_another_dtype_or_symmetry() -> None:
    with pytest.raises(TypeError, match="dtype=float16: expected float32 or float64"):
        true_graph().to_csr(dtype="float16")
    with pytest.raises(TypeError, match="dtype='flot': expected float32 or float64"):
        true_graph().to_csr(dtype="flot")
    with pytest.raises(ValueError, match='symmetric=\'max\': expected "union", "mutual" or None'):
        true_graph().to_csr(symmetric="max")  # type: ignore[arg-type]
