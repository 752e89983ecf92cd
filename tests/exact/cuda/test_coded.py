"""Points that do not fit on a device are streamed once, and from the second search on their codes are kept there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers.checks import assert_same_neighbors, gaussian
from tests.helpers.devices import HAS_TORCH, needs_torch
from tonari.core.errors import BudgetExceeded
from tonari.core.trail import recording
from tonari.metrics.problem import make_problem
from tonari.metrics.reference import brute

pytestmark = needs_torch
if HAS_TORCH:
    from tonari.cuda import memory
    from tonari.exact.cuda import coded, method

FACTS: dict[str, Any] = {"devices": ("cuda:0",), "dtype": "uint8", "query_dtype": "uint8", "metric": "euclidean"}


def problem_of(n: int, m: int = 2048, d: int = 128, **choices: Any) -> Any:
    return make_problem(n, m, d, 10, **FACTS | choices)


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a device of 78 GB."""
    monkeypatch.setattr(memory, "free_memory", lambda devices: 78 * 10**9)


@pytest.mark.usefixtures("card")
@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        ({"n": 700 * 10**6}, True),
        ({"n": 700 * 10**6, "metric": "cosine"}, True),
        ({"n": 10**7}, False),  # fits
        ({"n": 10**4}, False),
        ({"n": 700 * 10**6, "metric": "inner_product"}, False),
        ({"n": 700 * 10**6, "metric": "l1"}, False),
        ({"n": 1500 * 10**6}, False),  # codes do not fit either
        ({"n": 2000 * 10**6, "d": 64}, False),  # codes are not smaller
        ({"n": 700 * 10**6, "devices": ("cuda:0", "cuda:1")}, True),
        ({"n": 1500 * 10**6, "devices": ("cuda:0", "cuda:1")}, True),  # a half of their codes on each
    ],
    ids=str,
)
def test_the_second_search_is_by_codes_if_points_do_not_fit(problem: dict[str, Any], expected: bool) -> None:
    assert coded.is_coded_for(problem_of(**problem), 1) is expected


@pytest.mark.usefixtures("card")
def test_the_first_search_compares_expected_times(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problem_of(700 * 10**6)
    assert coded.is_coded_for(problem, 1)
    streamed, codes = coded._plans(problem)
    assert (streamed.route, codes.route) == ("streamed", "codes")
    assert coded.is_coded_for(problem, 0) == (codes.seconds < streamed.seconds)
    with recording("search", 1) as record:
        plan = coded.coded_plan(problem)
    assert plan.route == "codes"
    (choice,) = record.choices
    assert choice.what == "codes"
    assert f"{streamed.seconds:.3g} s by streaming" in choice.why
    monkeypatch.setattr(memory, "free_memory", lambda devices: 10 * 10**9)  # codes are already on the device
    assert coded.is_coded_for(problem_of(700 * 10**6, m=10**5), 1)


@pytest.mark.usefixtures("card")
def test_equal_searches_are_planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, calls = problem_of(700 * 10**6), []
    made = coded.plan_on_cuda(problem_of(700 * 10**6, m=1), route="codes")
    plan = coded.plan_on_cuda
    monkeypatch.setattr(coded, "plan_on_cuda", lambda *given, **named: (calls.append(1), plan(*given, **named))[1])
    first, second = (coded.plan_again(problem, made, {"route": "codes"}) for _ in range(2))
    assert first is second
    assert len(calls) == 1
    assert (first.route, first.form_dim, first.m) == ("codes", 61, 2048)


@pytest.mark.usefixtures("cpu_for_cuda")
@pytest.mark.parametrize("room", [True, False])
def test_an_index_makes_codes_at_its_second_search(room: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    points, queries = gaussian(60, 12), gaussian(2, 12, 1)
    monkeypatch.setattr(method, "is_coded_for", lambda problem, searched: searched > 0)

    def planned(problem: Any) -> Any:
        if not room:
            raise BudgetExceeded("no room", least=1)
        return coded.plan_on_cuda(problem, route="codes")

    monkeypatch.setattr(method, "coded_plan", planned)
    index = tonari.Index(points, device="cuda", method="exact")
    truth = brute(queries, points, 3)
    with recording("search", 2) as record:
        for _ in range(3):
            assert_same_neighbors(index.search(queries, 3), truth)
    (part,) = index._state.parts
    routes = [made.plan.route for made in part.segment.ready.values()]
    assert routes == (["resident", "codes"] if room else ["resident", "resident"])
    assert ("points are streamed: no room" in [choice.why for choice in record.choices]) is not room
    assert np.array_equal(index.search(queries, 3).indices, truth.indices)
