"""Public functions on sparse rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tonari

sparse = pytest.importorskip("scipy.sparse", reason="matrices")

from tests.helpers.sparse_rows import METRICS, same_bits, uniform, words  # noqa: E402

DENSE = words(200, 40).astype(np.float32)
QUERIES = words(20, 40, 1).astype(np.float32)


def radius_of(metric: str) -> dict[str, float]:
    return {"min_similarity": 0.5} if metric == "inner_product" else {"radius": 0.5}


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", ["csr_array", "csr_matrix"])
@pytest.mark.parametrize("dtypes", [("f4", "f4"), ("f4", "f8"), ("f8", "f4"), ("f8", "f8")])
def test_answers_have_the_bits_of_dense_rows(metric: str, kind: str, dtypes: tuple[str, str]) -> None:
    queries, points = QUERIES.astype(dtypes[0]), DENSE.astype(dtypes[1])
    make = getattr(sparse, kind)
    same_bits(
        tonari.search(make(queries), make(points), 7, metric=metric), tonari.search(queries, points, 7, metric=metric)
    )
    within = radius_of(metric)
    same_bits(
        tonari.radius_search(make(queries), make(points), metric=metric, **within),
        tonari.radius_search(queries, points, metric=metric, **within),
    )


@pytest.mark.parametrize("metric", METRICS)
def test_graphs_pairs_and_kth_distances_have_the_bits_of_dense_rows(metric: str) -> None:
    points, within = sparse.csr_array(DENSE), radius_of(metric)
    ours, others = tonari.knn_graph(points, 6, metric=metric), tonari.knn_graph(DENSE, 6, metric=metric)
    same_bits([ours.distances, ours.indices], [others.distances, others.indices])
    assert ours.method == "exact"
    same_bits(tonari.pairs(points, metric=metric, **within), tonari.pairs(DENSE, metric=metric, **within))
    same_bits(tonari.radius_graph(points, metric=metric, **within), tonari.radius_graph(DENSE, metric=metric, **within))
    kth = tonari.kth_distance(points, 6, metric=metric)
    same_bits([kth], [np.ascontiguousarray(others.distances[:, -1])])


@pytest.mark.parametrize("k", [1, 4])
def test_a_graph_may_include_the_points_themselves(k: int) -> None:
    ours = tonari.knn_graph(sparse.csr_array(DENSE), k, include_self=True)
    others = tonari.knn_graph(DENSE, k, include_self=True)
    same_bits([ours.distances, ours.indices], [others.distances, others.indices])


def test_similarities_are_searched_for() -> None:
    points = sparse.csr_array(DENSE)
    same_bits(
        tonari.radius_search(points, points, min_similarity=0.9, metric="cosine", closed=False),
        tonari.radius_search(DENSE, DENSE, min_similarity=0.9, metric="cosine", closed=False),
    )


def test_no_queries_and_no_rows() -> None:
    points, none = sparse.csr_array(DENSE), sparse.csr_array((0, 40), dtype=np.float32)
    assert tonari.search(none, points, 3).indices.shape == (0, 3)
    assert tonari.radius_search(none, points, 1.0).indptr.tolist() == [0]
    assert tonari.pairs(none, 1.0).left.shape == (0,)
    with pytest.raises(ValueError, match="k=1: the largest k is 0"):
        tonari.search(points, none, 1)


def test_columns_of_the_queries_alone_change_nothing_but_lengths() -> None:
    points, queries = DENSE.copy(), QUERIES.copy()
    points[:, 3:20] = 0
    for metric in METRICS:
        same_bits(
            tonari.search(sparse.csr_array(queries), sparse.csr_array(points), 9, metric=metric),
            tonari.search(queries, points, 9, metric=metric),
        )


def test_progress_counts_pairs_and_rows() -> None:
    seen: list[tuple[int, int]] = []
    points = sparse.csr_array(DENSE)
    tonari.search(points, points, 3, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (200 * 200, 200 * 200)
    tonari.kth_distance(points, 3, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (200, 200)


POINTS = sparse.csr_array(DENSE)
REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "dense queries": (lambda: tonari.search(DENSE, POINTS, 3), TypeError, "queries: is a dense ndarray"),
    "dense points": (lambda: tonari.search(POINTS, DENSE, 3), TypeError, "points: is a dense ndarray"),
    "within": (lambda: tonari.radius_search(POINTS, DENSE, 3), TypeError, "points: is a dense ndarray"),
    "columns": (
        lambda: tonari.search(sparse.csr_array(DENSE[:, :5]), POINTS, 3),
        ValueError,
        "queries have 5 columns, but points have 40",
    ),
    "metric": (lambda: tonari.search(POINTS, POINTS, 3, metric="l1"), ValueError, r"metric='l1' .*\.toarray\(\)"),
    "method": (lambda: tonari.search(POINTS, POINTS, 3, method="kdtree"), ValueError, "method='kdtree'"),
    "device": (lambda: tonari.search(POINTS, POINTS, 3, device="cuda"), ValueError, "device='cuda'"),
    "where": (lambda: tonari.search(POINTS, POINTS, 3, where=np.ones(200, bool)), ValueError, "where: not supported"),
    "exclude": (lambda: tonari.search(POINTS, POINTS, 3, exclude=[[]] * 200), ValueError, "exclude: not supported"),
    "groups": (lambda: tonari.search(POINTS, POINTS, 3, groups="same"), ValueError, "groups: not supported"),
    "differentiable": (
        lambda: tonari.search(POINTS, POINTS, 3, differentiable=True),
        ValueError,
        "differentiable: not",
    ),
    "batch": (lambda: tonari.knn_graph(POINTS, 3, batch=[0] * 200), ValueError, "batch: not supported"),
    "recall": (lambda: tonari.knn_graph(POINTS, 3, recall=0.9), ValueError, "recall: not supported"),
    "include_self": (
        lambda: tonari.knn_graph(POINTS, 3, include_self=True, metric="inner_product"),
        ValueError,
        "include_self: not supported",
    ),
    "max_neighbors": (
        lambda: tonari.radius_search(POINTS, POINTS, 1, max_neighbors=2),
        ValueError,
        "max_neighbors: not",
    ),
    "window of search": (
        lambda: tonari.search(POINTS, POINTS, 3, exclude_within=1),
        ValueError,
        r"exclude_within: not supported .*\.toarray\(\)",
    ),
    "window of knn_graph": (
        lambda: tonari.knn_graph(POINTS, 3, exclude_within=1),
        ValueError,
        r"exclude_within: not supported .*\.toarray\(\)",
    ),
    "window of radius_search": (
        lambda: tonari.radius_search(POINTS, POINTS, 1, exclude_within=1),
        ValueError,
        r"exclude_within: not supported .*\.toarray\(\)",
    ),
    "window of radius_graph": (
        lambda: tonari.radius_graph(POINTS, 1, exclude_within=1),
        ValueError,
        r"exclude_within: not supported .*\.toarray\(\)",
    ),
    "window of pairs": (
        lambda: tonari.pairs(POINTS, 1, exclude_within=1),
        ValueError,
        r"exclude_within: not supported .*\.toarray\(\)",
    ),
    "ties of search": (lambda: tonari.search(POINTS, POINTS, 3, ties="all"), ValueError, r"ties: not .*\.toarray\(\)"),
    "ties of knn_graph": (lambda: tonari.knn_graph(POINTS, 3, ties="all"), ValueError, r"ties: not .*\.toarray\(\)"),
    "out": (lambda: tonari.pairs(POINTS, 1, out="x.npy"), ValueError, "out: not supported"),
    "weights": (lambda: tonari.kth_distance(POINTS, 3, weights=np.ones(40)), ValueError, "weights: not supported"),
    "weights of a search": (
        lambda: tonari.search(POINTS, POINTS, 3, weights=np.full(40, 2.0)),
        TypeError,
        r"\.toarray\(\)",
    ),
    "changed": (lambda: tonari.search(POINTS, POINTS, 3, metric="minkowski:3"), TypeError, r"\.toarray\(\)"),
    "k": (lambda: tonari.knn_graph(POINTS, 200), ValueError, "the largest k is 199"),
    "memory": (lambda: tonari.search(POINTS, POINTS, 3, memory="1kB"), ValueError, "allow at least"),
    "count": (lambda: tonari.radius_count(POINTS, POINTS, 1), TypeError, r"\.toarray\(\)"),
    "index": (lambda: tonari.Index(POINTS), TypeError, r"an Index takes no sparse rows; call tonari\.search"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_sparse_rows_do_not_have_is_refused_by_name(name: str) -> None:
    call, error, words_of_it = REFUSED[name]
    with pytest.raises(error, match=words_of_it):
        call()


def test_values_beyond_their_type_are_refused() -> None:
    large = sparse.csr_array(uniform(20, 10).astype(np.float32) * np.float32(1e30))
    with pytest.raises(ValueError, match="overflows"):
        tonari.search(large, large, 5, metric="sqeuclidean")
    small = sparse.csr_array(uniform(20, 10).astype(np.float32) * np.float32(1e-30))
    for metric in ("sqeuclidean", "inner_product"):
        with pytest.raises(ValueError, match="underflows"):
            tonari.search(small, small, 5, metric=metric)
    assert (tonari.search(small, small, 1).distances == 0).all()
    apart = sparse.csr_array(np.eye(5, dtype=np.float32))
    assert (tonari.search(apart, apart, 5, metric="inner_product").distances[:, 1:] == 0).all()
