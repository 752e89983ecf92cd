"""The k-d tree on the CPU as a method that the registry offers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core.method import Quick, TreeMethod
from tonari.core.on_cpu import OnCpu
from tonari.core.problem import Problem
from tonari.core.process.progress import ProgressLike
from tonari.core.results.neighbors import Neighbors
from tonari.core.results.radius_neighbors import Within
from tonari.costs.formulas import MeanVisits
from tonari.exact.cpu.rows.copies import first_copies
from tonari.kdtree import tuning
from tonari.kdtree.cpu.prepared import PreparedTree
from tonari.kdtree.cpu.quick import quick_count_tree, quick_in_tree, quick_within_tree
from tonari.kdtree.cpu.radius import count_in_tree, find_in_tree
from tonari.kdtree.papers.rounds import Rounds
from tonari.kdtree.plan import TreePlan, held_as, plan_tree, refusal


class TreeOnCpu(OnCpu, TreeMethod):
    """The k-d tree on the CPU; see :class:`tonari.core.method.TreeMethod`."""

    name = "kdtree"

    refuses = staticmethod(refusal)
    find_within = staticmethod(find_in_tree)
    count_within = staticmethod(count_in_tree)

    def plan(self, problem: Problem, *, prepared_by: TreePlan | None = None, **given: Any) -> TreePlan:
        return plan_tree(problem, prepared_by=prepared_by, **given)

    def kind(self, problem: Problem, searched: int = 0) -> str:
        return held_as(problem.dtype, problem.query_dtype)

    def prepare(self, points: npt.NDArray[Any], plan: TreePlan, progress: ProgressLike = None) -> PreparedTree:
        return PreparedTree(points, plan, progress)

    def prepare_once(self, points: npt.NDArray[Any], plan: TreePlan, progress: ProgressLike = None) -> PreparedTree:
        row = points.shape[1] * points.itemsize
        memory, unused = plan.packed_bytes + plan.working_bytes, plan.output_bytes  # results do not exist yet
        numbers = first_copies(points, plan, tuning.POINT_SECONDS, memory, copied=row, spare=unused)
        return PreparedTree(points, plan, progress, kept=numbers)

    def search_once(
        self,
        queries: npt.NDArray[Any],
        points: npt.NDArray[Any],
        plan: TreePlan,
        *,
        self_join: bool = False,
        progress: ProgressLike = None,
    ) -> Neighbors:
        prepared = self.prepare_once(points, plan, progress)
        return self.search(queries, prepared, plan, self_join=self_join, progress=progress)

    def nearest(
        self,
        queries: npt.NDArray[Any],
        prepared: PreparedTree,
        plan: TreePlan,
        self_ids: npt.NDArray[np.int64] | None,
        progress: ProgressLike = None,
    ) -> Neighbors:
        return prepared.search(queries, plan, self_ids=self_ids, progress=progress)

    def quick_search(self, queries: Any, points: Any, prepared: PreparedTree | None, plan: TreePlan) -> Quick | None:
        return None if prepared is None else quick_in_tree(queries, prepared, plan)

    def quick_within(self, request: Within, points: Any, prepared: PreparedTree | None, plan: TreePlan) -> Quick | None:
        return None if prepared is None else quick_within_tree(request, prepared, plan)

    def quick_count(self, request: Within, points: Any, prepared: PreparedTree | None, plan: TreePlan) -> Quick | None:
        return None if prepared is None else quick_count_tree(request, prepared, plan)

    def visits(self, queries: npt.NDArray[Any], prepared: PreparedTree, plan: TreePlan) -> MeanVisits:
        return prepared.visits(queries, plan)

    def rounds(self, queries: npt.NDArray[Any], prepared: PreparedTree, plan: TreePlan) -> Rounds:
        """Search `queries` with the buffered traversal, and return the counters of its rounds."""
        counted = Rounds()
        prepared.search(queries, plan, progress=False, rounds=counted)
        return counted
