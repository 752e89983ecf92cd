"""Rows of tight clusters are searched among the points near to them, which hold all their answers.

Without a GPU the CPU plays the device, in Triton's interpreter.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from tests.helpers.checks import Array, assert_same_neighbors
from tests.helpers.devices import HAS_TORCH, needs_torch
from tests.helpers.gpu_checks import DEVICE, on_host, plan_of, tensors
from tonari.metrics.reference import brute

pytestmark = [needs_torch]
if HAS_TORCH:
    import torch

    from tonari.exact.cuda import dispatch, neighbourhoods
    from tonari.exact.cuda import search as engine
    from tonari.exact.cuda.form import make_form
    from tonari.exact.cuda.neighbourhoods import reach_of
    from tonari.exact.cuda.routes.resident import search_resident

N, D, K, CLUSTERS = 240, 5, 3, 4


def tight(n: int = N, d: int = D, seed: int = 0, apart: float = 1e4, dtype: Any = np.float32) -> Array:
    """Rows of clusters of width 1 that are far apart; row i is of cluster i modulo their number."""
    generator = np.random.default_rng(7)
    centres = apart * generator.standard_normal((CLUSTERS, d))
    rows = centres[np.arange(n) % CLUSTERS] + np.random.default_rng(seed).standard_normal((n, d))
    return rows.astype(dtype)


def rounds(queries: Array, points: Array, k: int, metric: str = "euclidean", least: int = 1) -> list[tuple[Any, Any]]:
    """What neighbourhoods of queries are, given their true k-th values."""
    q, p = tensors(DEVICE, queries, points)
    form = make_form(p, metric)
    (kth,) = tensors(DEVICE, brute(queries, points, k, metric).distances[:, -1])
    found = nearby(q, p, form, reach_of(kth, form), least)
    return [tuple(part.cpu().numpy() for part in one) for one in found]


def nearby(*given: Any) -> list[tuple[Any, Any]]:
    """The neighbourhoods of all rounds, which have the sizes that the rounds tell."""
    found = []
    for one in neighbourhoods.neighbourhoods(*given):
        each = list(one)
        assert one.sizes == [(len(some), len(numbers)) for some, numbers in each]
        found += each
    return found


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neighbourhoods are worth it however small they are."""
    monkeypatch.setattr(neighbourhoods, "_OF_ROUND", 1)
    monkeypatch.setattr(engine, "OF_VALUES", 1)


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
@pytest.mark.parametrize(("dtype", "unit"), [(np.float32, 1), (np.float64, 1), (np.float64, 1e-6), (np.float64, 1e9)])
@pytest.mark.parametrize("centres", [1, 3, 64])
def test_all_answers_are_inside(
    centres: int, dtype: Any, unit: float, metric: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbourhoods, "CENTRES", centres)
    queries, points = (rows * dtype(unit) for rows in (tight(30, seed=1, dtype=dtype), tight(dtype=dtype)))
    truth = brute(queries, points, K, metric)
    seen: list[int] = []
    for some, numbers in rounds(queries, points, K, metric):
        seen += some.tolist()
        assert (np.diff(numbers) > 0).all()
        assert np.isin(truth.indices[some], numbers).all()
        assert len(numbers) <= N / CLUSTERS
    assert sorted(seen) == list(range(30))


def test_answers_at_the_limit_are_inside() -> None:
    """A point as far from the centre as the triangle inequality allows: on a line beyond the query."""
    points = np.zeros((N, 1), np.float32)
    points[:, 0] = 1e6 + np.arange(N)
    points[0] = 0
    queries = np.array([[1e6], [1e6 + 2], [1e6 + 3]], np.float32)
    found = rounds(queries, points, 3)
    truth = brute(queries, points, 3)
    assert sorted(row for some, _ in found for row in some) == [0, 1, 2]
    for some, numbers in found:
        assert np.isin(truth.indices[some], numbers).all()


def test_points_without_a_form_are_in_every_neighbourhood() -> None:
    queries, points = tight(12, seed=1), tight()
    q, p = tensors(DEVICE, queries, points)
    form = make_form(p, "euclidean")
    (kth,) = tensors(DEVICE, brute(queries, points, K).distances[:, -1])
    p[[3, 77]] = 3e20
    found = nearby(q, p, form, reach_of(kth, form), 1)
    assert found
    for _, numbers in found:
        assert np.isin([3, 77], numbers.cpu().numpy()).all()


def test_queries_without_a_known_neighbour_have_no_neighbourhood() -> None:
    """And those near to them have theirs."""
    queries, points = tensors(DEVICE, np.repeat(tight(CLUSTERS), 3, 0), tight())
    form = make_form(points, "euclidean")
    reach = (20 * form.scale).repeat(len(queries))
    reach[[0, 4]] = float("inf")
    found = nearby(queries, points, form, reach, 1)
    assert sorted(row for some, _ in found for row in some.tolist()) == [1, 2, 3, *range(5, 12)]


def test_half_of_the_points_are_no_neighbourhood() -> None:
    points = tight()
    points[::2] = points[0]
    found = rounds(points[:4] + np.float32(0.1), points, K)
    assert sorted(row for some, _ in found for row in some) == [1, 3]


def test_rows_that_are_all_near_have_no_neighbourhoods() -> None:
    """Of many columns: all distances are about the same."""
    assert rounds(tight(12, 60, apart=0), tight(60, 60, apart=0), K) == []


def test_what_saves_little_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clusters of one place each: 8, 8, 7 and 7 queries, and 180 points elsewhere."""
    points = tight(CLUSTERS)[np.arange(N) % CLUSTERS]
    queries = points[:30] + np.float32(0.5)

    def sizes(least: int, by_round: int = 1, centres: int = 64) -> list[int]:
        monkeypatch.setattr(neighbourhoods, "_OF_ROUND", by_round)
        monkeypatch.setattr(neighbourhoods, "CENTRES", centres)
        return [len(some) for some, _ in rounds(queries, points, K, least=least)]

    assert sorted(sizes(1)) == [7, 7, 8, 8]
    assert sizes(7 * 180 * D + 1) == [8, 8]
    assert sizes(8 * 180 * D + 1) == []
    assert len(sizes(1, centres=1)) == CLUSTERS
    assert len(sizes(1, 8 * N * D + 1, centres=1)) == 1  # and no second round


@pytest.mark.parametrize("self_join", [False, True])
@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
@pytest.mark.usefixtures("attempts")
def test_rows_that_no_bound_separates_are_searched_nearby(
    metric: str, self_join: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "LEAST_LEFT", 2)
    if self_join:  # of which retries would take long
        monkeypatch.setattr(engine, "OF_SCREEN", 1)
    points = tight(120 if self_join else 400, apart=1e6)
    queries = points if self_join else tight(8, seed=1, apart=1e6)
    q, p = tensors(DEVICE, queries, points)
    q = p if self_join else q
    plan = plan_of(
        q, p, K, metric, devices=(DEVICE,), self_join=self_join, group=8, width=1, precisions=("float16", "values")
    )
    searched: list[int] = []
    among = engine.Retries.among

    def of_among(self: Any, numbers: Any, rows: Any) -> None:
        searched.append(len(rows))
        among(self, numbers, rows)

    monkeypatch.setattr(engine.Retries, "among", of_among)
    levels = []
    for subsets in (True,) if self_join else (False, True):
        made = dataclasses.replace(plan, subsets=subsets)
        with dispatch.on(plan.devices[0]):
            found, report = search_resident(q, dispatch.prepare(p, made), made, self_join=self_join, progress=False)
        own = np.arange(len(points)) if self_join else None
        assert_same_neighbors(on_host(found), brute(queries, points, K, metric, self_ids=own), metric=metric)
        levels.append(report.rows_by_precision)
        assert sum(levels[-1].values()) == len(queries)
    assert levels[-1].get("values", 0) < len(queries) / 2
    assert sum(searched) >= len(queries) / 2
    if not self_join:
        assert levels[0] == {"values": len(queries)}


def test_angular_metrics_compare_all_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "LEAST_LEFT", 1)
    points = np.ones((200, D), np.float32)
    points[:, 0] += np.float32(2.0**-20) * np.arange(200)
    q, p = tensors(DEVICE, points[[100]], points)
    plan = plan_of(q, p, K, "cosine", devices=(DEVICE,), group=8, width=1, precisions=("float16", "values"))
    plan = dataclasses.replace(plan, subsets=True)
    with dispatch.on(plan.devices[0]):
        found, report = search_resident(q, dispatch.prepare(p, plan), plan, progress=False)
    assert report.rows_by_precision == {"values": 1}
    assert_same_neighbors(on_host(found), brute(points[[100]], points, K, "cosine"), metric="cosine")


@pytest.mark.usefixtures("attempts")
def test_retries_are_rehearsed_with_what_finds_copies() -> None:
    from tests.helpers.plans import exact_cuda
    from tonari.cuda.rehearsal import Card, rehearsing

    def launched(rows: int, metric: str, *, subsets: bool) -> set[str]:
        plan = exact_cuda(1000, 1000, 40, 10, metric=metric, devices=("cuda:0",), free_bytes=10**9)
        points, queries = (torch.empty((1000, 40), device="meta") for _ in range(2))
        with rehearsing(Card((9, 0), 132)) as rehearsal:
            prepared = engine.DevicePoints(points, metric, plan.precisions[0])
            begun = prepared.begin(queries, dataclasses.replace(plan, subsets=subsets))
            engine.rehearse_retries(begun, rows, None)
        return {call.name for call in rehearsal.calls.values()}

    finders = {"hash_rows_kernel", "same_rows_kernel"}
    assert finders <= launched(engine.LEAST_LEFT, "euclidean", subsets=True)
    assert not finders & launched(engine.LEAST_LEFT - 1, "euclidean", subsets=True)
    assert not finders & launched(engine.LEAST_LEFT, "euclidean", subsets=False)


@pytest.mark.usefixtures("attempts")
def test_a_neighbourhood_expects_the_kernels_of_its_search(monkeypatch: pytest.MonkeyPatch) -> None:
    from tonari.cuda.rehearsal import Card, rehearsing

    monkeypatch.setattr(engine, "LEAST_LEFT", 2)
    expected: list[set[str]] = []
    real = engine.expecting

    def expecting(stage: Any) -> Any:
        with rehearsing(Card((9, 0), 132)) as rehearsal:
            stage()
        expected.append({call.name for call in rehearsal.calls.values()})
        return real(stage)

    monkeypatch.setattr(engine, "expecting", expecting)
    q, p = tensors(DEVICE, tight(8, seed=1, apart=1e6), tight(400, apart=1e6))
    plan = plan_of(q, p, K, devices=(DEVICE,), group=8, width=1, precisions=("float16", "values"))
    plan = dataclasses.replace(plan, subsets=True)
    with dispatch.on(plan.devices[0]):
        search_resident(q, dispatch.prepare(p, plan), plan, progress=False)
    searches = [names for names in expected if "pack_kernel" in names and "dense_kernel" not in names]
    assert searches
    assert all({"screen_kernel", "refine_kernel", "certify_kernel"} <= names for names in searches)


@pytest.mark.parametrize(("least", "before"), [(1, True), (1 << 40, False)])
def test_long_searches_look_nearby_before_they_retry(least: int, before: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what is left is screened again."""
    monkeypatch.setattr(engine, "OF_SCREEN", least)
    queries, points = tight(8, seed=1, apart=1e6), tight(400, apart=1e6)
    queries[7] = 0
    q, p = tensors(DEVICE, queries, points)
    plan = plan_of(q, p, K, devices=(DEVICE,), group=8, width=1, precisions=("float16", "values"))
    steps: list[str] = []
    levels, among = engine.Search.levels, engine.Retries.among

    def of_levels(self: Any) -> Any:
        steps.append("levels")
        return levels(self)

    def of_among(self: Any, *given: Any) -> None:
        steps.append("near")
        among(self, *given)

    monkeypatch.setattr(engine.Search, "levels", of_levels)
    monkeypatch.setattr(engine.Retries, "among", of_among)
    with dispatch.on(plan.devices[0]):
        plan = dataclasses.replace(plan, subsets=True)
        found, _ = search_resident(q, dispatch.prepare(p, plan), plan, progress=False)
    assert_same_neighbors(on_host(found), brute(queries, points, K), metric="euclidean")
    assert {"levels", "near"} <= set(steps)
    assert (steps[0] == "near") == before
