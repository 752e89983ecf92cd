"""Brute force on the CPU as a registered method."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core.on_cpu import OnCpu, own_rows
from tonari.core.problem import Problem
from tonari.core.process.progress import ProgressLike
from tonari.core.results.neighbors import Neighbors
from tonari.core.results.radius_neighbors import RadiusNeighbors, Within
from tonari.costs.rates import SCREEN_START, SURVIVOR, SURVIVOR_VALUE
from tonari.exact.cpu.direct.listed import count_listed, search_listed
from tonari.exact.cpu.direct.nearest import search_directly, search_unchecked
from tonari.exact.cpu.direct.within import Unpacked, count_directly, find_directly
from tonari.exact.cpu.radius import count_prepared, find_prepared
from tonari.exact.cpu.rows.copies import first_copies
from tonari.exact.cpu.rows.prepared import PreparedPoints
from tonari.exact.cpu.search import search_prepared
from tonari.exact.plan import ExactPlan
from tonari.exact.planning.planner import plan_on_cpu
from tonari.metrics.problem import refuse_metric

_NUMBER = 8  # bytes


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

    def prepare_within(
        self, points: npt.NDArray[Any], plan: ExactPlan, progress: ProgressLike = None
    ) -> PreparedPoints | Unpacked:
        few = plan.direct_within < SCREEN_START + plan.prepare_seconds
        return Unpacked(points) if few else self.prepare(points, plan, progress)

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


def plan_for(plan: ExactPlan, n: int) -> ExactPlan:
    """Return the plan of the same search among fewer points, without a self-join."""
    resident = min(plan.resident_points, n)
    return replace(plan, n=n, resident_points=resident, active_rows=0, sample_stride=0, sample_rank=0)
