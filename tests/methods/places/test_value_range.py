"""Every public function refuses values that overflow or underflow their dtype, but not small elements of ordinary
rows.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers.checks import assert_same_neighbors, gaussian
from tests.helpers.devices import needs_torch
from tests.helpers.shards import by_shards
from tonari.metrics.reference import brute

VERBS: dict[str, Callable[[Any, str], Any]] = {
    "search": lambda x, metric: tonari.search(x[:5], x, 4, metric=metric),
    "one query": lambda x, metric: tonari.search(x[:1], x, 4, metric=metric),
    "again": lambda x, metric: [tonari.search(x[:1], x, 4, metric=metric) for _ in range(3)],
    "Index": lambda x, metric: tonari.Index(x, metric=metric).search(x[:5], 4),
    "Index of one": lambda x, metric: tonari.Index(x, metric=metric).search(x[:1], 4),
    "search_chunks": lambda x, metric: list(tonari.Index(x, metric=metric).search_chunks([x[:5]], 4)),
    "filtered": lambda x, metric: tonari.search(x[:5], x, 4, metric=metric, where=np.arange(len(x)) != 3),
    "listed": lambda x, metric: tonari.search(x[:5], x, 4, metric=metric, where=np.tile(np.arange(len(x)) < 9, (5, 1))),
    "knn_graph": lambda x, metric: tonari.knn_graph(x, 4, metric=metric),
    "batch": lambda x, metric: tonari.knn_graph(x, 4, metric=metric, batch=np.arange(len(x)) % 2),
    "nn-descent": lambda x, metric: tonari.knn_graph(x, 4, metric=metric, method="nn-descent", seed=0),
    "kth_distance": lambda x, metric: tonari.kth_distance(x, 4, metric=metric),
    "radius_search": lambda x, metric: tonari.radius_search(x[:5], x, metric=metric, **_all(metric)),
    "radius_graph": lambda x, metric: tonari.radius_graph(x, metric=metric, **_all(metric)),
    "nearest within": lambda x, metric: tonari.radius_graph(x, metric=metric, max_neighbors=4, **_all(metric)),
    "max_neighbors": lambda x, metric: tonari.radius_graph(x, metric=metric, max_neighbors=70, **_all(metric)),
    "Index.radius_search": lambda x, metric: tonari.Index(x, metric=metric).radius_search(x[:5], **_all(metric)),
    "radius_chunks": lambda x, metric: list(tonari.Index(x, metric=metric).radius_chunks([x[:5]], **_all(metric))),
    "pairs": lambda x, metric: tonari.pairs(x, metric=metric, **_all(metric)),
    "radius_count": lambda x, metric: tonari.radius_count(x[:5], x, metric=metric, **_ends(x, metric)),
    "Index.radius_count": lambda x, metric: tonari.Index(x, metric=metric).radius_count(x[:5], **_ends(x, metric)),
    "radius_count where": lambda x, metric: tonari.radius_count(
        x[:5], x, metric=metric, where=np.arange(len(x)) % 2 == 0, **_ends(x, metric)
    ),
    "add": lambda x, metric: _graph_of_zeros(x, metric).add(np.zeros_like(x), x[:3]),
}


def _all(metric: str) -> dict[str, float]:
    return {"min_similarity": -3e38} if metric == "inner_product" else {"radius": np.inf}


def _ends(x: Any, metric: str) -> dict[str, float]:
    """Return a limit on the values of these rows that are in the range."""
    if abs(x).max() > 1:
        return {"min_similarity": -3.5e38} if metric == "inner_product" else {"radius": np.inf}
    return {"min_similarity": -1e-38} if metric == "inner_product" else {"radius": 1e-38}


def _graph_of_zeros(x: Any, metric: str) -> tonari.KNNGraph:
    return tonari.knn_graph(np.zeros_like(x), 4, metric=metric)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("metric", ["sqeuclidean", "inner_product", "power:3"])
@pytest.mark.parametrize("scale", [1e19, 1e-23])
def test_every_verb_refuses(verb: str, metric: str, scale: float) -> None:
    x = (gaussian(300, 16) * scale).astype(np.float32)
    what = "overflows" if scale > 1 else "underflows"
    with pytest.raises(
        ValueError, match=rf"row \d+ has a {metric} value of .*{what}.*float32.*pass float64 rows.*scale"
    ):
        VERBS[verb](x, metric)
    VERBS[verb](x.astype(np.float64), metric)
    if metric == "sqeuclidean":
        VERBS[verb](x, "euclidean")


@pytest.mark.parametrize("route", ["exact", "exact-pairs"])
@pytest.mark.parametrize("metric", ["sqeuclidean", "inner_product", "power:3"])
@pytest.mark.parametrize("scale", [1e19, 1e-23])
def test_builds_of_shards(
    scale: float, metric: str, route: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No file is finished, and no existing file is lost."""
    if (metric, route) == ("power:3", "exact-pairs"):
        return  # which are for metrics of products
    by_shards(monkeypatch, 30, route=route)
    x, out = (gaussian(80, 16) * scale).astype(np.float32), tmp_path / "graph"
    for _ in range(2):
        with pytest.raises(ValueError, match=rf"row \d+ has a {metric} value of .*flows.*pass float64 rows"):
            tonari.build_graph(x, 4, out, metric=metric, method="exact")
        assert not (out / "graph.json").exists()
    truth = brute(x.astype(np.float64), x.astype(np.float64), 5, metric)
    graph = tonari.build_graph(x.astype(np.float64), 4, tmp_path / "wide", metric=metric, method="exact")
    if metric != "inner_product":
        assert np.array_equal(np.asarray(graph.distances), truth.distances[:, 1:])


@pytest.mark.parametrize("route", ["exact", "exact-pairs"])
def test_shards_without_near_points(route: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values of neighbours within a shard may overflow although the neighbours among all points are in the range."""
    by_shards(monkeypatch, 20, route=route)
    x = gaussian(80, 4)
    x[[3, 4, 44, 45]] += np.float32(1e20)
    x[[4, 44, 45]] = x[3]
    graph = tonari.build_graph(x, 3, tmp_path / "graph", metric="sqeuclidean", method="exact")
    found = tonari.knn_graph(x, 3, metric="sqeuclidean")
    assert np.array_equal(graph.indices, found.indices)
    assert np.array_equal(graph.distances, found.distances)
    with pytest.raises(ValueError, match="row 3 has a sqeuclidean value of inf"):
        tonari.build_graph(x, 4, tmp_path / "more", metric="sqeuclidean", method="exact")


@pytest.mark.parametrize("scale", [1e19, 1e-23])
def test_trees(scale: float) -> None:
    x = (gaussian(300, 16) * scale).astype(np.float32)
    with pytest.raises(ValueError, match="use metric='euclidean'"):
        tonari.mutual_reachability_tree(x, 4, metric="sqeuclidean")


def test_graphs_that_are_merged() -> None:
    """Values of each graph are in the range, but some between the two graphs are not."""
    first, second = gaussian(60, 16), gaussian(60, 16, 1)
    first[7], second[9] = 0, 1e-23
    graphs = [tonari.knn_graph(rows, 3, metric="sqeuclidean") for rows in (first, second)]
    with pytest.raises(ValueError, match=r"row 7 has a sqeuclidean value of .*underflows"):
        tonari.merge(graphs[0], graphs[1], first, second)


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("batch", [None, np.arange(60) % 2])
@pytest.mark.parametrize("row", [1e19, 1e-23])
def test_the_value_of_a_point_with_itself(row: float, batch: Any, k: int) -> None:
    x = gaussian(60, 16)
    x[7] = row
    x[np.arange(60) != 7, ::2] = 0
    x[7, 1::2] = 0
    assert len(tonari.knn_graph(x, k, metric="inner_product", batch=batch).indices) == 60
    with pytest.raises(ValueError, match=r"row 7 has a inner_product value of .*flows"):
        tonari.knn_graph(x, k, metric="inner_product", include_self=True, batch=batch)
    tonari.knn_graph(x.astype(np.float64), k, metric="inner_product", include_self=True, batch=batch)


@pytest.mark.parametrize("method", ["exact", "kdtree"])
@pytest.mark.parametrize("metric", ["sqeuclidean", "inner_product"])
@pytest.mark.parametrize("scale", [1e19, 1e-23])
def test_counts_that_no_such_value_decides_are_answered(scale: float, metric: str, method: str) -> None:
    if (metric, method) == ("inner_product", "kdtree"):
        return  # which is not supported
    x = (gaussian(300, 3) * scale).astype(np.float32)
    limits = [1e37, 3e38] if scale > 1 else [1e-37, 0.5]
    for limit in limits:
        for sign in (1, -1) if metric == "inner_product" else (1,):
            within = {"min_similarity": sign * limit} if metric == "inner_product" else {"radius": limit}
            found = tonari.radius_count(x[:9], x, metric=metric, method=method, **within)
            wide = x.astype(np.float64)
            values = wide[:9] @ wide.T if metric == "inner_product" else ((wide[:9, None] - wide) ** 2).sum(axis=2)
            expected = values >= sign * limit if metric == "inner_product" else values <= limit
            assert found.tolist() == expected.sum(axis=1).tolist()


@pytest.mark.parametrize("metric", ["sqeuclidean", "inner_product", "euclidean", "cosine"])
def test_counts_at_ends_of_the_range_of_ordinary_rows(metric: str) -> None:
    x = np.repeat(gaussian(40, 4), 2, axis=0)
    x[11] = x[12] = 0
    x[20, 0] = 1e-30
    for limit in (0.0, 1e-42, 1e39):
        within = {"min_similarity": limit - 1e39} if metric == "inner_product" else {"radius": limit}
        expected = np.diff(tonari.radius_search(x, x, metric=metric, **within).indptr)
        assert tonari.radius_count(x, x, metric=metric, **within).tolist() == expected.tolist()


def test_the_query_that_a_count_names() -> None:
    x, limits = gaussian(80, 4), np.full(80, 1.0)
    x[[33, 44]] = [[1e-24] * 4, [2e-24] * 4]
    limits[33:40] = 1e-40
    with pytest.raises(ValueError, match="row 33 has a sqeuclidean value of"):
        tonari.radius_count(x, x, limits, metric="sqeuclidean")
    x[50], limits[33:40] = 1e25, 1.0
    limits[60] = np.inf
    with pytest.raises(ValueError, match="row 60 has a sqeuclidean value of inf"):
        tonari.radius_count(x, x, limits, metric="sqeuclidean")
    with pytest.raises(ValueError, match="row 60 has a inner_product value of -inf"):
        tonari.radius_count(
            np.full((80, 4), -1e15, np.float32),
            abs(x),
            min_similarity=np.where(limits > 1, -1e39, 0),
            metric="inner_product",
        )


def test_pairs_name_the_row(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tonari.api.tuning.PAIRS_FIRST_ROWS", 16)
    x = gaussian(80, 4)
    x[[33, 44]] = [[1e-24] * 4, [2e-24] * 4]
    with pytest.raises(ValueError, match="row 33 has a sqeuclidean value of"):
        tonari.pairs(x, 1.0, metric="sqeuclidean", out=tmp_path / "pairs.npy")


@pytest.mark.parametrize("method", ["exact", "kdtree"])
@pytest.mark.parametrize("scale", [1e20, 1e-25])
def test_every_method(method: str, scale: float) -> None:
    x = (gaussian(300, 3) * scale).astype(np.float32)
    for call in (tonari.search, lambda q, x, k, **given: tonari.Index(x, **given).search(q, k)):
        with pytest.raises(ValueError, match="use metric='euclidean'"):
            call(x[:2], x, 3, metric="sqeuclidean", method=method)


def _one_far(rows: Any) -> Any:
    rows[0] = 1e20
    return rows


ORDINARY: dict[str, Callable[[], Any]] = {
    "copies": lambda: np.repeat(gaussian(20, 4), 4, axis=0),
    "small copies": lambda: np.repeat(gaussian(1, 4) * np.float32(1e-25), 80, axis=0),
    "zeros": lambda: np.zeros((80, 4), np.float32),
    "one-hot": lambda: np.eye(80, dtype=np.float32),
    "sparse": lambda: gaussian(80, 40) * (gaussian(80, 40, 1) > 1),
    "small and sparse": lambda: np.eye(80, dtype=np.float32) * np.float32(1e-15),
    "tiny elements": lambda: np.hstack([gaussian(80, 3), np.full((80, 2), 1e-30, np.float32)]),
    "differ in tiny elements": lambda: np.hstack([np.ones((80, 3)), gaussian(80, 2) * 1e-30]).astype(np.float32),
    "softmax": lambda: (lambda e: (e / e.sum(1, keepdims=True)).astype(np.float32))(
        np.exp(20 * gaussian(80, 8).astype(float))
    ),
    "bytes": lambda: np.random.default_rng(0).integers(0, 3, (80, 4)).astype(np.uint8),
    "1e-15": lambda: gaussian(80, 4) * np.float32(1e-15),
    "1e17": lambda: gaussian(80, 4) * np.float32(1e17),
    "one far row": lambda: _one_far(gaussian(80, 4)),
}


@pytest.mark.parametrize("data", ORDINARY)
@pytest.mark.parametrize("metric", ["sqeuclidean", "inner_product", "chi2", "cosine", "euclidean"])
def test_ordinary_rows_are_answered(data: str, metric: str) -> None:
    x = ORDINARY[data]()
    if (data, metric) == ("small copies", "inner_product"):
        return  # which underflow
    x = abs(x) if metric == "chi2" else x
    k = 5 if metric == "inner_product" else 40
    queries = x[1:9]
    if (data, metric) == ("one far row", "inner_product"):
        k = 5
    assert_same_neighbors(tonari.search(queries, x, k, metric=metric), brute(queries, x, k, metric), metric=metric)
    for one in (queries[:1], queries[5:6]):
        assert_same_neighbors(tonari.Index(x, metric=metric).search(one, k), brute(one, x, k, metric), metric=metric)


def test_values_that_are_not_returned_may_overflow() -> None:
    x = _one_far(gaussian(80, 4))
    found = tonari.search(x[1:5], x, 79, metric="sqeuclidean")
    assert_same_neighbors(found, brute(x[1:5], x, 79, "sqeuclidean"))
    with pytest.raises(ValueError, match="row 0 has a sqeuclidean value of inf"):
        tonari.search(x[1:5], x, 80, metric="sqeuclidean")


def test_products_that_only_their_last_column_has_overflow_downwards() -> None:
    x = -np.ones((80, 4), np.float32)
    x[7] = -1e25
    queries = np.full((3, 4), 1e25, np.float32)
    found = tonari.search(queries, x, 79, metric="inner_product")
    assert np.isfinite(found.distances).all()
    with pytest.raises(ValueError, match="row 0 has a inner_product value of -inf"):
        tonari.search(queries, x, 80, metric="inner_product")


def test_products_of_small_elements_of_ordinary_rows_are_answered() -> None:
    """1e-40 is below the range of float32, but the rows have elements with larger products."""
    x, queries = np.zeros((80, 2), np.float32), np.array([[1, 1e-20]] * 3, np.float32)
    x[:, 1] = 1e-20
    found = tonari.search(queries, x, 5, metric="inner_product")
    assert_same_neighbors(found, brute(queries, x, 5, "inner_product"), metric="inner_product")


def test_missing_neighbours_are_no_overflow() -> None:
    x = gaussian(80, 4)
    found = tonari.search(x[:3], x, 5, metric="sqeuclidean", where=np.arange(80) < 2)
    assert (found.indices[:, 2:] == -1).all()
    assert np.isinf(found.distances[:, 2:]).all()


def test_faiss_and_others() -> None:
    from tonari.compat import faiss

    x = (gaussian(50, 8) * 1e20).astype(np.float32)
    for index in (faiss.IndexFlatL2(8), faiss.IndexFlatIP(8)):
        index.add(x)
        with pytest.raises(ValueError, match="overflows"):
            index.search(x[:1], 3)


@needs_torch
def test_tensors() -> None:
    import torch

    x = torch.from_numpy(gaussian(50, 8) * np.float32(1e-25))
    with pytest.raises(ValueError, match="underflows"):
        tonari.search(x[:1], x, 3, metric="sqeuclidean")


@needs_torch
@pytest.mark.parametrize("scale", [1.0, 1e20, 1e-25])
@pytest.mark.parametrize("metric", ["sqeuclidean", "inner_product"])
def test_answers_that_are_tensors(metric: str, scale: float) -> None:
    import torch

    from tonari.core.results.radius_neighbors import RadiusNeighbors
    from tonari.methods.places.value_range import check_counts, check_range
    from tonari.metrics import get_metric

    x = (gaussian(50, 8) * scale).astype(np.float32)
    found = [torch.from_numpy(part) for part in brute(x[:9], x, 9, metric)]
    rows, record = torch.from_numpy(x), get_metric(metric)
    limits = np.full(9, np.inf if scale > 1 else 1e-38, np.float32)
    if metric == "inner_product":
        limits[:] = -3.4028235e38 if scale > 1 else -1e-38

    def counted(n: Any) -> None:
        """Count tensors by methods that accept tensors."""
        counts = torch.full((9,), n)
        found_within = [torch.arange(10) * 9, found[1].ravel(), found[0].ravel()]
        within = RadiusNeighbors(*found_within)
        check_counts(counts, limits, rows[:9], rows, record, lambda _rows, _limits: counts - 1, lambda _rows: within)

    if scale == 1:
        counted(9)
        check_range(*found, None, rows[:9], rows, record)
    else:
        with pytest.raises(ValueError, match="flows"):
            check_range(*found, None, rows[:9], rows, record)
        with pytest.raises(ValueError, match="flows"):
            counted(9)


@pytest.mark.parametrize("metric", ["sqeuclidean", "inner_product"])
@pytest.mark.parametrize("method", ["exact", "auto"])
def test_only_allowed_points_count(metric: str, method: str) -> None:
    """A forbidden point whose value overflows is no reason to refuse a count or a search; an allowed one is."""
    x = gaussian(400, 3) * np.float32(3)
    x[7] = x[9] = 1e38
    within: dict[str, Any] = {"radius": np.inf} if metric == "sqeuclidean" else {"min_similarity": -3.5e38}
    mask = np.ones((90, 400), bool)
    mask[:, [7, 9]] = False
    rules: dict[str, Any] = {"metric": metric, "method": method, **within}
    queries = -np.abs(x[100:190]) * np.float32(100)
    counts = tonari.radius_count(queries, x, where=mask, **rules)
    assert counts.tolist() == [398] * 90
    found = tonari.radius_search(queries, x, where=mask, **rules)
    assert np.diff(found.indptr).tolist() == [398] * 90
    mask[5, 9] = True
    with pytest.raises(ValueError, match="queries: row 5 has"):
        tonari.radius_count(queries, x, where=mask, **rules)
    with pytest.raises(ValueError, match="queries: row 5 has"):
        tonari.radius_search(queries, x, where=mask, **rules)


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("method", ["exact", "kdtree", "auto"])
def test_lists_that_lack_overflowed_values_are_refused_like_counts(method: str, closed: bool) -> None:
    """radius=inf, closed=False finds finite values, and would leave out pairs whose values are inf in float32."""
    x = gaussian(400, 3)
    x[7] = 1.5e38
    queries = np.concatenate([x[:5], np.full((1, 3), -1.5e38, np.float32)])
    index = tonari.Index(x, method=method)
    for verb in ("radius_count", "radius_search"):
        for radius in (np.inf, np.full(6, np.inf)):
            within: dict[str, Any] = {"radius": radius, "closed": closed}
            with pytest.raises(ValueError, match="queries: row 5 has a euclidean value of inf"):
                getattr(tonari, verb)(queries, x, method=method, **within)
            with pytest.raises(ValueError, match="queries: row 5 has a euclidean value of inf"):
                getattr(index, verb)(queries, **within)
    within["radius"] = np.inf
    assert tonari.radius_count(queries[:5], x, method=method, **within).tolist() == [400] * 5
    assert tonari.radius_search(queries[:5], x, method=method, **within).indptr[-1] == 2000
    for rules in ({"where": np.arange(400) != 7}, {"exclude": [[7]] * 6}):
        assert tonari.radius_count(queries, x, method=method, **within, **rules).tolist() == [399] * 6
        found = tonari.radius_search(queries, x, method=method, **within, **rules)
        assert np.diff(found.indptr).tolist() == [399] * 6
    for graph in (tonari.radius_graph, tonari.pairs):
        with pytest.raises(ValueError, match="row 1 has a euclidean value of inf"):
            graph(np.concatenate([queries[4:], x]), method=method, **within)
    with pytest.raises(ValueError, match="has a euclidean value of inf"):
        list(index.radius_chunks(iter([x[:2], queries]), **within))


def test_rows_of_zeros_are_counted_without_a_warning() -> None:
    zeros, ones = np.zeros((3, 2), np.float32), np.full((4, 2), 1e-30, np.float32)
    assert tonari.radius_count(ones, zeros, min_similarity=0.0, metric="inner_product").tolist() == [3] * 4
