"""Brute force on CUDA as a registered method: run the plan's route or, for small searches, replay a CUDA graph."""

from __future__ import annotations

import dataclasses
from typing import Any

from tonari.core.errors import BudgetExceeded
from tonari.core.method import Preparation, SearchMethod
from tonari.core.problem import Problem
from tonari.core.process.progress import ProgressLike
from tonari.core.results.neighbors import Neighbors
from tonari.core.results.radius_neighbors import Within
from tonari.core.trail import decided
from tonari.exact.cuda import dispatch
from tonari.exact.cuda.coded import coded_plan, is_coded_for, plan_again
from tonari.exact.cuda.plan import CudaPlan
from tonari.exact.cuda.planning import is_contracted_for, plan_on_cuda
from tonari.exact.cuda.refine.listed import search_listed
from tonari.exact.cuda.replay.capture import capture_if_due
from tonari.metrics.problem import refuse_metric


class ExactOnCuda(SearchMethod):
    """See :class:`tonari.core.method.SearchMethod`."""

    name = "exact"
    device = "cuda"

    refuses = staticmethod(refuse_metric)
    warm = staticmethod(dispatch.warm)
    prepare = staticmethod(dispatch.prepare)
    find_within = staticmethod(dispatch.find_within)
    count_within = staticmethod(dispatch.count_within)
    search_listed = staticmethod(search_listed)

    def plan(self, problem: Problem, *, prepared_by: CudaPlan | None = None, **given: Any) -> CudaPlan:
        if prepared_by is not None and prepared_by.route == "codes" and "free_bytes" not in given:
            return plan_again(problem, prepared_by, given)
        return plan_on_cuda(problem, prepared_by=prepared_by, **given)

    def kind(self, problem: Problem, searched: int = 0) -> str:
        if is_coded_for(problem, searched):
            return "coded"
        return "contracted" if is_contracted_for(problem, searched) else ""

    def prepare_kind(
        self, points: Any, problem: Problem, searched: int, before: Preparation | None, progress: ProgressLike = None
    ) -> Preparation:
        if before is not None and is_coded_for(problem, searched):
            return self._prepare_coded(points, problem, before, progress)
        if before is None or not is_contracted_for(problem, searched):
            return super().prepare_kind(points, problem, searched, before, progress)
        plan = plan_on_cuda(dataclasses.replace(problem, m=problem.m + searched))
        contracted = dispatch.contract_beside(before.points, plan, progress)
        if contracted is None:
            return before
        return Preparation(dataclasses.replace(plan, copied_bytes=0), contracted)  # `before` counts the original rows

    def _prepare_coded(self, points: Any, problem: Problem, before: Preparation, progress: ProgressLike) -> Preparation:
        """Return the codes of the points, or the earlier preparation if the device has no room left for them."""
        try:
            plan = coded_plan(problem)
        except BudgetExceeded as error:
            decided("codes", f"points are streamed: {error}")
            return before
        return Preparation(plan, dispatch.prepare(points, plan, progress))

    def held_bytes(self, prepared: Any, plan: CudaPlan) -> int:
        return 0 if plan.route == "streamed" else super().held_bytes(prepared, plan)

    def search(
        self, queries: Any, prepared: Any, plan: CudaPlan, *, self_join: bool = False, progress: ProgressLike = None
    ) -> Neighbors:
        found = capture_if_due(queries, prepared, plan, self_join=self_join, progress=progress)
        if found is not None:
            return found
        return dispatch.search(queries, prepared, plan, self_join=self_join, progress=progress)

    def search_once(
        self, queries: Any, points: Any, plan: CudaPlan, *, self_join: bool = False, progress: ProgressLike = None
    ) -> Neighbors:
        found = None
        if not plan.looks_first:
            found = capture_if_due(queries, points, plan, self_join=self_join, progress=progress)
        if found is not None:
            return found
        return dispatch.search_once(queries, points, plan, self_join=self_join, progress=progress)

    def count_once(self, request: Within, points: Any, plan: CudaPlan) -> Any:
        if not dispatch.compares_all(plan):
            return super().count_once(request, points, plan)
        return dispatch.count_by_values(request, points, plan)
