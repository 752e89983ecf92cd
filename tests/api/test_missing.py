"""All verbs among rows with missing values, against tables of all distances."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers.devices import needs_torch
from tests.helpers.missing import with_gaps
from tonari.missing.reference import pairwise

N, M = 60, 9
POINTS = with_gaps(np.random.default_rng(0).standard_normal((N, 4)).astype(np.float32), 0.45)
POINTS[::11] = np.round(POINTS[::11])
QUERIES = POINTS[:M]
NAN: dict[str, Any] = {"metric": "nan_euclidean"}
EVERY, TABLE = pairwise(POINTS, POINTS), pairwise(QUERIES, POINTS)
OTHERS = ~np.eye(N, dtype=bool)
WHERE, GROUPS = np.arange(N) % 3 > 0, np.arange(N) % 4
CLOSE = abs(np.arange(N)[:, None] - np.arange(N)) <= 3
ALL = np.ones((M, N), bool)
FILTERS: dict[str, tuple[dict[str, Any], Any]] = {
    "all": ({}, ALL),
    "where": ({"where": WHERE}, ALL & WHERE),
    "mask": ({"where": CLOSE[:M]}, CLOSE[:M]),
    "exclude": ({"exclude": [[0, 1]] * M}, ALL & (np.arange(N) > 1)),
    "same": ({"query_groups": GROUPS[:M], "point_groups": GROUPS}, GROUPS[:M, None] == GROUPS),
    "other": ({"query_groups": GROUPS[:M], "point_groups": GROUPS, "groups": "other"}, GROUPS[:M, None] != GROUPS),
}
GRAPH_FILTERS: dict[str, tuple[dict[str, Any], Any]] = {
    "all": ({}, OTHERS),
    "where": ({"where": WHERE}, OTHERS & WHERE),
    "batch": ({"batch": GROUPS}, OTHERS & (GROUPS[:, None] == GROUPS)),
    "window": ({"exclude_within": 3}, ~CLOSE),
}


def lists_of(table: Any, allowed: Any, k: int) -> Any:
    """The k nearest of the allowed points with a common column, ending with -1 at inf."""
    distances, indices = np.full((len(table), k), np.inf, table.dtype), np.full((len(table), k), -1, np.int32)
    for i, (row, kept) in enumerate(zip(table, allowed & ~np.isnan(table), strict=True)):
        near = sorted(np.flatnonzero(kept), key=lambda j: (row[j], j))[:k]
        distances[i, : len(near)], indices[i, : len(near)] = row[near], near
    return distances, indices


def same(found: Any, expected: Any) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("k", [3, 40])
@pytest.mark.parametrize("name", FILTERS)
def test_searches(name: str, k: int) -> None:
    given, allowed = FILTERS[name]
    same(tonari.search(QUERIES, POINTS, k, **NAN, **given), lists_of(TABLE, allowed, k))
    inside = (TABLE <= 1) & allowed
    found = tonari.radius_search(QUERIES, POINTS, 1.0, **NAN, **given)
    assert np.diff(found.indptr).tolist() == inside.sum(axis=1).tolist()
    assert found.indices.tolist() == [j for row in lists_of(TABLE, inside, N)[1] for j in row if j >= 0]
    assert tonari.radius_count(QUERIES, POINTS, 1.0, **NAN, **given).tolist() == inside.sum(axis=1).tolist()
    few = tonari.radius_search(QUERIES, POINTS, 1.0, max_neighbors=2, **NAN, **given)
    assert np.diff(few.indptr).tolist() == np.minimum(2, inside.sum(axis=1)).tolist()
    tied = tonari.search(QUERIES, POINTS, k, ties="all", **NAN, **given)
    distances, indices = lists_of(TABLE, allowed, k)
    last = np.where(indices[:, -1] >= 0, distances[:, -1], np.inf)
    assert np.diff(tied.indptr).tolist() == ((last[:, None] >= TABLE) & allowed).sum(axis=1).tolist()


@pytest.mark.parametrize("name", GRAPH_FILTERS)
def test_graphs_and_pairs(name: str) -> None:
    given, allowed = GRAPH_FILTERS[name]
    for k in (3, 40):
        graph = tonari.knn_graph(POINTS, k, **NAN, **given)
        same((graph.distances, graph.indices), lists_of(EVERY, allowed, k))
    within = tonari.radius_graph(POINTS, 1.0, **NAN, **given)
    assert np.diff(within.indptr).tolist() == ((EVERY <= 1) & allowed).sum(axis=1).tolist()
    if "batch" not in given:
        both = np.triu((EVERY <= 1) & allowed & (WHERE[:, None] if "where" in given else True), 1)
        pairs = tonari.pairs(POINTS, 1.0, **NAN, **given)
        assert set(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)) == set(
            zip(*np.nonzero(both), strict=True)
        )


def test_graphs_with_the_points_themselves_and_files(tmp_path: Path) -> None:
    graph = tonari.knn_graph(POINTS, 5, include_self=True, **NAN)
    assert graph.indices[:, 0].tolist() == list(range(N))
    assert (graph.distances[:, 0] == 0).all()
    same((graph.distances[:, 1:], graph.indices[:, 1:]), lists_of(EVERY, OTHERS, 4))
    graph.save(tmp_path / "graph.npz")
    assert tonari.KNNGraph.load(tmp_path / "graph.npz").metric == "nan_euclidean"
    same((tonari.kth_distance(POINTS, 5, **NAN),), (lists_of(EVERY, OTHERS, 5)[0][:, -1],))


def test_mutual_neighbours() -> None:
    k, found = 9, tonari.mutual_neighbors(QUERIES, POINTS, 9, **NAN)
    there, back = lists_of(TABLE, ALL, k)[1], lists_of(TABLE.T, ALL.T, k)[1]
    expected = {(i, j) for i in range(M) for j in there[i].tolist() if j >= 0 and i in back[j]}
    assert set(zip(found.left.tolist(), found.right.tolist(), strict=True)) == expected


def test_an_index_that_changes(tmp_path: Path) -> None:
    index = tonari.Index(POINTS[:40], **NAN)
    index.add(POINTS[40:])
    index.remove([3, 5])
    left = ALL.copy()
    left[:, [3, 5]] = False
    index.save(tmp_path / "points.index")
    again = tonari.Index.load(tmp_path / "points.index"), pickle.loads(pickle.dumps(index))
    for made in (index, index, *again):
        for k in (3, 50):
            same(made.search(QUERIES, k), lists_of(TABLE, left, k))
        same(made.search(QUERIES, 30, where=WHERE), lists_of(TABLE, left & WHERE, 30))
        counts = ((TABLE <= 1) & left).sum(axis=1).tolist()
        assert np.diff(made.radius_search(QUERIES, 1.0).indptr).tolist() == counts
        assert made.radius_count(QUERIES, 1.0).tolist() == counts
    index.compact()
    same(index.search(QUERIES, 50), lists_of(TABLE, left, 50))
    assert [part.indices.shape for part in index.search_chunks(QUERIES, 3, chunk_rows=4)] == [(4, 3), (4, 3), (1, 3)]


def test_verification() -> None:
    found, graph = tonari.search(QUERIES, POINTS, 40, **NAN), tonari.knn_graph(POINTS, 40, **NAN)
    assert (found.indices < 0).any()
    assert tonari.verify(QUERIES, POINTS, found.indices, found.distances, **NAN).exact
    assert tonari.verify(None, POINTS, graph.indices, graph.distances, **NAN).exact
    missing = np.where(found.indices == found.indices[:, :1], -1, found.indices)
    assert tonari.verify(QUERIES, POINTS, missing, **NAN).missing == (found.indices[:, 0] >= 0).sum()
    apart = int(np.flatnonzero(np.isnan(TABLE[0]))[0])
    wrong = found.indices.copy()
    wrong[0, -1] = apart
    report = tonari.verify(QUERIES, POINTS, wrong, **NAN)
    assert report.farther == 1


def test_rows_without_numbers_find_nothing() -> None:
    rows = np.full((3, 2), np.nan)
    assert tonari.search(rows, rows, 2, **NAN).indices.tolist() == [[-1, -1]] * 3
    assert tonari.radius_count(rows, rows, np.inf, **NAN).tolist() == [0, 0, 0]
    assert tonari.search(np.array([[1.0], [np.nan]]), np.array([[np.nan], [2.0]]), 2, **NAN).indices.tolist() == [
        [1, -1],
        [-1, -1],
    ]


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "float16", "float64"])
def test_rows_of_other_dtypes(dtype: str) -> None:
    rows = np.arange(24).reshape(6, 4).astype(dtype)
    assert tonari.search(rows, rows, 2, **NAN).distances.tobytes() == tonari.search(rows, rows, 2).distances.tobytes()


def test_no_queries() -> None:
    found = tonari.search(QUERIES[:0], POINTS, 3, **NAN)
    assert (found.indices.shape, found.distances.dtype) == ((0, 3), np.float32)
    assert tonari.radius_search(QUERIES[:0], POINTS, 1.0, **NAN).indptr.tolist() == [0]
    assert tonari.Index(POINTS, **NAN).search(QUERIES[:0], 3).indices.shape == (0, 3)


@needs_torch
def test_tensors_come_back_as_tensors() -> None:
    import torch

    found = tonari.search(torch.from_numpy(QUERIES), torch.from_numpy(POINTS), 3, **NAN)
    assert isinstance(found.indices, torch.Tensor)
    same((found.distances.numpy(), found.indices.numpy()), lists_of(TABLE, ALL, 3))


GRAPH = tonari.knn_graph(POINTS, 3, **NAN)
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "infinity": (
        lambda: tonari.search(np.where(np.isnan(QUERIES), np.inf, QUERIES), POINTS, 3, **NAN),
        "has an infinite value .*; use NaN for a missing value",
    ),
    "large": (lambda: tonari.search(QUERIES * np.float64(1e151), POINTS, 3, **NAN), "whose square overflows float64"),
    "weights": (lambda: tonari.search(QUERIES, POINTS, 3, weights=[1, 2, 1, 1], **NAN), "weights: .* has none"),
    "transform": (lambda: tonari.search(QUERIES, POINTS, 3, transform=np.eye(4), **NAN), "transform: .* has none"),
    "exact": (lambda: tonari.search(QUERIES, POINTS, 3, method="exact", **NAN), "use method='missing' or 'auto'"),
    "tree": (lambda: tonari.search(QUERIES, POINTS, 3, method="kdtree", **NAN), "use method='missing' or 'auto'"),
    "descent": (lambda: tonari.knn_graph(POINTS, 3, method="nn-descent", **NAN), "use method='missing' or 'auto'"),
    "spanning tree": (lambda: tonari.mutual_reachability_tree(POINTS, 3, **NAN), "fill the gaps first"),
    "build": (lambda: tonari.build_graph(POINTS, 3, "graph", **NAN), "use tonari.knn_graph"),
    "farthest": (lambda: tonari.farthest(QUERIES, POINTS, 3, **NAN), "metric='nan_euclidean'"),
    "recall": (lambda: GRAPH.recall(POINTS), "has exact graphs only"),
    "add": (lambda: GRAPH.add(POINTS, POINTS[:2]), "cannot be merged or changed: use tonari.knn_graph"),
    "codes": (lambda: tonari.Index(POINTS, codes="int8", **NAN), "codes='int8'"),
    "another metric": (lambda: tonari.search(QUERIES, POINTS, 3), "a value that is not finite"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    ask, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        ask()
