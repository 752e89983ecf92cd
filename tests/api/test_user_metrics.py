"""Public functions with a function or a matrix of distances."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.devices import needs_torch
from tonari.core.errors import BudgetExceeded, Unsupported
from tonari.user_metrics import tuning
from tonari.user_metrics.reference import brute, brute_within

N, M, K = 60, 9, 7
POINTS = checks.gaussian(N, 4, dtype=np.float64)
POINTS[20:30] = POINTS[:10]
QUERIES = POINTS[:M] + np.arange(M)[:, None] % 2


def manhattan(a: Any, B: Any) -> Any:
    return np.abs(B - a).sum(axis=1)


def above(a: Any, B: Any) -> Any:
    """Return a distance that is not symmetric and may be negative."""
    return (B - a).sum(axis=1)


def table(function: Any, queries: Any = QUERIES) -> Any:
    return np.array([function(row, POINTS) for row in queries])


def same(found: Any, expected: Any) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


@pytest.fixture(params=[False, True], ids=["whole", "blocks"])
def blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param:
        monkeypatch.setattr(tuning, "BLOCK_ROWS", 7)
        monkeypatch.setattr(tuning, "FUNCTION_NUMBERS", 100)


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("function", [manhattan, above])
def test_searches_are_those_of_all_distances(function: Any) -> None:
    every = table(function)
    same(tonari.search(QUERIES, POINTS, K, metric=function), brute(every, K))
    same(tonari.search(every, None, K, metric="precomputed"), brute(every, K))
    limits = np.sort(every, axis=1)[:, 5].clip(0)
    same(tonari.radius_search(QUERIES, POINTS, limits, metric=function), brute_within(every, limits))
    same(tonari.radius_search(every, None, limits, metric="precomputed"), brute_within(every, limits))
    counts = tonari.radius_count(QUERIES, POINTS, limits, metric=function)
    assert counts.tolist() == (every <= limits[:, None]).sum(axis=1).tolist()
    near = tonari.radius_search(QUERIES, POINTS, 3.0, metric=function, max_neighbors=2, closed=False)
    assert np.diff(near.indptr).tolist() == np.minimum((every < 3.0).sum(axis=1), 2).tolist()


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize(("function", "symmetric"), [(manhattan, False), (manhattan, True), (above, False)])
def test_graphs_are_those_of_all_distances(function: Any, symmetric: bool) -> None:
    every, given = table(function, POINTS), {"metric": function, "symmetric": symmetric}
    expected = brute(every, K, own=True)
    for graph in (tonari.knn_graph(POINTS, K, **given), tonari.knn_graph(every, K, metric="precomputed")):
        same((graph.distances, graph.indices), expected)
        assert graph.lists.exact
    own = tonari.knn_graph(POINTS, K + 1, include_self=True, **given)
    assert own.indices[:, 0].tolist() == list(range(N))
    same((own.distances[:, 1:], own.indices[:, 1:]), expected)
    assert tonari.knn_graph(POINTS, 1, include_self=True, **given).indices[:, 0].tolist() == list(range(N))
    np.testing.assert_array_equal(tonari.kth_distance(POINTS, K, **given), expected.distances[:, -1])
    np.testing.assert_array_equal(tonari.kth_distance(every, K, metric="precomputed"), expected.distances[:, -1])
    within = brute_within(every, np.full(N, 2.0), own=True)
    same(tonari.radius_graph(POINTS, 2.0, **given), within)
    same(tonari.radius_graph(every, 2.0, metric="precomputed"), within)
    limits = np.linspace(0, 3, N)
    same(tonari.radius_graph(POINTS, limits, **given), brute_within(every, limits, own=True))


WHERE = np.arange(N) % 3 > 0
GROUPS = np.arange(N) % 4
CLOSE = abs(np.arange(N)[:, None] - np.arange(N)) <= 5
FILTERS: dict[str, tuple[dict[str, Any], Any]] = {
    "where": ({"where": WHERE}, np.broadcast_to(WHERE, (M, N))),
    "none": ({"where": np.zeros(N, bool)}, np.zeros((M, N), bool)),
    "mask": ({"where": CLOSE[:M]}, CLOSE[:M]),
    "exclude": ({"exclude": [[i, i + 20] for i in range(M)]}, ~np.isin(np.arange(N) - np.arange(M)[:, None], (0, 20))),
    "same": ({"query_groups": GROUPS[:M], "point_groups": GROUPS}, GROUPS[:M, None] == GROUPS),
    "other": ({"query_groups": GROUPS[:M], "point_groups": GROUPS, "groups": "other"}, GROUPS[:M, None] != GROUPS),
}
GRAPH_FILTERS: dict[str, tuple[dict[str, Any], Any]] = {
    "where": ({"where": WHERE}, np.broadcast_to(WHERE, (N, N))),
    "batch": ({"batch": GROUPS}, GROUPS[:, None] == GROUPS),
    "window": ({"exclude_within": 5}, ~CLOSE),
    "all": ({"where": WHERE, "batch": GROUPS, "exclude_within": 5}, WHERE & (GROUPS[:, None] == GROUPS) & ~CLOSE),
}


def lists_of(every: Any, allowed: Any, k: int) -> Any:
    """The k nearest of the allowed points of each row, ending with -1 at inf."""
    distances, indices = np.full((len(every), k), np.inf), np.full((len(every), k), -1, np.int32)
    for i, (row, kept) in enumerate(zip(every, allowed, strict=True)):
        near = sorted(np.flatnonzero(kept), key=lambda j: (row[j], j))[:k]
        distances[i, : len(near)], indices[i, : len(near)] = row[near], near
    return distances, indices


def within_of(every: Any, allowed: Any, limits: Any) -> Any:
    distances, indices = lists_of(every, allowed, N)
    near = (indices >= 0) & (distances <= limits[:, None])
    return np.concatenate([[0], np.cumsum(near.sum(axis=1))]), indices[near], distances[near]


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("name", FILTERS)
def test_filters_of_searches(name: str) -> None:
    given, allowed = FILTERS[name]
    every, limits = table(manhattan), np.linspace(0, 6, M)
    for rows, metric in (((QUERIES, POINTS), manhattan), ((every, None), "precomputed")):
        same(tonari.search(*rows, K, metric=metric, **given), lists_of(every, allowed, K))
        same(tonari.radius_search(*rows, limits, metric=metric, **given), within_of(every, allowed, limits))
        counts = tonari.radius_count(*rows, limits, metric=metric, **given)
        assert counts.tolist() == ((every <= limits[:, None]) & allowed).sum(axis=1).tolist()
        distances, indices = lists_of(every, allowed, K)
        last = np.where(indices[:, -1] >= 0, distances[:, -1], np.inf)
        same(tonari.search(*rows, K, metric=metric, ties="all", **given), within_of(every, allowed, last))


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("name", GRAPH_FILTERS)
@pytest.mark.parametrize(("function", "symmetric"), [(manhattan, False), (manhattan, True), (above, False)])
def test_filters_of_graphs(name: str, function: Any, symmetric: bool) -> None:
    given, allowed = GRAPH_FILTERS[name]
    every, allowed = table(function, POINTS), allowed & ~np.eye(N, dtype=bool)
    expected = lists_of(every, allowed, K)
    last = np.where(expected[1][:, -1] >= 0, expected[0][:, -1], np.inf)
    for rows, how in ((POINTS, {"metric": function, "symmetric": symmetric}), (every, {"metric": "precomputed"})):
        graph = tonari.knn_graph(rows, K, **how, **given)
        same((graph.distances, graph.indices), expected)
        same(tonari.knn_graph(rows, K, ties="all", **how, **given), within_of(every, allowed, last))
        found = tonari.radius_graph(rows, 2.0, **how, **given)
        same(found, within_of(every, allowed, np.full(N, 2.0)))
        if "batch" in given:
            continue
        both = np.triu(allowed & (WHERE[:, None] if "where" in given else True), 1)
        _, right, distances = within_of(every, both, np.full(N, 2.0))
        how = {"metric": how["metric"]}
        found = tonari.pairs(rows, 2.0, **how, **given)
        same((found.right, found.distances), (right, distances))
        assert found.left.tolist() == np.repeat(np.arange(N), ((every <= 2.0) & both).sum(axis=1)).tolist()


@pytest.mark.usefixtures("blocks")
def test_lists_of_others_are_verified() -> None:
    every, graph = table(manhattan), table(manhattan, POINTS)
    found, own = brute(every, K), brute(graph, K, own=True)
    for verify in (
        lambda *lists: tonari.verify(QUERIES, POINTS, *lists, metric=manhattan),
        lambda *lists: tonari.verify(every, None, *lists, metric="precomputed"),
    ):
        assert verify(found.indices, found.distances).exact
        report = verify(found.indices[::-1], found.distances)
        assert not report.exact
        assert report.of_rows == M
    np.fill_diagonal(graph, np.nan)
    for verify in (
        lambda *lists, **how: tonari.verify(None, POINTS, *lists, metric=manhattan, **how),
        lambda *lists, **how: tonari.verify(None, graph, *lists, metric="precomputed", **how),
    ):
        assert verify(own.indices, own.distances).exact
        assert verify(own.indices, own.distances, sample=7).exact
        assert not verify(np.roll(own.indices, 1, axis=1)[:, :3]).exact


def test_named_metrics_and_functions_of_them_agree() -> None:
    rows = np.round(POINTS * 8)
    same(tonari.search(rows[:M], rows, K, metric=manhattan), tonari.search(rows[:M], rows, K, metric="l1"))


def test_graphs_keep_the_name_and_go_to_files(tmp_path: Path) -> None:
    graph = tonari.knn_graph(POINTS, K, metric=manhattan)
    graph.save(tmp_path / "graph.npz")
    again = tonari.KNNGraph.load(tmp_path / "graph.npz")
    assert again.metric == graph.metric == "function:manhattan"
    assert again.to_sklearn().shape == (N, N)
    assert tonari.knn_graph(table(manhattan, POINTS), K, metric="Precomputed").metric == "precomputed"
    for ask in (lambda: again.recall(POINTS), lambda: again.add(POINTS, POINTS)):
        with pytest.raises(Unsupported, match="metric='function:manhattan' stands for distances of the caller"):
            ask()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "uint8", "int64"])
def test_matrices_of_any_dtype_and_memory_maps(dtype: str, tmp_path: Path) -> None:
    every = np.random.default_rng(0).integers(0, 9, (M, N)).astype(dtype)
    np.save(tmp_path / "table.npy", every)
    expected = brute(every.astype("float32" if dtype in ("float16", "float32") else "float64"), K)
    for given in (every, np.load(tmp_path / "table.npy", mmap_mode="r"), np.asfortranarray(every)):
        same(tonari.search(given, None, K, metric="precomputed"), expected)


def test_no_queries_and_a_single_point() -> None:
    found = tonari.search(QUERIES[:0], POINTS, K, metric=manhattan)
    assert (found.distances.shape, found.distances.dtype, found.indices.dtype) == ((0, K), np.float64, np.int32)
    assert tonari.radius_search(np.empty((0, N)), None, 1.0, metric="precomputed").indptr.tolist() == [0]
    assert tonari.radius_count(QUERIES[:0], POINTS, 1.0, metric=manhattan).shape == (0,)
    assert tonari.radius_graph(POINTS[:1], 1.0, metric=manhattan).indptr.tolist() == [0, 0]
    assert tonari.knn_graph(POINTS[:1], 1, include_self=True, metric=manhattan).distances.tolist() == [[0.0]]


def test_rows_with_gaps_are_left_to_the_function() -> None:
    rows = POINTS.copy()
    rows[3, 1] = np.nan

    def gaps(a: Any, B: Any) -> Any:
        return np.nan_to_num(np.abs(B - a)).sum(axis=1)

    assert tonari.search(rows[:3], rows, 2, metric=gaps).indices[:, 0].tolist() == [0, 1, 2]


@needs_torch
def test_tensors_come_back_as_tensors() -> None:
    import torch

    rows = torch.from_numpy(POINTS)
    graph = tonari.knn_graph(rows, K, metric=manhattan)
    assert isinstance(graph.distances, torch.Tensor)
    assert tonari.kth_distance(rows, K, metric=manhattan).tolist() == graph.distances[:, -1].tolist()
    with pytest.warns(UserWarning, match="requires gradients"):
        tonari.search(rows.clone().requires_grad_(), rows, 2, metric=manhattan)


def test_memory_is_kept() -> None:
    least = N * K * 12 + 6 * N * 8 + 2 * 8 * POINTS.shape[1]  # and the function's copies of a point
    graph = tonari.knn_graph(POINTS, K, metric=manhattan, memory=least)
    same((graph.distances,), (tonari.knn_graph(POINTS, K, metric=manhattan).distances,))
    with pytest.raises(BudgetExceeded, match=f"allow at least {least}"):
        tonari.knn_graph(POINTS, K, metric=manhattan, memory=least - 1)


EVERY = table(manhattan, POINTS)
F: dict[str, Any] = {"metric": manhattan}
D: dict[str, Any] = {"metric": "precomputed"}
VERBS = "which tonari.search, knn_graph"
REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "weights": (
        lambda: tonari.knn_graph(POINTS, 2, weights=[1.0] * 4, **F),
        ValueError,
        "weights: is not supported if",
    ),
    "recall": (
        lambda: tonari.knn_graph(POINTS, 2, recall=0.9, **F),
        ValueError,
        "recall: is not supported if metric is a function",
    ),
    "gradients": (lambda: tonari.search(QUERIES, POINTS, 2, differentiable=True, **F), ValueError, "differentiable"),
    "method": (lambda: tonari.search(QUERIES, POINTS, 2, method="kdtree", **F), ValueError, "allows 'exact' alone"),
    "device": (lambda: tonari.search(QUERIES, POINTS, 2, device="cuda", **F), ValueError, "on the CPU alone"),
    "k": (lambda: tonari.search(QUERIES, POINTS, N + 1, **F), ValueError, f"the largest k is {N}"),
    "k of a graph": (lambda: tonari.knn_graph(POINTS, N, **F), ValueError, f"the largest k is {N - 1}"),
    "widths": (lambda: tonari.search(QUERIES[:, :2], POINTS, 2, **F), ValueError, "same number of columns"),
    "similarity": (lambda: tonari.radius_search(QUERIES, POINTS, min_similarity=1.0, **F), ValueError, "min_sim"),
    "no radius": (lambda: tonari.radius_search(QUERIES, POINTS, **F), ValueError, "radius"),
    "negative radius": (lambda: tonari.radius_search(QUERIES, POINTS, -1.0, **F), ValueError, "radius"),
    "points": (lambda: tonari.search(EVERY, POINTS, 2, **D), ValueError, "points=None"),
    "no square": (lambda: tonari.knn_graph(EVERY[:, :5], 2, **D), ValueError, r"expected \(n, n\)"),
    "one axis": (lambda: tonari.search(EVERY[0], None, 2, **D), ValueError, r"expected \(m, n\)"),
    "masked": (lambda: tonari.search(np.ma.masked_less(EVERY, 1), None, 2, **D), ValueError, "masked"),
    "text": (lambda: tonari.search(np.full((2, 2), "a"), None, 1, **D), TypeError, "expected numbers"),
    "NaN": (lambda: tonari.search(EVERY * np.nan, None, 2, **D), ValueError, "query 0 and point 0 is nan"),
    "own NaN": (
        lambda: tonari.knn_graph(np.where(np.eye(N) > 0, np.nan, EVERY), 2, include_self=True, **D),
        ValueError,
        "point 0 to itself is NaN",
    ),
    "symmetric": (
        lambda: tonari.knn_graph(POINTS, 2, symmetric=True),
        ValueError,
        "symmetric: is for functions",
    ),
    "flag": (lambda: tonari.knn_graph(POINTS, 2, symmetric=1, **F), TypeError, "symmetric"),  # type: ignore[arg-type]
    "Index": (lambda: tonari.Index(EVERY, **D), ValueError, "'precomputed' stands for distances of the caller"),
    "Index of a function": (lambda: tonari.Index(POINTS, **F), ValueError, "'function:manhattan' is a function"),
    "farthest": (lambda: tonari.farthest(QUERIES, POINTS, 1, **F), ValueError, "nearest by its negative"),
    "pairs to a file": (
        lambda: tonari.pairs(POINTS, 1.0, out="pairs.npy", **F),
        ValueError,
        "out: is not supported if",
    ),
    "ties": (lambda: tonari.search(QUERIES, POINTS, 2, ties="both", **F), ValueError, "ties='both'"),
    "ties and itself": (
        lambda: tonari.knn_graph(POINTS, 2, ties="all", include_self=True, **F),
        ValueError,
        "include_self: not with ties",
    ),
    "a mask for each row": (
        lambda: tonari.radius_graph(POINTS, 2.0, where=np.ones((N, N), bool), **F),
        ValueError,
        "one mask for all rows",
    ),
    "weights of a verification": (
        lambda: tonari.verify(QUERIES, POINTS, [[0]] * M, weights=[1.0] * 4, **F),
        ValueError,
        "weights: is not supported if",
    ),
    "tree": (lambda: tonari.mutual_reachability_tree(EVERY, 2, **D), ValueError, VERBS),
    "plan": (lambda: tonari.plan(9, 9, 2, 1, **D), ValueError, VERBS),
    "exception": (lambda: tonari.search(QUERIES, POINTS, 2, metric=lambda a, B: 1 / 0), ZeroDivisionError, "division"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused(what: str) -> None:
    ask, error, message = REFUSED[what]
    with pytest.raises(error, match=message) as told:
        ask()
    assert " at 0x" not in str(told.value)
