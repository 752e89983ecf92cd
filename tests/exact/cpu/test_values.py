"""Exact search compared with the plain float64 definition, bit for bit: metrics, dtypes, kernels, data, shapes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.checks import DTYPES, HOSTILE, assert_same_neighbors, assert_valid_neighbors, widest
from tests.helpers.kernels import WITHOUT_AMX
from tonari.core import _native
from tonari.core.results.neighbors import Neighbors
from tonari.exact import tuning
from tonari.metrics import METRICS
from tonari.metrics.reference import brute

Array = npt.NDArray[Any]
Rungs = tuple[str, tuple[str, ...]]
Search = Callable[..., Neighbors]
Maker = Callable[[int, int, int], Array]

BFLOAT16_MAKERS = (widest, checks.subnormal, checks.huge, checks.duplicates, checks.tight_far_clusters)
EDGES = sorted({1, 7, *(size + step for size in (4, 6, 12, 16, 32, 96, 256) for step in (-1, 0, 1))})


def made(maker: str, n: int, d: int, metric: str, seed: int = 0) -> Array:
    """Make rows that are hard to search and that a metric accepts."""
    return checks.accepted(HOSTILE[maker](n, d, seed), metric)


def tied(n: int, d: int, seed: int = 0, dtype: npt.DTypeLike = np.float32) -> Array:
    """Make whole numbers from a small range, so that distances tie."""
    return np.random.default_rng(seed).integers(0, 5, (n, d)).astype(dtype)


@cache
def hostile_truth(maker: str, n: int, m: int, d: int, k: int, metric: str) -> Neighbors:
    points = made(maker, n, d, metric)
    return brute(points[:m], points, k, metric)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("query_dtype", DTYPES)
@pytest.mark.parametrize("point_dtype", DTYPES)
def test_every_metric_takes_every_pair_of_dtypes(metric: str, query_dtype: str, point_dtype: str) -> None:
    def rows(n: int, dtype: str, seed: int) -> Array:
        values = np.random.default_rng(seed).normal(0, 30, (n, 19))
        if METRICS[metric].nonnegative or dtype == "uint8":
            values = np.abs(values)
        return np.clip(values, -128, 127).astype(dtype)

    queries, points = rows(9, query_dtype, 1), rows(300, point_dtype, 2)
    found = tonari.search(queries, points, 12, metric=metric)
    wide = "float64" in (query_dtype, point_dtype)
    assert found.distances.dtype == (np.float64 if wide else np.float32)
    assert found.indices.dtype == np.int32
    assert_same_neighbors(found, brute(queries, points, 12, metric), metric=metric)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_kernel_takes_every_dtype(metric: str, screens: Rungs, dtype: str, by_plan: Search) -> None:
    points = np.abs(checks.gaussian(300, 21, 3) * 20).astype(dtype)
    isa, precisions = screens
    found = by_plan(points[:40], points, 9, metric, isa=isa, precisions=precisions)
    assert_same_neighbors(found, _dtype_truth(dtype, metric), metric=metric)


@cache
def _dtype_truth(dtype: str, metric: str) -> Neighbors:
    points = np.abs(checks.gaussian(300, 21, 3) * 20).astype(dtype)
    return brute(points[:40], points, 9, metric)


@pytest.mark.parametrize("maker", HOSTILE)
@pytest.mark.parametrize("capacity", [None, 1], ids=["roomy", "settles"])
def test_hostile_data(metric: str, screens: Rungs, maker: str, capacity: int | None, by_plan: Search) -> None:
    isa, precisions = screens
    points = made(maker, 600, 24, metric)
    found = by_plan(points[:20], points, 17, metric, isa=isa, precisions=precisions, capacity=capacity)
    assert_same_neighbors(found, hostile_truth(maker, 600, 20, 24, 17, metric), metric=metric)


@pytest.mark.parametrize("maker", BFLOAT16_MAKERS, ids=lambda maker: maker.__name__)
def test_hostile_bfloat16(metric: str, screens: Rungs, maker: Maker, by_plan: Search) -> None:
    isa, precisions = screens
    rows = maker(300, 24, 0).astype("bfloat16")
    points = np.abs(rows) if METRICS[metric].nonnegative else rows
    found = by_plan(points[:9], points, 17, metric, isa=isa, precisions=precisions)
    assert_same_neighbors(found, _bfloat16_truth(maker, metric), metric=metric)


@cache
def _bfloat16_truth(maker: Maker, metric: str) -> Neighbors:
    rows = maker(300, 24, 0).astype("bfloat16").astype(np.float32)
    points = np.abs(rows) if METRICS[metric].nonnegative else rows
    return brute(points[:9], points, 17, metric)


@pytest.mark.parametrize("maker", HOSTILE)
@pytest.mark.parametrize("d", [1, 4096])
@pytest.mark.parametrize("metric", ["euclidean", "cosine", "inner_product", "linf"])
def test_one_dimension_and_very_many(metric: str, d: int, maker: str, by_plan: Search) -> None:
    n, m = (300, 20) if d == 1 else (110, 2)
    points = made(maker, n, d, metric)
    truth = hostile_truth(maker, n, m, d, 5, metric)
    for isa in _native.supported_isas():
        assert_same_neighbors(by_plan(points[:m], points, 5, metric, isa=isa), truth, metric=metric)


@pytest.mark.parametrize("n", EDGES)
def test_numbers_of_points_around_every_tile(screens: Rungs, n: int, by_plan: Search) -> None:
    isa, precisions = screens
    points, queries = tied(n, 5), tied(3, 5, 1)
    for k in {1, (n + 1) // 2, n}:
        found = by_plan(queries, points, k, isa=isa, precisions=precisions)
        assert_same_neighbors(found, brute(queries, points, k))


@pytest.mark.parametrize("m", EDGES)
def test_numbers_of_queries_around_every_tile(screens: Rungs, m: int, by_plan: Search) -> None:
    isa, precisions = screens
    points, queries = tied(50, 5), tied(m, 5, 1)
    assert_same_neighbors(by_plan(queries, points, 4, isa=isa, precisions=precisions), brute(queries, points, 4))


@pytest.mark.parametrize("d", EDGES)
@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_numbers_of_dimensions_around_every_run(screens: Rungs, d: int, dtype: str, by_plan: Search) -> None:
    isa, precisions = screens
    points = (tied(60, d) * 40 + np.arange(d) % 7).astype(dtype)
    found = by_plan(points[:7], points, 6, isa=isa, precisions=precisions)
    assert_same_neighbors(found, brute(points[:7], points, 6))


@pytest.mark.parametrize("d", [1, 15, 16, 17, 33])
@pytest.mark.parametrize("n", [1, 5, 13, 97])
@pytest.mark.parametrize("metric", checks.ELEMENTWISE)
def test_shapes_of_the_elementwise_kernels(metric: str, n: int, d: int, by_plan: Search) -> None:
    points, queries = tied(n, d), tied(17, d, 1)
    for isa in WITHOUT_AMX:
        assert_same_neighbors(
            by_plan(queries, points, n, metric, isa=isa), brute(queries, points, n, metric), metric=metric
        )


@pytest.mark.parametrize("maker", ["gaussian", "duplicates", "tight_far_clusters", "huge", "zero_rows"])
@pytest.mark.parametrize("metric", METRICS)
def test_k_without_a_cliff(metric: str, maker: str) -> None:
    points = made(maker, 900, 6, metric)
    whole = brute(points[:5], points, 900, metric)
    for k in (1, 2, 63, 64, 199, 200, 257, 899, 900):
        found = tonari.search(points[:5], points, k, metric=metric)
        # A list of all points, cut: the order is total, so this is the truth for every k.
        truth = Neighbors(*(np.ascontiguousarray(part[:, :k]) for part in whole))
        assert_same_neighbors(found, truth, metric=metric)


def test_many_zero_products_are_not_negative_zero() -> None:
    queries, points = np.array([[0, 1, 0]], np.float32), np.zeros((700, 3), np.float32)
    points[:, 0] = -1
    for k in (1, 10, 700):
        assert_valid_neighbors(
            tonari.search(queries, points, k, metric="inner_product"), m=1, n=700, k=k, metric="inner_product"
        )


@pytest.mark.parametrize("power", [-480, -496, -510, -524, -530, -537, -545, -600, -900, -1040])
@pytest.mark.parametrize("d", [3, 64])
@pytest.mark.parametrize("metric", METRICS)
def test_squares_that_underflow_float64(metric: str, d: int, power: int) -> None:
    # Below about 2**-500, squares lose bits and finally all of them; values that the reference rounds to the same
    # number tie, however much the rows differ relative to each other.
    points = np.ldexp(checks.gaussian(400, d, 4, np.float64), power)
    points = np.abs(points) if METRICS[metric].nonnegative else points
    found = tonari.search(points[:8], points, 10, metric=metric)
    assert_same_neighbors(found, brute(points[:8], points, 10, metric), metric=metric)


@pytest.mark.parametrize("metric", METRICS)
def test_float64_up_to_the_largest_value_allowed(metric: str) -> None:
    points = checks.gaussian(400, 9, 5, np.float64)
    points *= 1e150 / np.abs(points).max()
    points[::3] *= 1e-140  # and a range of magnitudes that no screen can represent
    points = np.abs(points) if METRICS[metric].nonnegative else points
    found = tonari.search(points[:30], points, 10, metric=metric)
    assert_same_neighbors(found, brute(points[:30], points, 10, metric), metric=metric)


@pytest.mark.parametrize("metric", METRICS)
def test_elements_of_which_the_scale_leaves_nothing(metric: str) -> None:
    # Most rows share the query's large element, and a few share its small ones. A metric of relative differences ranks
    # the latter as near, however small the elements are.
    rng = np.random.default_rng(8)
    points = np.ldexp(rng.uniform(1, 2, (1_500, 9)), -700)
    points[:, 0] = 2.0**490
    points[700:720, 1:] = points[0, 1:]
    points[700:720, 0] *= 1 + np.arange(1, 21) / 1000
    found = tonari.search(points[:1], points, 5, metric=metric)
    assert_same_neighbors(found, brute(points[:1], points, 5, metric), metric=metric)


def rows_that_no_sample_sees(n: int) -> Array:
    """Make rows that are not in the sample of every step-th row, by which centre and scale are chosen."""
    step = -(-n // tuning.CENTRED_ROWS)
    assert step > 1
    return np.arange(1, n, step)


@pytest.mark.parametrize("metric", ["euclidean", "inner_product", *checks.ELEMENTWISE])
@pytest.mark.parametrize("k", [1, 3])
def test_outliers_that_the_scale_did_not_see(metric: str, k: int) -> None:
    # The scale comes from a sample of the rows. Here, a point beyond the screen's range is nearest, and points within
    # the range are nearly as near.
    points = np.random.default_rng(6).uniform(0, 0.9, (20_000, 4)).astype(np.float32)
    unseen = rows_that_no_sample_sees(len(points))[:7]
    points[unseen] = np.array([[0.4e15], [0.45e15], [0.51e15], [0.8e15], [0.9e15], [1.1e15], [3e30]], np.float32)
    queries = np.array([[0.49e15], [0.98e15], [2e30], [0.5]], np.float32).repeat(4, axis=1)
    found = tonari.search(queries, points, k, metric=metric)
    assert_same_neighbors(found, brute(queries, points, k, metric), metric=metric)


def test_queries_far_larger_than_the_points() -> None:
    points = checks.gaussian(300, 7)
    queries = checks.gaussian(9, 7, 1, np.float64) * 10.0 ** np.arange(0, 144, 16)[:, None]
    for metric in ("euclidean", "inner_product", "cosine", "l1"):
        found = tonari.search(queries, points, 6, metric=metric)
        assert_same_neighbors(found, brute(queries, points, 6, metric), metric=metric)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("maker", ["all_equal", "duplicates", "zero_rows", "one_hot", "gps_metres"])
def test_graph_excludes_self_by_identity(metric: str, maker: str) -> None:
    points = made(maker, 150, 6, metric)
    own = np.arange(150)
    for k in (1, 7, 149):
        graph = tonari.knn_graph(points, k, metric=metric)
        found = Neighbors(graph.distances, graph.indices)
        assert_valid_neighbors(found, m=150, n=150, k=k, metric=metric, self_ids=own)
        assert_same_neighbors(found, brute(points, points, k, metric, self_ids=own), metric=metric)


@pytest.mark.parametrize("capacity", [None, 1])
def test_graph_of_equal_points_on_every_kernel(screens: Rungs, capacity: int | None) -> None:
    points = checks.all_equal(300, 4)
    isa, precisions = screens
    choices = {} if capacity is None else {"capacity": capacity}
    plan = tonari.plan(300, 300, 4, 8, isa=isa, precisions=precisions, threads=1, **choices)
    graph = tonari.knn_graph(points, 8, plan=plan)
    expected = [[j for j in range(9) if j != i][:8] for i in range(300)]
    assert graph.indices.tolist() == expected
    assert not graph.distances.any()


@pytest.mark.parametrize("metric", METRICS)
def test_graph_with_self_first(metric: str) -> None:
    points = made("duplicates", 90, 5, metric)
    alone = tonari.knn_graph(points, 6, metric=metric)
    graph = tonari.knn_graph(points, 7, metric=metric, include_self=True)
    assert graph.include_self
    assert (graph.indices[:, 0] == np.arange(90)).all()
    np.testing.assert_array_equal(graph.indices[:, 1:], alone.indices)
    np.testing.assert_array_equal(graph.distances[:, 1:], alone.distances)
    wide = points.astype(np.float64)
    own = (wide * wide).sum(axis=1).astype(np.float32) if metric == "inner_product" else np.zeros(90, np.float32)
    np.testing.assert_allclose(graph.distances[:, 0], own, rtol=1e-6, atol=0)
    assert graph.distances.dtype == graph.distances[:, 0].dtype == np.float32


def test_graph_of_one_point_has_only_itself() -> None:
    graph = tonari.knn_graph(np.array([[3.0, 4.0]], np.float32), 1, include_self=True)
    assert (graph.indices.tolist(), graph.distances.tolist()) == ([[0]], [[0.0]])
    with pytest.raises(ValueError, match=r"k=1: the largest k is 0, as there is 1 point and a point is not its own"):
        tonari.knn_graph(np.array([[3.0, 4.0]], np.float32), 1)


def test_zero_vectors_are_at_cosine_distance_one() -> None:
    points = np.array([[0, 0], [1, 0], [-1, 0]], np.float32)
    found = tonari.search(points, points, 3, metric="cosine")
    assert found.distances.tolist() == [[1, 1, 1], [0, 1, 2], [0, 1, 2]]
    assert found.indices.tolist() == [[0, 1, 2], [1, 0, 2], [2, 0, 1]]


def test_rows_of_one_value_have_no_direction() -> None:
    # Their rounded mean is not exactly the repeated value, and the remainder must not decide.
    points = np.random.default_rng(0).standard_normal((60, 19))
    points[::4], points[1::4] = 0.1, 0.7
    assert points[0].mean() != points[0, 0]
    found = tonari.search(points[:4], points, 50, metric="correlation")
    assert_same_neighbors(found, brute(points[:4], points, 50, "correlation"))


def test_sums_of_bytes_beyond_int32() -> None:
    d = 133_300  # 2**14 products of 2**17 bytes and more overflow 32 bits
    points = np.zeros((40, d), np.uint8) + np.arange(40, dtype=np.uint8)[:, None]
    assert "int8" not in tonari.plan(40, 3, d, 2, dtype="uint8").precisions
    assert_same_neighbors(tonari.search(points[:3], points, 2), brute(points[:3], points, 2))
    with pytest.raises(ValueError, match="int8 sums overflow"):
        tonari.plan(40, 3, d, 2, dtype="uint8", precisions=("int8", "float32"))


def test_products_far_beyond_the_scale_of_the_sample() -> None:
    # Rows outside the sample contain products of 1e35; five of them are wanted.
    n = 20_000
    points = np.random.default_rng(0).standard_normal((n, 4)).astype(np.float32)
    unseen = rows_that_no_sample_sees(n)
    points[unseen, 0] = (1e35 * (1 + np.arange(len(unseen)) / len(unseen))).astype(np.float32)
    queries = np.abs(points[:3])
    queries[:, 0] = [0.5, 1.0, 2.0]
    found = tonari.search(queries, points, 5, metric="inner_product")
    assert_same_neighbors(found, brute(queries, points, 5, "inner_product"), metric="inner_product")


def test_products_that_cancel_beside_a_centre() -> None:
    # Bytes are shifted by 128 before they are packed. Queries with elements near 1e9 whose sum is 0 lose this shift to
    # the rounding of the exact value, which the bound for shifted rows does not cover by itself.
    d = 200
    points = np.full((3000, d), 128, np.uint8)
    points[:-3, 0] = 127
    plan = tonari.plan(
        3000, 1, d, 5, dtype="uint8", metric="inner_product", precisions=("float32",), capacity=60, threads=1
    )  # fmt: skip
    for seed in range(40):
        query = np.zeros((1, d))
        query[0, 1:] = np.random.default_rng(seed).standard_normal(d - 1) * 1e9
        query[0, -1] -= query[0, 1:].sum()
        query[0, 0] = 1e-4
        found = tonari.search(query, points, 5, metric="inner_product", plan=plan)
        assert_same_neighbors(found, brute(query, points, 5, "inner_product"), metric="inner_product")
