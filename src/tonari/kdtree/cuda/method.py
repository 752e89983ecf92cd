"""The k-d tree on CUDA as a method that the registry offers."""

from __future__ import annotations

from typing import Any

from tonari.core.method import TreeMethod
from tonari.core.problem import Problem
from tonari.core.process.progress import ProgressLike
from tonari.core.results.radius_neighbors import RadiusNeighbors, Within
from tonari.costs.formulas import MeanVisits
from tonari.exact.cuda.dispatch import side_of
from tonari.exact.cuda.routes.within import counting, finding
from tonari.exact.cuda.rows.part import Place
from tonari.inputs import hand_back
from tonari.kdtree.cuda import dispatch
from tonari.kdtree.cuda.prepared import PreparedTrees, prepare
from tonari.kdtree.cuda.within_dispatch import within
from tonari.kdtree.papers.rounds import Rounds
from tonari.kdtree.plan import TreePlan, held_as, plan_tree, refusal


class TreeOnCuda(TreeMethod):
    """The k-d tree on CUDA; see :class:`tonari.core.method.TreeMethod`."""

    name = "kdtree"
    device = "cuda"

    refuses = staticmethod(refusal)
    prepare = staticmethod(prepare)
    search = staticmethod(dispatch.search)
    search_once = staticmethod(dispatch.search_once)

    def plan(self, problem: Problem, *, prepared_by: TreePlan | None = None, **given: Any) -> TreePlan:
        return plan_tree(problem, prepared_by=prepared_by, **given)

    def kind(self, problem: Problem, searched: int = 0) -> str:
        return held_as(problem.dtype, problem.query_dtype)

    def held_bytes(self, prepared: PreparedTrees, plan: TreePlan) -> int:
        return super().held_bytes(prepared, plan) if plan.point_slab == plan.n else 0

    def find_within(
        self, request: Within, prepared: PreparedTrees, plan: TreePlan, progress: ProgressLike = None
    ) -> RadiusNeighbors:
        place = Place.of(request)
        found = within(request.queries, prepared, plan, request.limits, finding(plan), place, progress)
        return RadiusNeighbors(*(hand_back(part, side_of(request.queries)) for part in found))

    def count_within(
        self, request: Within, prepared: PreparedTrees, plan: TreePlan, progress: ProgressLike = None
    ) -> Any:
        counts = within(request.queries, prepared, plan, request.limits, counting(), Place.of(request), progress)
        return hand_back(counts, side_of(request.queries))

    def visits(self, queries: Any, prepared: PreparedTrees, plan: TreePlan) -> MeanVisits:
        return dispatch.probe(prepared, queries, plan)

    def rounds(self, queries: Any, prepared: PreparedTrees, plan: TreePlan) -> Rounds:
        """Search `queries` with the buffered traversal, and return the counters of its rounds."""
        counted = Rounds()
        dispatch.search(queries, prepared, plan, progress=False, rounds=counted)
        return counted
