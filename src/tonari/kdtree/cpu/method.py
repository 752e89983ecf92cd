"""The k-d tree on the CPU as a method that the registry offers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.core.method import Quick, TreeMethod
from tonari.core.on_cpu import OnCpu
from tonari.core.problem import Problem
from tonari.core.process.progress import ProgressLike
from tonari.core.results.neighbors import Neighbors, value_dtype
from tonari.core.results.radius_neighbors import RadiusNeighbors, Within
from tonari.costs.formulas import MeanVisits
from tonari.exact.cpu.rows.copies import first_copies
from tonari.kdtree import tuning
from tonari.kdtree.cpu.prepared import PreparedTree
from tonari.kdtree.cpu.radius import count_in_tree, find_in_tree
from tonari.kdtree.papers.rounds import Rounds
from tonari.kdtree.plan import TreePlan, held_as, plan_tree, refusal

Rows: TypeAlias = npt.NDArray[Any]


def quick_in_tree(
    queries: Rows, prepared: PreparedTree, plan: TreePlan
) -> Callable[[Rows, Any], tuple[Neighbors, bool] | None] | None:
    """Return a function that finds the k nearest points of a few queries in one native call; None for many queries."""
    tree, metric, isa, k = prepared.tree, plan.metric, plan.isa, plan.k
    value = np.dtype(value_dtype(queries.dtype, prepared.points.dtype))
    if len(queries) > tuning.QUICK_QUERIES or value.itemsize > tree.rows.itemsize or plan.traversal != "walk":
        return None
    native, shape, index = tree.native, (len(queries), k), tree.ids.dtype

    def quick(queries: Rows, _: Any) -> tuple[Neighbors, bool] | None:
        distances, indices = np.empty(shape, value), np.empty(shape, index)
        plain = _native.search_tree(native, isa, metric, k, queries, distances, indices)
        return None if plain is None else (Neighbors(distances, indices), plain)

    return quick


def quick_within_tree(
    request: Within, prepared: PreparedTree, plan: TreePlan
) -> Callable[[Rows, Any], tuple[RadiusNeighbors, bool] | None] | None:
    """Return a function that answers radius searches like `request` in one native call; None if it has many pairs."""
    limits, tree, metric, isa = _limits(request, prepared), prepared.tree, plan.metric, plan.isa
    lists, pairs = len(request.queries) + 1, len(request.queries) * tree.n
    if limits is None or request.own is not None or pairs > tuning.QUICK_PAIRS:
        return None
    native, value, index = tree.native, request.limits.dtype, tree.ids.dtype

    def quick(queries: Rows, _: Any) -> tuple[RadiusNeighbors, bool] | None:
        indptr, distances, indices = np.empty(lists, np.int64), np.empty(pairs, value), np.empty(pairs, index)
        made = _native.find_in_tree(native, isa, metric, queries, limits, indptr, distances, indices)
        if made is None:
            return None
        found, plain = made
        return RadiusNeighbors(indptr, indices[:found].copy(), distances[:found].copy()), plain

    return quick


def quick_count_tree(
    request: Within, prepared: PreparedTree, plan: TreePlan
) -> Callable[[Rows, Any], npt.NDArray[np.int64] | None] | None:
    """Return a function that counts the points of requests like `request` in one native call; None for many queries."""
    limits, native, metric, isa = _limits(request, prepared), prepared.tree.native, plan.metric, plan.isa
    m, double = len(request.queries), request.limits.dtype == np.float64
    if limits is None or request.own is not None:
        return None

    def quick(queries: Rows, _: Any) -> npt.NDArray[np.int64] | None:
        counts = np.empty(m, np.int64)
        return counts if _native.count_in_tree(native, isa, metric, queries, limits, double, counts) else None

    return quick


def _limits(request: Within, prepared: PreparedTree) -> npt.NDArray[np.float64] | None:
    """Return the limits of a few queries; None for many queries, or if a tree of float32 must answer in float64."""
    few = len(request.queries) <= tuning.QUICK_QUERIES
    double = request.limits.dtype == np.float64 and prepared.tree.rows.dtype != np.float64
    return np.ascontiguousarray(request.limits, np.float64) if few and not double else None


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
