"""A tree for one search has no surplus copies of rows; trees for several searches have all rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.checks import assert_same_neighbors
from tonari.core.results.neighbors import Neighbors
from tonari.kdtree.cpu import method
from tonari.kdtree.cpu.prepared import PreparedTree
from tonari.kdtree.plan import TREE_METRICS
from tonari.metrics.reference import brute

Array = npt.NDArray[Any]
N = 900


def with_zeros(n: int = N, d: int = 3, seed: int = 0) -> Array:
    """Make rows, half of them zero, as from a scanner without a signal."""
    points = np.abs(checks.gaussian(n, d, seed))
    points[np.random.default_rng(seed).random(n) < 0.5] = 0
    return points


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Look for copies in searches of any size; the list receives the number of points of each tree."""
    checks.look_for_copies_always(monkeypatch)
    return count_points(monkeypatch)


def count_points(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    found: list[int] = []

    class Counted(PreparedTree):
        def __init__(self, *args: Any, **given: Any) -> None:
            super().__init__(*args, **given)
            found.append(self.tree.n)

    monkeypatch.setattr(method, "PreparedTree", Counted)
    return found


@pytest.mark.parametrize("metric", TREE_METRICS)
@pytest.mark.parametrize("k", [1, 10, 200])
def test_searches(metric: str, k: int, sizes: list[int]) -> None:
    points = with_zeros()
    queries = np.vstack([points[:30], np.abs(checks.gaussian(10, 3, 1))])
    found = tonari.search(queries, points, k, metric=metric, method="kdtree")
    assert_same_neighbors(found, brute(queries, points, k, metric), metric=metric)
    assert sizes[0] < N


@pytest.mark.parametrize(
    ("dtype", "traversal"),
    [("float32", "walk"), ("float32", "buffered"), ("float64", "walk"), ("uint8", "walk"), ("uint8", "buffered")],
)
@pytest.mark.parametrize("k", [1, 12])
def test_graphs(dtype: str, traversal: str, k: int, sizes: list[int]) -> None:
    points = (with_zeros() * 30).astype(dtype)
    plan = tonari.plan(N, N, 3, k, self_join=True, dtype=dtype, method="kdtree", traversal=traversal)
    graph = tonari.knn_graph(points, k, plan=plan)
    expected = brute(points, points, k, "euclidean", self_ids=np.arange(N))
    assert_same_neighbors(Neighbors(graph.distances, graph.indices), expected)
    assert sizes[0] < N


def test_hardly_any_row_is_another(sizes: list[int]) -> None:
    points = np.zeros((N, 2), np.float32)
    points[[3, 700]] = 1
    found = tonari.search(points[:9], points, 5, method="kdtree")
    assert_same_neighbors(found, brute(points[:9], points, 5))
    assert sizes == [6 + 2]


def test_searches_to_come_find_all_points(sizes: list[int]) -> None:
    points = with_zeros()
    index = tonari.Index(points, method="kdtree")
    for k in (2, 400):
        assert_same_neighbors(index.search(points[:20], k), brute(points[:20], points, k))
    assert sizes == [N]


@pytest.mark.parametrize("method_name", ["auto", "kdtree"])
def test_what_else_is_found_in_trees_has_all_copies(method_name: str, sizes: list[int]) -> None:
    points = with_zeros(60_000)
    zeros = np.flatnonzero(~points.any(axis=1))
    queries = np.delete(points, zeros, axis=0)
    queries[0] = 0
    found = tonari.radius_search(queries, points, 1e-4, method=method_name)
    np.testing.assert_array_equal(found.indices[: found.indptr[1]], zeros)
    index = tonari.Index(points, method=method_name)
    distances, indices = index.search(queries[:1], 20_000)
    assert not distances.any()
    np.testing.assert_array_equal(indices[0], zeros[:20_000])
    assert set(sizes) == {60_000}


def test_auto_leaves_them_out(monkeypatch: pytest.MonkeyPatch) -> None:
    # Half of 60,000 points are zero: if copies stayed, each would visit all others, 900 million in total.
    sizes, points = count_points(monkeypatch), with_zeros(60_000)
    graph = tonari.knn_graph(points, 8)
    zeros = np.flatnonzero(~points.any(axis=1))
    assert sizes[-1] == 60_000 - len(zeros) + 9
    first, last = (np.asarray(graph.indices[row]) for row in (zeros[0], zeros[-1]))
    np.testing.assert_array_equal(first, zeros[1:9])
    np.testing.assert_array_equal(last, zeros[:8])
    some = np.arange(0, 60_000, 997)
    expected = brute(points[some], points, 8, "euclidean", self_ids=some)
    assert_same_neighbors(Neighbors(graph.distances[some], graph.indices[some]), expected)
