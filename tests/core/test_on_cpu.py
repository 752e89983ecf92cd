"""A method on the CPU: each verb asks one of three functions, with the queries' own numbers or with rules."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from tests.core.test_method import POINTS, PROBLEM
from tests.helpers import plans
from tonari.core.allowed import Allowed
from tonari.core.on_cpu import OnCpu
from tonari.core.results.neighbors import Neighbors
from tonari.core.results.radius_neighbors import RadiusNeighbors, Within
from tonari.metrics.radius_reference import brute_within
from tonari.metrics.reference import brute

LIMITS = np.full(30, 1.5, np.float32)


class Plain(OnCpu):
    """Brute force in NumPy, which notes the requests within limits."""

    name = "plain"

    def __init__(self) -> None:
        self.requests: list[Within] = []

    def refuses(self, problem: Any) -> str | None:
        return None

    def plan(self, problem: Any, **given: Any) -> Any:
        return plans.exact(problem.n, problem.m, problem.d, problem.k, threads=1)

    def prepare(self, points: Any, plan: Any, progress: Any = None) -> Any:
        return points

    def nearest(self, queries: Any, prepared: Any, plan: Any, self_ids: Any, progress: Any = None) -> Neighbors:
        return brute(queries, prepared, plan.k, self_ids=self_ids)

    def lists(self, request: Within, prepared: Any, plan: Any, progress: Any = None) -> RadiusNeighbors:
        self.requests.append(request)
        return brute_within(request.queries, prepared, request.limits)

    def counts(self, request: Within, prepared: Any, plan: Any, progress: Any = None) -> Any:
        self.requests.append(request)
        return np.zeros(len(request.queries), np.int64)


def test_the_own_row_is_left_out_in_a_self_join_alone() -> None:
    method, plan = Plain(), Plain().plan(PROBLEM)
    for self_join in (True, False):
        found = method.search(POINTS, POINTS, plan, self_join=self_join)
        assert (found.indices[:, 0] == np.arange(30)).all() != self_join
        method.find_within(POINTS, POINTS, plan, LIMITS, self_join=self_join)
        method.count_within(POINTS, POINTS, plan, LIMITS, self_join=self_join)
        for request in method.requests[-2:]:
            assert (request.self_ids is not None) == self_join
            assert request.allowed is None


def test_pairs_are_of_later_points_from_the_row_on() -> None:
    method = Plain()
    method.find_pairs(slice(5, 9), POINTS, POINTS, None, LIMITS[:4])
    (request,) = method.requests
    assert (request.later, len(request.queries)) == (True, 4)
    assert request.self_ids is not None
    assert request.self_ids.tolist() == [5, 6, 7, 8]


def test_rules_travel_with_the_request() -> None:
    method, allowed = Plain(), Allowed(cast(Any, None))
    method.find_allowed(POINTS, POINTS, None, LIMITS, allowed)
    method.count_allowed(POINTS, POINTS, None, LIMITS, allowed)
    assert [request.allowed is allowed for request in method.requests] == [True, True]
