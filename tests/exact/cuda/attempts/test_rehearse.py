"""A rehearsal compiles exactly the kernels that the search launches; no separate list of kernels can become
outdated."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.helpers.devices import HAS_TORCH, needs_torch
from tests.helpers.gpu_checks import DEVICE, plan_of, rows_of
from tonari.exact.cuda import tuning
from tonari.inputs import name_of_dtype

pytestmark = needs_torch
if HAS_TORCH:
    import torch

    from tests.helpers.launches import launched
    from tonari.cuda.compiling import ahead
    from tonari.cuda.compiling.rehearsal import Card, rehearsing
    from tonari.exact.cuda import dispatch
    from tonari.exact.cuda.attempts import first
    from tonari.exact.cuda.attempts.rehearse import rehearse_preparation, rehearse_search
    from tonari.exact.cuda.attempts.retries import attempt
    from tonari.exact.cuda.planning import plan_on_cuda
    from tonari.metrics.problem import make_problem

HERE = {"devices": (DEVICE,)}


def card() -> Card:
    return ahead.card_of(DEVICE) if DEVICE != "cpu" else Card((0, 0), 1)


def rehearsed(stage: Callable[[], None]) -> set[tuple[Any, ...]]:
    with rehearsing(card()) as rehearsal:
        stage()
    return set(rehearsal.calls)


def names(variants: set[tuple[Any, ...]]) -> set[str]:
    return {variant[0].__name__ for variant in variants}


@pytest.fixture
def retries(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], None]]:
    """Record the rehearsals of retries in the order of the searches."""
    given: list[Callable[[], None]] = []
    usual = attempt.expecting
    monkeypatch.setattr(attempt, "expecting", lambda stage: (given.append(stage), usual(stage))[1])
    return given


def search_and_rehearse(
    m: int, n: int, d: int, k: int, metric: str, dtype: str, query_dtype: str, **choices: Any
) -> tuple[set[tuple[Any, ...]], set[tuple[Any, ...]]]:
    """Return the variants that a search launches, and those of the first rehearsal."""
    points = rows_of(n, d, dtype, metric)
    queries = points if choices.get("self_join") else rows_of(m, d, query_dtype, metric, 1)
    plan = plan_of(queries, points, k, metric, **HERE, **choices)
    self_join = choices.get("self_join", False)
    at_once = functools.partial(rehearse_search, plan, name_of_dtype(queries), self_join=self_join)
    with launched() as seen:
        dispatch.search_once(queries, points, plan, self_join=self_join)
    assert seen
    return set(seen), rehearsed(at_once)


@pytest.mark.parametrize(
    ("m", "n", "d", "k", "metric", "dtype", "query_dtype", "choices"),
    [
        (1, 1, 1, 1, "euclidean", "float32", "float32", {}),
        (7, 140, 19, 3, "euclidean", "float32", "float32", {}),
        (7, 140, 19, 3, "cosine", "float64", "float32", {}),
        (5, 129, 8, 3, "inner_product", "uint8", "uint8", {}),
        (3, 127, 16, 2, "l1", "float32", "float64", {}),
        (130, 130, 20, 2, "euclidean", "float32", "float32", {"self_join": True}),
        pytest.param(70, 140, 130, 3, "euclidean", "float32", "float32", {}, marks=pytest.mark.full),
        (7, 140, 19, 3, "euclidean", "float32", "float32", {"query_batch": 4}),
        (7, 300, 19, 3, "euclidean", "float32", "float32", {"route": "streamed", "point_slab": 128}),
        (7, 300, 20, 3, "euclidean", "float64", "float32", {"route": "streamed", "point_slab": 128, "query_slab": 3}),
    ],
    ids=lambda given: str(given) if isinstance(given, str | int) else "",
)
def test_a_rehearsal_launches_what_the_search_launches(
    m: int, n: int, d: int, k: int, metric: str, dtype: str, query_dtype: str, choices: dict[str, Any]
) -> None:
    # All groups are refined, so that every row is proved at once.
    searched, at_once = search_and_rehearse(m, n, d, k, metric, dtype, query_dtype, width=64, **choices)
    assert names(searched - at_once) == set()
    # In addition to launches that each device makes only once.
    assert names(at_once - searched) <= {"products_kernel"}, "compiled in vain"


def test_numbers_of_rows_and_neighbours_are_no_variants() -> None:
    """Calls with a few more rows, or one more neighbour, launch compiled variants, although 16 divides some of these
    numbers.
    """

    def variants(n: int, m: int, k: int) -> set[tuple[Any, ...]]:
        problem = make_problem(n, m, 128, k, dtype="float32", metric="euclidean", devices=("cuda:0",))
        plan = plan_on_cuda(problem, free_bytes=60 * 10**9)
        with rehearsing(Card((9, 0), 132)) as rehearsal:
            rehearse_search(plan, "float32", self_join=False)
        return set(rehearsal.calls)

    usual = variants(200_000, 5000, 16)
    assert len(usual) > 10
    for n, m, k in ((199_999, 5000, 16), (200_001, 5000, 16), (200_000, 5008, 16), (200_000, 5001, 16)):
        assert names(variants(n, m, k) - usual) == set(), (n, m, k)
    assert names(variants(200_000, 5000, 17) - usual) == set()


@pytest.mark.parametrize("half", [0.0, 0.5])
@pytest.mark.parametrize("self_join", [False, True])
def test_points_are_looked_at_for_what_is_compiled(
    self_join: bool, half: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Points are checked for bytes before the compilation: nothing more is compiled later for integers of one byte,
    alone or with other numbers.
    """
    stages: list[Callable[[], None]] = []
    usual = dispatch.expecting
    monkeypatch.setattr(dispatch, "expecting", lambda stage, _=None: (stages.append(stage), usual(stage))[1])
    points = np.rint(10 * rows_of(140, 20)).astype(np.float32)
    queries = points if self_join else points[:9] + np.float32(half)
    plan = plan_of(queries, points, 3, **HERE, self_join=self_join, width=64)
    plan = dataclasses.replace(plan, bytes_first=True)
    there = torch.from_numpy(points).to(DEVICE)
    asked = there if self_join else torch.from_numpy(queries).to(DEVICE)
    with launched() as seen:
        dispatch.search_once(asked, there, plan, self_join=self_join)
    at_once = rehearsed(stages[0])
    in_int8 = [variant for variant in seen if torch.int8 in variant]
    assert bool(in_int8) == (self_join or not half)
    assert names(set(seen) - at_once) == set()
    assert names(at_once - set(seen)) <= {"products_kernel"}


def test_few_rows_of_a_long_search_are_searched_again_by_what_is_compiled_at_once() -> None:
    """The number of unproved rows is always filled up to that of the rehearsal."""
    n = 1_000_000
    problem = make_problem(n, n, 128, 10, dtype="float32", metric="euclidean", devices=("cuda:0",), self_join=True)
    plan = plan_on_cuda(problem, free_bytes=60 * 10**9)
    with rehearsing(Card((9, 0), 132)) as rehearsal:
        rehearse_search(plan, "float32", self_join=True)
    for left in (1, 5, 33, 100, 300):
        with rehearsing(Card((9, 0), 132)) as again:
            search = first.DevicePoints(torch.empty((n, 128), device="meta"), "euclidean", plan.precisions[0]).begin(
                torch.empty((n, 128), device="meta"), plan
            )
            rows = search.filled(torch.empty(left, dtype=torch.int64, device="meta"))
            search.levels()[0].begin()(search.queries[: len(rows)], rows)
        assert names(set(again.calls) - set(rehearsal.calls)) == set(), left


@pytest.mark.parametrize("choices", [{}, {"form_dim": 4}, {"route": "streamed", "point_slab": 128}], ids=str)
def test_a_preparation_launches_what_is_rehearsed(choices: dict[str, Any]) -> None:
    """It does not rehearse the search that may follow, whose k is not known yet."""
    points = rows_of(300, 64)
    plan = plan_of(points, points, 1, **HERE, **choices)
    with launched() as seen:
        dispatch.prepare(torch.from_numpy(points).to(DEVICE), plan)
    planned = rehearsed(lambda: rehearse_preparation(plan))
    assert names(set(seen) - planned) == set()
    assert not {"screen_kernel", "refine_kernel"} & names(planned)


def test_a_rehearsal_samples_as_the_search_does() -> None:
    """The sample, which sets thresholds, depends only on the shapes."""
    plan = plan_of(rows_of(600, 4), rows_of(40_000, 4), 2, **HERE, width=2, group=8)
    begun = rehearsed(lambda: rehearse_search(plan, "float32", self_join=False))
    assert {"chosen_kernel", "products_kernel"} <= names(begun)


@pytest.mark.usefixtures("attempts")
def test_retries_are_rehearsed_for_the_rows_that_are_left(retries: list[Callable[[], None]]) -> None:
    """All points are equal, so no precision proves a row, and all rows stay unproved on each level."""
    points = np.ones((300, 19), np.float32)
    queries = rows_of(6, 19)
    plan = plan_of(queries, points, 3, **HERE, width=2)
    with launched() as seen:
        dispatch.search_once(queries, points, plan)
    at_once = rehearsed(lambda: rehearse_search(plan, "float32", self_join=False))
    retried = list(map(rehearsed, retries))
    assert len(retried) == len(plan.precisions)
    assert ["dense_kernel" in names(one) for one in retried] == [False] * (len(retried) - 1) + [True]
    assert names(set(seen) - at_once.union(*retried)) == set()


@pytest.mark.usefixtures("attempts")
def test_a_search_in_int8_of_rows_that_are_left_is_rehearsed(
    retries: list[Callable[[], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "AS_BYTES_PRODUCTS", 0)
    points = np.rint(10 * rows_of(300, 19)).astype(np.float32)
    plan = plan_of(points[:6], points, 3, **HERE, width=1, group=8)
    with launched() as seen:
        dispatch.search_once(points[:6], points, plan)
    at_once = rehearsed(lambda: rehearse_search(plan, "float32", self_join=False))
    in_int8, *others = map(rehearsed, retries)
    assert {"pack_kernel", "screen_kernel"} <= names(in_int8 - at_once)
    assert names(set(seen) - at_once.union(in_int8, *others)) == set()


@pytest.mark.parametrize("form_dim", ["full", pytest.param(4, marks=pytest.mark.full)])
def test_wider_attempts_at_the_first_rows_are_rehearsed_together(
    form_dim: int | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Points are nearer to each other than their bounds, so no width proves a row."""
    given: list[Callable[[], None]] = []
    usual = first.expecting
    monkeypatch.setattr(first, "expecting", lambda stage: (given.append(stage), usual(stage))[1])
    points, queries = rows_of(2000, 19) * np.float32(1e-6) + 1, rows_of(20, 19, seed=1)
    points[0] = 1e3
    plan = plan_of(queries, points, 3, **HERE, width=2, form_dim=form_dim)
    here, there = (torch.from_numpy(rows).to(DEVICE) for rows in (queries, points))
    search = dispatch.prepare(there, plan).begin(here, plan)
    monkeypatch.setattr(type(search), "again_cost", 100.0)
    with launched() as once:
        search.pilot(None)
    with launched() as seen:
        first.Search.fit_width(search, None)
    assert search.unproved == 1
    assert len(given) == 3
    wider = rehearsed(given[0])
    assert names(set(seen) - set(once))
    assert names(set(seen) - set(once) - wider) == set()


@pytest.mark.parametrize("form_dim", [4, pytest.param(None, marks=pytest.mark.full)])
@pytest.mark.usefixtures("attempts")
def test_contracted_rows_are_rehearsed(form_dim: int | None, retries: list[Callable[[], None]]) -> None:
    points, queries = rows_of(300, 64), rows_of(5, 64, seed=1)
    plan = plan_of(queries, points, 3, **HERE, form_dim=form_dim or 4)
    prepared = dispatch.prepare(torch.from_numpy(points).to(DEVICE), plan)
    known = prepared if form_dim is None else None
    with launched() as seen:
        dispatch.search(queries, prepared, plan)
    planned = rehearsed(lambda: rehearse_search(plan, "float32", self_join=False, prepared=known))
    assert "contracted_limits_kernel" in names(set(seen))
    assert names(set(seen)) <= names(planned.union(*map(rehearsed, retries)))


def test_a_rehearsal_takes_no_memory_and_touches_no_data() -> None:
    plan = plan_of(rows_of(1, 8), rows_of(1, 8), 1, **HERE)
    huge = {"n": 2**30, "m": 2**20, "query_slab": 2**20, "point_slab": 2**30, "query_batch": 2**14}
    planned = dataclasses.replace(plan, **huge)
    assert "screen_kernel" in names(rehearsed(lambda: rehearse_search(planned, "float32", self_join=False)))


def test_rows_without_data_are_refused_outside_of_a_rehearsal() -> None:
    from tonari.exact.cuda.rows.form import make_form

    with pytest.raises(RuntimeError, match="have no data to search"):
        make_form(torch.empty((10, 4), device="meta"), "euclidean")
