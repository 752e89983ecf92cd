"""Surplus copies of rows are left out: the same bits, in the time of a search without copies."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.checks import DTYPES, HOSTILE, assert_same_neighbors
from tonari.core import _native
from tonari.core.results.neighbors import Neighbors
from tonari.exact import PreparedPoints, search_prepared
from tonari.exact.cpu import method
from tonari.exact.cpu.rows import copies
from tonari.exact.plan import ExactPlan
from tonari.exact.planning.planner import plan_on_cpu
from tonari.metrics import METRICS
from tonari.metrics.problem import make_problem
from tonari.metrics.reference import brute

Array = npt.NDArray[Any]
N, D = 600, 9


def with_copies(n: int, d: int, seed: int = 0) -> Array:
    """Make rows; half of them are copies of five rows, tens to hundreds of each, and the others have no copies."""
    rng = np.random.default_rng(seed)
    rows = checks.gaussian(n, d, seed)
    some = rng.random(n) < 0.5
    rows[some] = rows[:5][rng.choice(5, np.count_nonzero(some), p=[0.6, 0.2, 0.1, 0.06, 0.04])]
    return rows


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Look for copies in searches of any size; the list receives the number of points that each search used."""
    counts: list[int] = []

    class Counted(PreparedPoints):
        def __init__(self, *args: Any, **given: Any) -> None:
            super().__init__(*args, **given)
            counts.append(self.count)

    checks.look_for_copies_always(monkeypatch)
    monkeypatch.setattr(method, "PreparedPoints", Counted)
    return counts


def exact(queries: Array, points: Array, k: int, **given: Any) -> Any:
    """Search with a screen, even for few rows."""
    shape = {"dtype": points.dtype, "metric": given.get("metric", "euclidean")}
    plan = tonari.plan(len(points), len(queries), points.shape[1], k, method="exact", query_block=8, **shape)
    return tonari.search(queries, points, k, plan=plan, **given)


@pytest.mark.parametrize("metric", [name for name, metric in METRICS.items() if not metric.bits])
@pytest.mark.parametrize("k", [1, 40])
def test_every_metric(metric: str, k: int, always: list[int]) -> None:
    points = np.abs(with_copies(N, D))
    queries = np.vstack([points[:20], np.abs(checks.gaussian(5, D, 1))])
    found = exact(queries, points, k, metric=metric)
    assert_same_neighbors(found, brute(queries, points, k, metric), metric=metric)
    assert always[0] < N


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(dtype: str, always: list[int]) -> None:
    points = (np.abs(with_copies(N, D)) * 20).astype(dtype)
    assert_same_neighbors(exact(points[:30], points, 7), brute(points[:30], points, 7))
    assert always[0] < N


@pytest.mark.parametrize("k", [1, 7, 300, N - 1])
def test_graphs(k: int, always: list[int]) -> None:
    points = with_copies(N, D)
    plan = tonari.plan(N, N, D, k, self_join=True, method="exact", query_block=8)
    graph = tonari.knn_graph(points, k, plan=plan)
    expected = brute(points, points, k, "euclidean", self_ids=np.arange(N))
    assert_same_neighbors(Neighbors(graph.distances, graph.indices), expected)
    assert (min(always) < N) == (k < 300)


@pytest.mark.parametrize("maker", HOSTILE)
def test_hostile_data(maker: str, always: list[int]) -> None:
    points = HOSTILE[maker](N, D, 0)
    assert_same_neighbors(exact(points[:25], points, 4), brute(points[:25], points, 4))


@pytest.mark.parametrize("most", [1, 2, 11, N])
def test_numbers_of_first_copies(most: int, always: list[int]) -> None:
    points = with_copies(N, D, 3)
    plan = plan_on_cpu(make_problem(N, N, D, most - 1 or 1, dtype="float32", metric="euclidean", threads=2))
    kept = copies.first_copies(points, dataclasses.replace(plan, k=most - 1), 1e-7, 0)
    seen: dict[bytes, int] = {}
    expected = []
    for number, row in enumerate(points):
        seen[row.tobytes()] = seen.get(row.tobytes(), 0) + 1
        if seen[row.tobytes()] <= most:
            expected.append(number)
    if len(expected) == N:
        assert kept is None or len(kept) == N
    else:
        assert kept is not None
        np.testing.assert_array_equal(kept, expected)


def test_rows_that_share_a_number(always: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    def alike(rows: Array, step: int, hashes: Array) -> None:
        hashes[:] = 7

    monkeypatch.setattr(_native, "hash_rows", alike)
    points = with_copies(N, D)
    points[100:200] = points[0]  # each row is compared with the one before it
    assert_same_neighbors(exact(points[:20], points, 5), brute(points[:20], points, 5))
    assert always[0] < N


def test_zeros_of_different_signs(always: list[int]) -> None:
    points = with_copies(N, D)
    points[::2] = 0
    points[::4] *= -1
    assert_same_neighbors(exact(points[:20], points, 5), brute(points[:20], points, 5))


@pytest.mark.parametrize("size", [1, 3, 7, 8, 9, 16, 33, 40])
def test_numbers_depend_on_every_byte(size: int) -> None:
    rows = np.vstack([np.eye(size, dtype=np.uint8), np.zeros((2, size), np.uint8)])
    hashes = np.zeros(size + 2, np.uint64)
    _native.hash_rows(rows, 1, hashes)
    assert len(set(hashes.tolist())) == size + 1
    assert hashes[-1] == hashes[-2]
    again = np.zeros(-(-(size + 2) // 3), np.uint64)
    _native.hash_rows(rows, 3, again)
    np.testing.assert_array_equal(again, hashes[::3])


def contracted(**given: int) -> tuple[Array, ExactPlan, Array]:
    rng = np.random.default_rng(4)
    points = (with_copies(900, 12, 5) @ rng.standard_normal((12, 40))).astype(np.float32)
    plan = tonari.plan(900, 30, 40, 9, method="exact", threads=2, **given)
    assert isinstance(plan, ExactPlan)
    order, late = copies._in_runs(points, copies.Workers(2))
    at = np.arange(900)
    first = at - np.maximum.accumulate(np.where(late != 0, 0, at)) < 10
    return points, plan, np.sort(order[first])


@pytest.mark.parametrize("given", [{"form_dim": 8}, {"look_dim": 8}, {"form_dim": 12, "look_dim": 6}], ids=str)
@pytest.mark.parametrize("own", [False, True])
def test_contracted_rows_and_looks(given: dict[str, int], own: bool) -> None:
    points, plan, kept = contracted(**given)
    assert len(kept) < 600
    chosen = method.plan_for(plan, len(kept))
    prepared = PreparedPoints(points, chosen, False, kept=kept)
    ids = np.arange(30) if own else None
    found, _ = search_prepared(points[:30], prepared, chosen, self_ids=ids)
    assert_same_neighbors(found, brute(points[:30], points, 9, "euclidean", self_ids=ids))


def test_few_copies_are_not_worth_it() -> None:
    def kept_of(points: Array) -> Array | None:
        n = len(points)
        plan = plan_on_cpu(make_problem(n, n, D, 5, dtype="float32", metric="euclidean", threads=2, self_join=True))
        return copies.first_copies(points, plan, 1e-7, 1 << 30)

    points = checks.gaussian(20_000, D)
    assert kept_of(points) is None
    points[::40] = 0
    assert kept_of(points) is None
    points[::4] = 0
    kept = kept_of(points)
    assert kept is not None
    assert len(kept) == 15_000 + 6
    assert kept_of(points[:5000]) is None  # a small search


def test_few_queries_do_not_pay_for_finding_copies() -> None:
    points = checks.gaussian(70_000, D)
    points[np.random.default_rng(0).random(70_000) < 0.1] = 0  # one pair in a hundred

    def kept_of(m: int, meeting: float) -> Array | None:
        plan = plan_on_cpu(make_problem(70_000, m, D, 5, dtype="float32", metric="euclidean", threads=1))
        return copies.first_copies(points, plan, meeting, 1 << 30)

    assert kept_of(1_000, 1e-8) is None
    assert kept_of(1_000, 1e-7) is not None
    assert kept_of(20_000, 1e-8) is not None


def test_no_more_memory_than_planned() -> None:
    points = np.zeros((20_000, 2), np.float32)
    points[:10_000] = checks.gaussian(10_000, 2)
    plan = plan_on_cpu(make_problem(20_000, 20_000, 2, 5, dtype="float32", metric="euclidean", threads=1))
    assert copies.first_copies(points, plan, 1e-7, 32 * 20_000 - 1) is None
    assert copies.first_copies(points, plan, 1e-7, 32 * 20_000) is not None
    for spare in (0, 7 * 10_000):
        for copied, fits in ((31 + spare // 10_000, True), (33 + spare // 10_000, False)):
            kept = copies.first_copies(points, plan, 1e-7, 32 * 20_000, copied=copied, spare=spare)
            assert (kept is not None) == fits
