"""Brute force on the CPU as a registered method."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core.method import Quick
from tonari.core.on_cpu import OnCpu, own_rows
from tonari.core.problem import Problem
from tonari.core.process.progress import ProgressLike
from tonari.core.process.workers import worth_sharing
from tonari.core.results.neighbors import Neighbors
from tonari.core.results.radius_neighbors import RadiusNeighbors, Within
from tonari.costs.rates import SCREEN_START, SURVIVOR, SURVIVOR_VALUE
from tonari.exact.cpu.direct.listed import count_listed, search_listed
from tonari.exact.cpu.direct.nearest import quick_search, search_directly, search_unchecked
from tonari.exact.cpu.direct.within import Unpacked, count_directly, find_directly, quick_count, quick_within
from tonari.exact.cpu.radius import count_prepared, find_prepared
from tonari.exact.cpu.rows.copies import first_copies
from tonari.exact.cpu.rows.prepared import PreparedPoints
from tonari.exact.cpu.search import search_prepared
from tonari.exact.plan import ExactPlan
from tonari.exact.planning.planner import plan_on_cpu
from tonari.metrics.problem import refuse_metric

_NUMBER = 8  # bytes of a row number


class ExactOnCpu(OnCpu):
    """See :class:`tonari.core.method.SearchMethod`."""

    name = "exact"

    refuses = staticmethod(refuse_metric)
    search_listed = search_listed
    count_listed = staticmethod(count_listed)

    def plan(self, problem: Problem, *, prepared_by: ExactPlan | None = None, **given: Any) -> ExactPlan:
        return plan_on_cpu(problem, prepared=prepared_by is not None, **given)

    def prepare(self, points: npt.NDArray[Any], plan: ExactPlan, progress: ProgressLike = None) -> PreparedPoints:
        return PreparedPoints(points, plan, progress, asked=len(points))

    def held_bytes(self, prepared: PreparedPoints, plan: ExactPlan) -> int:
        return prepared.held_bytes

    def release(self, prepared: PreparedPoints) -> None:
        prepared.release()

    def search_once(
        self,
        queries: npt.NDArray[Any],
        points: npt.NDArray[Any],
        plan: ExactPlan,
        *,
        self_join: bool = False,
        progress: ProgressLike = None,
    ) -> Neighbors:
        own = own_rows(queries, self_join)
        if plan.direct:
            return search_directly(queries, points, plan, self_ids=own, progress=progress)
        memory, meeting = plan.packed_bytes + plan.working_bytes, SURVIVOR + SURVIVOR_VALUE * plan.d
        numbers = first_copies(points, plan, meeting, memory, copied=_NUMBER)
        if numbers is not None:
            plan = plan_for(plan, len(numbers))
        return self.nearest(queries, PreparedPoints(points, plan, progress, kept=numbers), plan, own, progress)

    def nearest(
        self,
        queries: npt.NDArray[Any],
        prepared: PreparedPoints,
        plan: ExactPlan,
        self_ids: npt.NDArray[np.int64] | None,
        progress: ProgressLike = None,
    ) -> Neighbors:
        if plan.direct:
            return search_directly(queries, prepared.points, plan, self_ids=self_ids, progress=progress)
        return search_prepared(queries, prepared, plan, self_ids=self_ids, progress=progress)[0]

    def search_unchecked(
        self,
        queries: npt.NDArray[Any],
        points: npt.NDArray[Any],
        plan: ExactPlan,
        *,
        progress: ProgressLike = None,
    ) -> Neighbors | None:
        return search_unchecked(queries, points, plan, progress=progress) if plan.direct else None

    def quick_search(self, queries: Any, points: Any, prepared: Any, plan: ExactPlan) -> Quick | None:
        return quick_search(queries, points, plan, _unchecked(prepared)) if plan.direct else None

    def quick_within(self, request: Within, points: Any, prepared: Any, plan: ExactPlan) -> Quick | None:
        compared = self._is_compared(prepared, plan) and not worth_sharing(plan.direct_within)
        return quick_within(request, points, plan, _unchecked(prepared)) if compared else None

    def quick_count(self, request: Within, points: Any, prepared: Any, plan: ExactPlan) -> Quick | None:
        compared = self._is_compared(prepared, plan) and not worth_sharing(plan.direct_within)
        return quick_count(request, points, plan, _unchecked(prepared)) if compared else None

    def _is_compared(self, prepared: Any, plan: ExactPlan) -> bool:
        """Whether a radius search has so few pairs that it computes the exact values of all, without a screen."""
        if prepared is not None:
            return bool(prepared.is_compared(plan))
        return plan.direct_within < SCREEN_START + plan.prepare_seconds

    def prepare_within(
        self, points: npt.NDArray[Any], plan: ExactPlan, progress: ProgressLike = None
    ) -> PreparedPoints | Unpacked:
        return Unpacked(points) if self._is_compared(None, plan) else self.prepare(points, plan, progress)

    def find_within(
        self, request: Within, prepared: PreparedPoints, plan: ExactPlan, progress: ProgressLike = None
    ) -> RadiusNeighbors:
        if prepared.is_compared(plan):
            return find_directly(request, prepared.points, plan, progress)
        return find_prepared(request, prepared, plan, progress)

    def count_within(
        self, request: Within, prepared: PreparedPoints, plan: ExactPlan, progress: ProgressLike = None
    ) -> npt.NDArray[np.int64]:
        if prepared.is_compared(plan):
            return count_directly(request, prepared.points, plan, progress)
        return count_prepared(request, prepared, plan, progress)


def _unchecked(prepared: Any) -> int:
    """Return the number of arrays that a quick search must check: 1 for the queries, 2 for queries and points."""
    return 2 if prepared is None else 1


def plan_for(plan: ExactPlan, n: int) -> ExactPlan:
    """Return the plan for a search among only n of the points of `plan`; the search is not a self-join."""
    resident = min(plan.resident_points, n)
    return replace(plan, n=n, resident_points=resident, active_rows=0, sample_stride=0, sample_rank=0)
