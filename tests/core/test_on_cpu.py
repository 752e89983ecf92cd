"""A method on the CPU: in a self-join, queries have the row numbers of their own points."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.core.test_method import POINTS, PROBLEM
from tests.helpers import plans
from tonari.core.on_cpu import OnCpu
from tonari.core.results.neighbors import Neighbors
from tonari.metrics.reference import brute


class Plain(OnCpu):
    """Brute force in NumPy."""

    name = "plain"

    def refuses(self, problem: Any) -> str | None:
        return None

    def plan(self, problem: Any, **given: Any) -> Any:
        return plans.exact(problem.n, problem.m, problem.d, problem.k, threads=1)

    def prepare(self, points: Any, plan: Any, progress: Any = None) -> Any:
        return points

    def nearest(self, queries: Any, prepared: Any, plan: Any, self_ids: Any, progress: Any = None) -> Neighbors:
        return brute(queries, prepared, plan.k, self_ids=self_ids)


def test_the_own_row_is_left_out_in_a_self_join_alone() -> None:
    method, plan = Plain(), Plain().plan(PROBLEM)
    for self_join in (True, False):
        found = method.search(POINTS, POINTS, plan, self_join=self_join)
        assert (found.indices[:, 0] == np.arange(30)).all() != self_join


def test_methods_of_the_cpu_apply_rules_unless_they_say_otherwise() -> None:
    assert Plain.filters
    assert Plain.device == "cpu"
