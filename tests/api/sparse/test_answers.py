"""Public functions on sparse rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari

sparse = pytest.importorskip("scipy.sparse", reason="matrices")

from tests.helpers.sparse_rows import ALL_METRICS, METRICS, as_dense, few, radius_of, same_bits, words  # noqa: E402

DENSE = words(200, 40).astype(np.float32)
QUERIES = words(20, 40, 1).astype(np.float32)


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
    "columns": (
        lambda: tonari.search(sparse.csr_array(DENSE[:, :5]), POINTS, 3),
        ValueError,
        "queries have 5 columns, but points have 40",
    ),
    "metric": (lambda: tonari.search(POINTS, POINTS, 3, metric="l1"), ValueError, r"metric='l1' .*\.toarray\(\)"),
    "method": (lambda: tonari.search(POINTS, POINTS, 3, method="kdtree"), ValueError, "method='kdtree'"),
    "device": (lambda: tonari.search(POINTS, POINTS, 3, device="cuda"), ValueError, "device='cuda'"),
    "differentiable": (
        lambda: tonari.search(POINTS, POINTS, 3, differentiable=True),
        ValueError,
        "differentiable: not",
    ),
    "recall": (lambda: tonari.knn_graph(POINTS, 3, recall=0.9), ValueError, "recall: not supported"),
    "weights": (lambda: tonari.kth_distance(POINTS, 3, weights=np.ones(39) * 2), ValueError, "has 39 numbers, .* 40"),
    "weights of a metric without": (
        lambda: tonari.search(POINTS, POINTS, 3, weights=np.full(40, 2.0), metric="cosine"),
        ValueError,
        "weights: metric='cosine' has none",
    ),
    "changed": (
        lambda: tonari.search(POINTS, POINTS, 3, metric="minkowski:3"),
        ValueError,
        r"metric='minkowski:3': .*\.toarray\(\)",
    ),
    "transform": (
        lambda: tonari.kth_distance(POINTS, 3, transform=np.eye(40)),
        ValueError,
        r"transform: .* not supported for sparse rows",
    ),
    "k": (lambda: tonari.knn_graph(POINTS, 200), ValueError, "the largest k is 199"),
    "include_self": (
        lambda: tonari.knn_graph(POINTS, 3, ties="all", include_self=True),
        ValueError,
        "include_self: not with ties='all'",
    ),
    "masks": (
        lambda: tonari.knn_graph(POINTS, 3, where=np.ones((200, 200), bool)),
        ValueError,
        r"where: expected shape \(200,\), one mask for all rows",
    ),
    "window": (lambda: tonari.search(POINTS[:3], POINTS, 3, exclude_within=1), ValueError, "exclude_within=1: query i"),
    "memory": (lambda: tonari.search(POINTS, POINTS, 3, memory="1kB"), ValueError, "allow at least"),
    "farthest": (lambda: tonari.farthest(POINTS, POINTS, 3), ValueError, r"sparse rows .*\.toarray\(\)"),
    "verify": (lambda: tonari.verify(POINTS, POINTS, [[0]] * 200), TypeError, r"sparse .*\.toarray\(\)"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_sparse_rows_do_not_have_is_refused_by_name(name: str) -> None:
    call, error, words_of_it = REFUSED[name]
    with pytest.raises(error, match=words_of_it):
        call()


def rules_of(name: str, m: int, n: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    if name == "where":
        return {"where": rng.random(n) < 0.2}
    if name in ("mask", "bits", "columns first"):
        mask = rng.random((m, n)) < 0.5
        mask[0] = False
        packed = np.packbits(mask, axis=1, bitorder="little")
        return {"where": {"mask": mask, "bits": packed, "columns first": np.asfortranarray(mask)}[name]}
    if name == "exclude":
        return {"exclude": [rng.integers(0, n, i % 60).tolist() for i in range(m)]}
    if name == "window":
        return {"exclude_within": 3}
    return {"query_groups": rng.integers(0, 9, m), "point_groups": rng.integers(0, 9, n), "groups": name}


@pytest.mark.parametrize("rule", ["where", "mask", "bits", "columns first", "exclude", "same", "other"])
@pytest.mark.parametrize("metric", ALL_METRICS)
def test_filters_have_the_bits_of_dense_rows(metric: str, rule: str) -> None:
    queries, points = few(20, 30, 1), few(150, 30)
    rules, within = rules_of(rule, 20, 150), radius_of(metric)
    given, dense = ([make(queries), make(points)] for make in (sparse.csr_array, lambda rows: as_dense(rows, metric)))
    for verb, options in (
        (tonari.search, {"k": 25}),
        (tonari.search, {"k": 25, "ties": "all"}),
        (tonari.radius_search, within),
        (tonari.radius_search, within | {"max_neighbors": 5}),
    ):
        same_bits(verb(*given, metric=metric, **options, **rules), verb(*dense, metric=metric, **options, **rules))
    counts = [tonari.radius_count(*rows, metric=metric, **within, **rules) for rows in (given, dense)]
    same_bits(counts[:1], counts[1:])


@pytest.mark.parametrize(
    "rule", [{}, {"where": np.arange(150) % 3 > 0}, {"batch": np.arange(150) % 4}, {"exclude_within": 2}]
)
@pytest.mark.parametrize("metric", ALL_METRICS)
def test_filtered_graphs_and_pairs_have_the_bits_of_dense_rows(
    metric: str, rule: dict[str, Any], tmp_path: Path
) -> None:
    given, within = few(150, 30), radius_of(metric)
    rows, dense = sparse.csr_matrix(given), as_dense(given, metric)
    for options in ({}, {"include_self": True}):
        ours, others = (tonari.knn_graph(x, 6, metric=metric, **options, **rule) for x in (rows, dense))
        same_bits([ours.distances, ours.indices], [others.distances, others.indices])
    for most in (None, 4):
        same_bits(*(tonari.radius_graph(x, metric=metric, max_neighbors=most, **within, **rule) for x in (rows, dense)))
    same_bits(*(tonari.knn_graph(x, 6, metric=metric, ties="all", **rule) for x in (rows, dense)))
    if "batch" in rule:
        return
    found = tonari.pairs(dense, metric=metric, **within, **rule)
    same_bits(tonari.pairs(rows, metric=metric, **within, **rule), found)
    out = tonari.pairs(rows, metric=metric, out=tmp_path / "pairs.npy", **within, **rule)
    written = np.load(out)
    same_bits([written[name] for name in ("left", "right", "distance")], found)


def test_weights_and_variances_have_the_bits_of_dense_rows() -> None:
    weights = np.random.default_rng(0).integers(0, 4, 40) / 3
    points, within = sparse.csr_array(DENSE), {"radius": 0.5}
    for columns in ({"weights": weights}, {"metric": "seuclidean", "V": weights + 0.5}):
        for verb, options in (
            (tonari.search, {"k": 9}),
            (tonari.radius_search, within),
            (tonari.radius_count, within),
        ):
            ours, others = verb(points, points, **options, **columns), verb(DENSE, DENSE, **options, **columns)
            same_bits(*([x] if isinstance(x, np.ndarray) else x for x in (ours, others)))
        ours, others = tonari.knn_graph(points, 5, **columns), tonari.knn_graph(DENSE, 5, **columns)
        same_bits([ours.distances, ours.indices], [others.distances, others.indices])
        assert ours.weights == others.weights
        same_bits(*([tonari.kth_distance(x, 5, **columns)] for x in (points, DENSE)))
        same_bits(*(tonari.pairs(x, **within, **columns) for x in (points, DENSE)))


@pytest.mark.parametrize("dtype", [np.int64, np.uint8])
def test_counts_of_words_are_numbers(dtype: Any) -> None:
    points = few(90, 20).astype(dtype)
    same_bits(
        tonari.search(sparse.csr_array(points), sparse.csr_array(points), 5, metric="cosine"),
        tonari.search(points, points, 5, metric="cosine"),
    )
