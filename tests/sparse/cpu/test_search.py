"""Sparse rows on the CPU, compared with the same dense rows, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

sparse = pytest.importorskip("scipy.sparse", reason="matrices")

from tests.helpers.kernels import ISAS  # noqa: E402
from tests.helpers.sparse_rows import MAKERS, METRICS, same_bits, signed, uniform, words  # noqa: E402
from tonari.core.results.radius_neighbors import RadiusNeighbors, limits_for  # noqa: E402
from tonari.metrics import get_metric  # noqa: E402
from tonari.metrics.problem import make_problem  # noqa: E402
from tonari.metrics.reference import brute  # noqa: E402
from tonari.sparse.cpu.search import PreparedSparse, Request, Scan, find_sparse, kth_sparse, search_sparse  # noqa: E402
from tonari.sparse.plan import SparsePlan, plan_sparse  # noqa: E402
from tonari.sparse.rows import Ranking, SparseRows, as_sparse_rows  # noqa: E402


def prepared_for(
    queries: SparseRows, points: SparseRows, k: int, metric: str, **options: Any
) -> tuple[SparseRows, PreparedSparse, SparsePlan]:
    problem = make_problem(len(points), len(queries), points.d, k, dtype=points.dtype, metric=metric, **options)
    ranking = Ranking(points)
    return queries, PreparedSparse(points, ranking, metric), plan_sparse(problem, queries, points, ranking)


def rows_of(dense: Any, dtype: Any = np.float32) -> SparseRows:
    return as_sparse_rows(sparse.csr_array(dense.astype(dtype)), "points")


@pytest.mark.parametrize("data", MAKERS)
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_bits_of_the_reference(data: str, metric: str, dtype: Any) -> None:
    points = MAKERS[data](300, 40).astype(dtype)
    queries = np.concatenate([points[:10], MAKERS[data](10, 40, 1).astype(dtype)])
    for k in (1, 10, 300):
        given = prepared_for(rows_of(queries, dtype), rows_of(points, dtype), k, metric)
        same_bits(search_sparse(*given), brute(queries, points, k, metric))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("data", [words, signed])
def test_several_blocks_of_points(metric: str, data: Any) -> None:
    points = data(9000, 60).astype(np.float32)
    queries = np.concatenate([points[::1500], data(6, 60, 1).astype(np.float32)])
    given = prepared_for(rows_of(queries), rows_of(points), 12, metric)
    same_bits(search_sparse(*given), brute(queries, points, 12, metric))


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("threads", [1, 3])
def test_instruction_sets_and_threads_change_no_bit(isa: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TONARI_ISA", isa)
    points = words(400, 70).astype(np.float32)
    given = prepared_for(rows_of(points), rows_of(points), 9, "cosine", threads=threads)
    assert given[2].isa == ("avx512" if isa == "amx" else isa)
    own = np.arange(400)
    same_bits(search_sparse(*given, Request(k=9, own=True)), brute(points, points, 9, "cosine", self_ids=own))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("data", ["words", "signed", "copies", "near_copies"])
def test_all_within_a_limit(metric: str, data: str) -> None:
    points = MAKERS[data](300, 40).astype(np.float32)
    rows = rows_of(points)
    descending = get_metric(metric).descending
    for radius in (0.0, 0.4, 1.0, 1.5):
        limits = limits_for(radius, 300, np.float32, closed=True, descending=descending)
        given = prepared_for(rows, rows, 1, metric)
        every = brute(points, points, 300, metric)
        inside = every.distances >= radius if descending else every.distances <= limits[:, None]
        indptr = np.concatenate([np.zeros(1, np.int64), inside.sum(axis=1).cumsum()])
        expected = RadiusNeighbors(indptr, every.indices[inside], every.distances[inside])
        same_bits(find_sparse(*given, Request(limits=limits)), expected)
        found = find_sparse(*given, Request(limits=limits, own=True, later=True))
        rows_found = np.repeat(np.arange(300), np.diff(expected.indptr))
        assert np.array_equal(found.indices, expected.indices[expected.indices > rows_found])


def test_the_kth_value_needs_no_lists() -> None:
    points = words(300, 40).astype(np.float32)
    rows = rows_of(points)
    expected = brute(points, points, 7, "euclidean", self_ids=np.arange(300)).distances[:, -1]
    same_bits([kth_sparse(*prepared_for(rows, rows, 7, "euclidean"), lambda rows, found: None)], [expected])


@pytest.mark.parametrize("exponent", [-400, -200, 140])
@pytest.mark.parametrize("metric", METRICS)
def test_float64_beyond_the_range_of_the_screen(metric: str, exponent: int) -> None:
    points = signed(60, 20) * 2.0**exponent
    points[::7] *= 2.0**-300
    points[3] = 0
    given = prepared_for(rows_of(points, np.float64), rows_of(points, np.float64), 8, metric)
    same_bits(search_sparse(*given), brute(points, points, 8, metric))


def test_a_million_columns() -> None:
    rng = np.random.default_rng(0)
    columns = np.sort(rng.choice(10**6, 50, replace=False))
    narrow = uniform(200, 50)
    wide = sparse.csr_array(narrow)
    wide = sparse.csr_array((wide.data, columns[wide.indices].astype(np.int64), wide.indptr), shape=(200, 10**6))
    rows = as_sparse_rows(wide, "points")
    found = search_sparse(*prepared_for(rows, rows, 5, "cosine"))
    assert np.array_equal(found.indices, brute(narrow, narrow, 5, "cosine").indices)
    assert (found.distances[:, 0] == 0).all()


def test_the_screen_leaves_few_points() -> None:
    points = rows_of(words(2000, 300))
    queries, prepared, plan = prepared_for(points, points, 10, "cosine", threads=1)
    refined: list[int] = []
    Scan(queries, prepared, plan, Request(k=plan.k)).run(
        lambda _, rows, block: refined.append(block.refined()), progress=False
    )
    assert sum(refined) < 12 * len(points)


def test_rows_without_a_common_column_are_not_all_refined() -> None:
    points = rows_of(np.kron(np.eye(50), np.ones((20, 2))))
    queries, prepared, plan = prepared_for(points, points, 30, "cosine", threads=1)
    refined: list[int] = []
    Scan(queries, prepared, plan, Request(k=plan.k)).run(
        lambda _, rows, block: refined.append(block.refined()), progress=False
    )
    assert sum(refined) <= 60 * len(points)


def test_products_that_underflow_are_no_missing_columns() -> None:
    points = np.array([[1.0, 2.0**-120 * (1 + i), 0.0] for i in range(30)])
    queries = np.array([[0.0, 2.0**-50, 1.0]])
    given = prepared_for(rows_of(queries, np.float64), rows_of(points, np.float64), 1, "inner_product")
    same_bits(search_sparse(*given), brute(queries, points, 1, "inner_product"))


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
def test_returned_values_that_tie_go_to_the_smaller_index(metric: str) -> None:
    points = np.zeros((100, 101), np.float32)
    points[np.arange(100), 1 + np.arange(100)] = 1 - 0.01 * np.arange(100, dtype=np.float32)
    queries = np.zeros((1, 101), np.float32)
    queries[0, 0] = 1000
    expected = brute(queries, points, 1, metric)
    assert expected.indices[0, 0] < 90
    same_bits(search_sparse(*prepared_for(rows_of(queries), rows_of(points), 1, metric)), expected)


def test_pairs_of_several_blocks_are_those_of_all_lists() -> None:
    rng = np.random.default_rng(0)
    rows = as_sparse_rows(
        sparse.csr_array((rng.random(45000), rng.integers(0, 3000, 45000), np.arange(0, 45001, 5)), (9000, 3000)),
        "points",
    )
    limits = np.full(9000, 0.75)
    queries, prepared, plan = prepared_for(rows, rows, 1, "cosine", threads=1)
    every = find_sparse(queries, prepared, plan, Request(limits=limits))
    later = find_sparse(queries, prepared, plan, Request(limits=limits, own=True, later=True))
    mine = np.repeat(np.arange(9000), np.diff(every.indptr))
    assert len(later.indices)
    assert np.array_equal(later.indices, every.indices[every.indices > mine])
    assert np.array_equal(later.distances, every.distances[every.indices > mine])
