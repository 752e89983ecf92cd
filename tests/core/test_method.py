"""Default implementations of a method: searches of unprepared points, graphs, pairs, and refusals."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from tests.helpers import plans
from tests.helpers.checks import gaussian
from tonari.core.errors import Unsupported
from tonari.core.method import Preparation, SearchMethod
from tonari.core.problem import Problem
from tonari.core.results.neighbors import Neighbors
from tonari.metrics.reference import brute

POINTS = gaussian(30, 3)


class Plain(SearchMethod):
    """Brute force in NumPy, which records its calls."""

    name, device = "plain", "cpu"

    def __init__(self) -> None:
        self.prepared: list[Any] = []

    def refuses(self, problem: Problem) -> str | None:
        return None

    def plan(self, problem: Problem, **given: Any) -> Any:
        return plans.exact(problem.n, problem.m, problem.d, problem.k, threads=1)

    def prepare(self, points: Any, plan: Any, progress: Any = None) -> Any:
        self.prepared.append(points)
        return points

    def search(
        self, queries: Any, prepared: Any, plan: Any, *, self_join: bool = False, progress: Any = None
    ) -> Neighbors:
        return brute(queries, prepared, plan.k, self_ids=np.arange(len(queries)) if self_join else None)


PROBLEM = plans.problem(30, 30, 3, 4)


def test_a_graph_leaves_out_the_point_itself_and_uses_what_is_prepared() -> None:
    method, truth = Plain(), brute(POINTS, POINTS, 4, self_ids=np.arange(30))
    plan = method.plan(PROBLEM)
    assert method.build_graph(POINTS, plan).found.indices.tolist() == truth.indices.tolist()
    assert len(method.prepared) == 1
    assert method.build_graph(POINTS, plan, prepared=POINTS).found.indices.tolist() == truth.indices.tolist()
    assert len(method.prepared) == 1
    assert method.search_unchecked(POINTS, POINTS, plan) is None


def test_points_are_planned_and_prepared_for_a_kind_that_has_not_come() -> None:
    method = Plain()
    assert method.kind(PROBLEM) == ""
    made = method.prepare_kind(POINTS, PROBLEM, 5, Preparation(None, None))
    assert made.points is POINTS
    assert made.plan == method.plan(PROBLEM)
    assert method.held_bytes(POINTS, made.plan) == made.plan.packed_bytes + made.plan.copied_bytes
    assert method.warm(made.plan, self_join=True) == 0


def test_what_a_method_does_not_do_is_refused_in_its_name() -> None:
    cases: list[Any] = [
        ("find_within", "search within a radius"),
        ("count_within", "count within"),
        ("search_listed", "compares no lists"),
    ]
    for verb, words in cases:
        required = [
            one
            for one in inspect.signature(getattr(SearchMethod, verb)).parameters.values()
            if one.default is one.empty
        ]
        given = [None] * (len(required) - 1)  # not used
        with pytest.raises(Unsupported, match=f"method='plain' on cpu .*{words}"):
            getattr(Plain(), verb)(*given)
