"""Searches by exact values alone: the smallest searches, and searches of few queries."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks, plans
from tests.helpers.checks import assert_same_neighbors
from tests.helpers.kernels import WITHOUT_AMX
from tonari.core import _native
from tonari.core.results.neighbors import Neighbors
from tonari.costs import model
from tonari.exact import tuning
from tonari.exact.cpu.direct import nearest as direct
from tonari.methods.registry import search_method
from tonari.metrics import METRICS
from tonari.metrics.reference import brute

N, M = 90, 9
BATCH = 2048  # values computed at a time (native/exact/direct.cpp)


def directly(queries: Any, points: Any, k: int, metric: str = "euclidean", **given: Any) -> Any:
    shape = (len(points), len(queries), points.shape[1], k)
    made = tonari.plan(*shape, dtype=points.dtype, metric=metric, direct=True, **given)
    assert made.direct
    return tonari.search(queries, points, k, metric=metric, plan=made)


def rows(name: str, n: int, d: int, metric: str, seed: int = 0) -> Any:
    made = checks.HOSTILE[name](n, d, seed)
    return np.abs(made) if METRICS[metric].nonnegative else made


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("maker", checks.HOSTILE)
@pytest.mark.parametrize("isa", WITHOUT_AMX)
def test_the_bits_of_the_reference(metric: str, maker: str, isa: str) -> None:
    points = rows(maker, N, 19, metric)
    queries = np.concatenate([points[:3], rows(maker, M, 19, metric, seed=1)])
    whole = brute(queries, points, N, metric)
    for k in (1, 7, N // 2, N):
        # A list of all points, cut: the order is total, so this is the truth for every k.
        truth = Neighbors(*(np.ascontiguousarray(part[:, :k]) for part in whole))
        assert_same_neighbors(directly(queries, points, k, metric, isa=isa), truth, metric=metric)


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "uint8", "int8"])
@pytest.mark.parametrize("asked", ["float32", "float64", "uint8"])
@pytest.mark.parametrize("d", [1, 3, 15, 16, 17, 33])
def test_every_dtype_and_width(dtype: str, asked: str, d: int) -> None:
    points = (checks.gaussian(N, d) * 20 + 60).astype(dtype)
    queries = (checks.gaussian(M, d, 1) * 20 + 60).astype(asked)
    for metric in ("euclidean", "correlation", "linf"):
        assert_same_neighbors(directly(queries, points, 5, metric), brute(queries, points, 5, metric), metric=metric)


@pytest.mark.parametrize("n", [1, 2, BATCH - 1, BATCH, BATCH + 1, 2 * BATCH + 7])
@pytest.mark.parametrize("k", [1, 63, 64, 65, 128, BATCH])
@pytest.mark.parametrize("order", ["falling", "rising", "equal"])
def test_points_in_an_order_that_hurts(n: int, k: int, order: str) -> None:
    k = min(k, n)
    points = np.arange(n, dtype=np.float32)[:, None] * {"falling": -1, "rising": 1, "equal": 0}[order]
    queries = np.array([[-3 * n], [0], [n / 2]], np.float32)
    assert_same_neighbors(directly(queries, points, k), brute(queries, points, k))


@pytest.mark.parametrize("k", [150, 250])
def test_values_beyond_float32_are_ordered_by_number(k: int) -> None:
    points = np.full((300, 2), 3e38, np.float32)
    points[::3] *= -1
    found = directly(points[:2], points, k, "sqeuclidean")
    assert_same_neighbors(found, brute(points[:2], points, k, "sqeuclidean"), metric="sqeuclidean")
    assert np.isinf(found.distances).any()


@pytest.mark.parametrize("k", [1, 5, N - 1])
def test_no_point_is_its_own_neighbour(k: int) -> None:
    points = np.concatenate([checks.gaussian(N // 2, 4)] * 2)  # each point has a twin
    made = tonari.plan(N, N, 4, k, self_join=True, direct=True)
    graph = tonari.knn_graph(points, k, plan=made)
    assert_same_neighbors(Neighbors(graph.distances, graph.indices), brute(points, points, k, self_ids=np.arange(N)))


@pytest.mark.parametrize(("m", "alone"), [(1, True), (5, True), (500, False)])
def test_few_queries_are_compared_with_points_that_are_not_packed(m: int, alone: bool) -> None:
    problem = plans.problem(10**6, m, 64, 5)
    assert tonari.plan(10**6, m, 64, 5, method="exact").direct is alone
    exact = search_method("exact", "cpu")
    assert not exact.plan(problem, prepared_by=exact.plan(problem)).direct


def test_the_smallest_searches_are_direct() -> None:
    for m, n, d, alone in ((1, 1000, 128, True), (1, 100, 3, True), (1000, 10_000, 64, False)):
        assert tonari.plan(n, m, d, 5, method="exact").direct is alone
    index = tonari.Index(checks.gaussian(500, 20), method="exact")
    first = index.search(checks.gaussian(2, 20, 1), 3)
    many = index.search(checks.gaussian(400, 20, 1), 3)
    assert_same_neighbors(first, Neighbors(many.distances[:2], many.indices[:2]))


@pytest.mark.parametrize("isa", ["avx2", "avx512", "amx"])
@pytest.mark.parametrize(("m", "n", "d", "alone"), [(1, 1000, 128, True), (1, 100, 3, True), (1000, 10_000, 64, False)])
def test_the_smallest_searches_are_direct_on_every_cpu(m: int, n: int, d: int, alone: bool, isa: str) -> None:
    """By the costs of each instruction set, including those that this machine lacks."""
    problem = plans.problem(n, m, d, 5)
    assert (model.direct_seconds(problem, isa) < model.screening_seconds(problem, isa, prepared=False)) is alone


@pytest.mark.parametrize("isa", ["avx2", "avx512"])
@pytest.mark.parametrize(
    ("n", "m", "d", "k", "alone"),
    [
        (30_000, 500, 128, 500, False),
        *((30_000, 500, 128, k, True) for k in (4096, 10_000, 15_000)),
        (10_000, 1000, 128, 64, False),
        *((10_000, 1000, 128, k, True) for k in (1000, 5000)),
        *((5000, 1000, 128, k, True) for k in (500, 1000)),
        (5000, 5000, 128, 64, False),
        *((30_000, 100, 768, k, alone) for k, alone in ((64, False), (15_000, True))),
        *((100_000, 1000, 128, k, False) for k in (64, 500)),
        (100_000, 100, 128, 4000, True),
        *((10_000, 100, 16, k, True) for k in (200, 2500)),
        *((10_000, 100, 768, k, alone) for k, alone in ((64, False), (2000, True))),
    ],
)
def test_many_neighbours_need_no_screen(n: int, m: int, d: int, k: int, alone: bool, isa: str) -> None:
    """Estimates exclude as many points as a screen, and keeping the remaining points in order takes less time."""
    problem = plans.problem(n, m, d, k)
    assert (model.direct_seconds(problem, isa) < model.screening_seconds(problem, isa, prepared=False)) is alone


def test_many_neighbours_cost_no_more_than_their_number() -> None:
    """Each point is nearer than all before it, so all are kept; dropping some must not check all k every time."""
    points = -np.arange(40_000, dtype=np.float32)[:, None]
    query = np.array([[-50_000]], np.float32)

    def seconds(k: int) -> float:
        made = tonari.plan(len(points), 1, 1, k, metric="l1", direct=True, threads=1)
        taken = []
        for _ in range(5):
            started = time.process_time()
            tonari.search(query, points, k, metric="l1", plan=made)
            taken.append(time.process_time() - started)
        return min(taken)

    assert seconds(8192) < 6 * seconds(64)


@pytest.fixture
def many_calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Let searches be divided into calls of few queries or points; the list receives the sizes of each call."""
    calls: list[tuple[int, int]] = []
    search = _native.search_directly

    def noted(metric: str, isa: str, queries: Any, points: Any, *given: Any) -> bool:
        calls.append((len(queries), len(points)))
        return search(metric, isa, queries, points, *given)

    monkeypatch.setattr(direct, "worth_sharing", lambda seconds: True)
    monkeypatch.setattr(tuning, "DIRECT_SECONDS", 1e-9)
    monkeypatch.setattr(tuning, "DIRECT_POINTS", 16)
    monkeypatch.setattr(tuning, "DIRECT_TIMES", 2)
    monkeypatch.setattr(tuning, "DIRECT_QUERIES", 1)
    monkeypatch.setattr(direct._native, "search_directly", noted)
    return calls


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("maker", checks.HOSTILE)
@pytest.mark.parametrize("threads", [1, 3])
def test_slices_of_points_have_the_bits_of_the_whole(
    metric: str, maker: str, threads: int, many_calls: list[tuple[int, int]]
) -> None:
    points = rows(maker, N, 19, metric)
    queries = np.concatenate([points[:3], rows(maker, M, 19, metric, seed=1)])
    found = directly(queries, points, 7, metric, threads=threads)
    assert sorted(many_calls) == [(M + 3, 16)] * 4 + [(M + 3, 26)]  # 90 points: the last slice takes the rest
    assert_same_neighbors(found, brute(queries, points, 7, metric), metric=metric)


def test_a_point_of_every_slice_at_the_same_distance(many_calls: list[tuple[int, int]]) -> None:
    points = np.tile(np.eye(4, dtype=np.float32), (30, 1))
    found = directly(np.zeros((1, 4), np.float32), points, 40, threads=2)
    assert len(many_calls) == 1  # 40 neighbours are too many for slices
    assert found.indices[0].tolist() == list(range(40))
    found = directly(np.zeros((1, 4), np.float32), points, 20, threads=2)
    assert len(many_calls) == 1 + 3
    assert found.indices[0].tolist() == list(range(20))


def test_distances_beyond_float32_are_found_in_every_slice(many_calls: list[tuple[int, int]]) -> None:
    points = np.full((96, 1), 3e38, np.float32)
    points[82:] = 0
    found = directly(np.full((1, 1), -3e38, np.float32), points, 20)
    assert len(many_calls) > 1
    assert found.indices[0].tolist() == [*range(82, 96), *range(6)]
    assert np.isinf(found.distances[0, 14:]).all()


def test_calls_of_some_queries(many_calls: list[tuple[int, int]]) -> None:
    points = checks.gaussian(N, 5)
    graph = tonari.plan(N, N, 5, 3, self_join=True, direct=True, threads=2)
    found = search_method("exact", "cpu").search_once(points, points, graph, self_join=True)
    assert many_calls == [(1, N)] * N  # a slice of the points would not know which query is one of its points
    assert_same_neighbors(found, brute(points, points, 3, self_ids=np.arange(N)))


@pytest.mark.parametrize(("threads", "sizes"), [(2, [16] * 5 + [10]), (10, [9] * 10)])
def test_a_call_has_enough_queries_to_share_points(
    threads: int, sizes: list[int], many_calls: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "DIRECT_QUERIES", 16)
    points, queries = checks.gaussian(20, 5), checks.gaussian(N, 5, 1)
    found = directly(queries, points, 3, threads=threads)
    assert sorted(many_calls) == sorted((size, 20) for size in sizes)
    assert_same_neighbors(found, brute(queries, points, 3))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("row", [0, 47, 89])
def test_a_bad_value_in_any_slice_is_refused(bad: float, row: int, many_calls: list[tuple[int, int]]) -> None:
    points = checks.gaussian(N, 3)
    made = tonari.plan(N, 2, 3, 2, direct=True, threads=2)
    exact, queries = search_method("exact", "cpu"), checks.gaussian(2, 3, 1)
    fine = exact.search_unchecked(queries, points, made)
    assert fine is not None
    assert_same_neighbors(fine, brute(queries, points, 2))
    points[row, 1] = bad
    assert exact.search_unchecked(queries, points, made) is None
    assert len(many_calls) > 2


def test_calls_are_counted(many_calls: list[tuple[int, int]]) -> None:
    seen: list[tuple[int, int]] = []
    points = checks.gaussian(N, 3)
    plan = tonari.plan(N, 2, 3, 2, direct=True)
    tonari.search(points[:2], points, 2, plan=plan, progress=lambda *pair: seen.append(pair))
    assert seen[-1] == (2 * N, 2 * N)
    assert len(seen) > 1


def test_progress_and_the_log(caplog: pytest.LogCaptureFixture) -> None:
    points, seen = checks.gaussian(60, 4), []
    with caplog.at_level("INFO", logger="tonari"):
        tonari.search(points[:7], points, 2, method="exact", progress=lambda *pair: seen.append(pair))
    assert seen == [(420, 420)]
    assert "7 rows in " in caplog.text
    assert "exact values alone" in caplog.text


def test_fields_of_a_screen_are_refused() -> None:
    with pytest.raises(ValueError, match="there is no screen for which capacity, sample_rank could be set"):
        tonari.plan(100, 1, 3, 2, method="exact", direct=True, capacity=50, sample_rank=1)
    assert not tonari.plan(100, 1, 3, 2, method="exact", direct=False).direct
    assert not tonari.plan(100, 1, 3, 2, method="exact", capacity=50).direct


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"k": 0}, "k=0: expected 1 to 5"),
        ({"k": 6, "distances": np.zeros((2, 6), "f4")}, "k=6: expected 1 to 5"),
        ({"self_ids": np.zeros(2, "i8"), "k": 5}, "k=5: expected 1 to 4"),
        ({"self_ids": np.zeros(3, "i8")}, "self_ids"),
        ({"self_ids": np.array([0, 5])}, "self_ids"),
        ({"points": np.zeros((5, 4), "f4")}, "points"),
        ({"distances": np.zeros((2, 2), "f4")}, "distances"),
        ({"distances": np.zeros((2, 3), "f8")}, "distances"),
        ({"indices": np.zeros((2, 3), "f4")}, "incompatible"),
        ({"metric": "l7"}, "unknown metric l7"),
    ],
    ids=str,
)
def test_what_the_binding_refuses(changes: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"metric": "euclidean", "isa": "generic", "queries": np.zeros((2, 3), "f4")}
    given |= {"points": np.zeros((5, 3), "f4"), "k": 3, "self_ids": None}
    given |= {"distances": np.full((2, 3), np.nan, "f4"), "indices": np.empty((2, 3), "i4")}
    with pytest.raises((TypeError, ValueError), match=message):
        _native.search_directly(**(given | changes))


def by_exact_values(queries: Any, points: Any, k: int, metric: str, isa: str, **given: Any) -> tuple[bool, Neighbors]:
    m, double = len(queries), np.float64 in (queries.dtype, points.dtype)
    found = Neighbors(np.full((m, k), np.nan, "f8" if double else "f4"), np.full((m, k), -7, "i4"))
    given = {"self_ids": None} | given
    plain = _native.search_directly(metric, isa, queries, points, k, *[given.pop("self_ids")], *found, **given)
    return plain is not None, found


def nearly_tied(n: int, d: int, seed: int, *, by: float = 0.0) -> tuple[Any, Any]:
    """Make a query and points whose distances differ by less than the error of a float32 estimate."""
    rng = np.random.default_rng(seed)
    query = (rng.standard_normal(d) + by).astype(np.float32)
    points = np.repeat(query[None], n, axis=0)
    away = rng.standard_normal(d).astype(np.float32)
    for row in points:  # the same differences in another order and with other signs
        row += rng.permutation(away) * rng.choice([-1, 1], d).astype(np.float32)
    return query[None], points


@pytest.mark.parametrize("isa", WITHOUT_AMX)
@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
@pytest.mark.parametrize("d", [1, 2, 15, 16, 17, 31, 48, 129, 700])
def test_estimates_lose_no_neighbour_that_is_nearly_tied(isa: str, metric: str, d: int) -> None:
    for seed, by in enumerate((0.0, 1.0, 1e3, 1e6)):
        queries, points = nearly_tied(600, d, seed, by=by)
        for k in (1, 5, 33, 150):
            seen, found = by_exact_values(queries, points, k, metric, isa, unchecked=2)
            assert seen
            assert_same_neighbors(found, brute(queries, points, k, metric), metric=metric)


@pytest.mark.parametrize("isa", WITHOUT_AMX)
@pytest.mark.parametrize(
    "scale", [2.0**-149, 2.0**-140, 2.0**-126, 2.0**-80, 2.0**-76, 2.0**-74, 2.0**-60, 2.0**62, 2.0**63]
)
def test_estimates_that_underflow_or_nearly_overflow(isa: str, scale: float) -> None:
    rng = np.random.default_rng(3)
    for d in (1, 3, 20):
        points = (rng.integers(-9, 10, (400, d)) * scale).astype(np.float32)
        queries = (rng.integers(-9, 10, (4, d)) * scale).astype(np.float32)
        for metric in ("euclidean", "sqeuclidean"):
            for k in (1, 40, 100):
                _, found = by_exact_values(queries, points, k, metric, isa)
                assert_same_neighbors(found, brute(queries, points, k, metric), metric=metric)


@pytest.mark.parametrize("isa", WITHOUT_AMX)
@pytest.mark.parametrize("maker", checks.HOSTILE)
@pytest.mark.parametrize("n", [1, 4, 7, 300, BATCH + 100])
def test_unchecked_rows_have_the_bits_of_checked_ones(isa: str, maker: str, n: int) -> None:
    points, queries = (checks.HOSTILE[maker](rows, 6, 0) for rows in (n, 3))
    for k in {1, max(1, n // 4), max(1, n // 2), n}:
        seen, found = by_exact_values(queries, points, k, "euclidean", isa, unchecked=2)
        assert seen or maker in ("huge", "offset_float64") or 2 * k > n
        if seen:
            assert_same_neighbors(found, brute(queries, points, k))


@pytest.mark.parametrize("isa", WITHOUT_AMX)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("d", [1, 16, 37])
def test_no_value_that_is_not_finite_passes_unchecked(isa: str, bad: float, d: int) -> None:
    for row, column in ((0, 0), (50, d // 2), (199, d - 1)):
        points, queries = checks.gaussian(200, d), checks.gaussian(3, d, 1)
        for k in (3, 80):
            assert by_exact_values(queries, points, k, "euclidean", isa, unchecked=2)[0]
        points[row, column] = bad
        for k in (3, 80):
            assert not by_exact_values(queries, points, k, "euclidean", isa, unchecked=2)[0]
        points[row, column] = 0
        queries[row % 3, column] = bad
        for k in (3, 80):
            assert not by_exact_values(queries, points, k, "euclidean", isa, unchecked=2)[0]


def test_rows_without_estimates_are_checked_first() -> None:
    points, queries = checks.gaussian(200, 4), checks.gaussian(3, 4, 1)
    for ours, theirs, k, metric in (
        (queries, points, 3, "l1"),
        (queries, points, 3, "inner_product"),
        (queries, points, 101, "euclidean"),
        (queries.astype("f8"), points, 3, "euclidean"),
        (queries, points.astype("f2"), 3, "euclidean"),
    ):
        seen, found = by_exact_values(ours, theirs, k, metric, "generic", unchecked=2)
        assert seen
        assert_same_neighbors(found, brute(ours, theirs, k, metric), metric=metric)
        for bad in (np.nan, -np.inf, 1e200):
            with np.errstate(over="ignore"):
                spoiled = [rows.copy() for rows in (ours, theirs)]
                spoiled[0][-1, -1] = spoiled[1][-1, -1] = bad  # infinite in less than float64
            assert not by_exact_values(ours, spoiled[1], k, metric, "generic", unchecked=2)[0]
            assert not by_exact_values(spoiled[0], theirs, k, metric, "generic", unchecked=1)[0]


@pytest.mark.parametrize("isa", WITHOUT_AMX)
def test_estimates_leave_out_the_query_itself(isa: str) -> None:
    points = np.repeat(checks.gaussian(40, 3), 5, axis=0)
    for k in (1, 4, 33, 50):
        seen, found = by_exact_values(points, points, k, "euclidean", isa, self_ids=np.arange(200), unchecked=2)
        assert seen
        assert_same_neighbors(found, brute(points, points, k, self_ids=np.arange(200)))


@pytest.mark.parametrize("isa", WITHOUT_AMX)
@pytest.mark.parametrize("m", [1, 2, 3, 4, 5, 8, 11])
def test_queries_that_are_estimated_together(isa: str, m: int) -> None:
    for n in (200, BATCH, BATCH + 1):
        for d in (3, 16, 40):
            points, queries = checks.gaussian(n, d), checks.gaussian(m, d, 1)
            for k in (2, 40):
                seen, found = by_exact_values(queries, points, k, "euclidean", isa, unchecked=2)
                assert seen
                assert_same_neighbors(found, brute(queries, points, k))
            for row in range(m):  # one of the values overflows, or is not finite
                spoiled = queries.copy()
                spoiled[row, d - 1] = 3e38
                for k in (2, 40):
                    assert not by_exact_values(spoiled, points, k, "euclidean", isa, unchecked=2)[0]
                    _, found = by_exact_values(spoiled, points, k, "euclidean", isa)
                    assert_same_neighbors(found, brute(spoiled, points, k))


@pytest.mark.parametrize("isa", WITHOUT_AMX)
@pytest.mark.parametrize("order", ["falling", "rising", "equal", "nearly equal", "in any order"])
def test_many_neighbours_gathered_from_several_batches(isa: str, order: str) -> None:
    """Estimates exclude few points in a hard order, or nearly none: no list grows with the number of points."""
    n, rng = 3 * BATCH + 5, np.random.default_rng(0)
    points = rng.standard_normal((n, 3), dtype=np.float32)
    if order.endswith("equal"):
        points[:] = points[0]
        points[:, 0] += rng.integers(0, 3, n) * np.float32(2.0**-22 if order == "nearly equal" else 0)
    elif order != "in any order":
        points = points[np.argsort(np.square(points).sum(axis=1) * (-1 if order == "falling" else 1))]
    queries = np.concatenate([np.zeros((1, 3), np.float32), points[[5, BATCH, n - 1]], [[1, 2, 3]]]).astype("f4")
    own = np.array([0, 5, BATCH, n - 1, n // 2])
    for k in (33, 700, n // 2):
        for self_ids in (None, own):
            seen, found = by_exact_values(queries, points, k, "sqeuclidean", isa, unchecked=2, self_ids=self_ids)
            assert seen
            assert_same_neighbors(found, brute(queries, points, k, "sqeuclidean", self_ids=self_ids))
