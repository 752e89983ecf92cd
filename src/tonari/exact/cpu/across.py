"""Find, for every point, the nearest points on the other side of a boundary; the product of a pair is computed once.

The boundary is a row number: the rows before it are one side, all others the other side.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core.errors import BudgetExceeded, Unsupported
from tonari.core.problem import Problem
from tonari.core.process.isa import chosen_isa
from tonari.core.process.progress import Progress, ProgressLike
from tonari.core.process.workers import Workers
from tonari.core.results.neighbors import Neighbors
from tonari.core.rows.slices import cut
from tonari.exact import tuning
from tonari.exact.cpu.passes import Search
from tonari.exact.cpu.rows.prepared import PreparedPoints
from tonari.exact.cpu.search import search_prepared
from tonari.exact.memory import JOIN_BLOCK
from tonari.exact.plan import ExactPlan
from tonari.exact.planning.blocks import can_join
from tonari.exact.planning.planner import plan_on_cpu
from tonari.exact.report import Report
from tonari.metrics import get_metric
from tonari.metrics.problem import make_problem


def plan_across(problem: Problem) -> ExactPlan:
    """Plan a search that finds, for each point, the nearest points on the other side of a boundary (a row number).

    Raises
    ------
    Unsupported
        A product of two rows cannot be used for both rows, or this would be slower.
    BudgetExceeded
        Memory is too short for all rows at once.
    """
    if not can_join(problem.metric, problem.d, chosen_isa()):
        raise Unsupported(f"metric={problem.metric!r}, d={problem.d}: products are not shared between two rows")
    whole = -(-problem.n // JOIN_BLOCK) * JOIN_BLOCK
    plan = plan_on_cpu(problem, active_rows=whole, sample_stride=0, sample_rank=0)
    if plan.resident_points < problem.n:
        raise BudgetExceeded(f"memory={problem.memory}: too little for {problem.n} rows that share products")
    return plan


def search_across(
    points: npt.NDArray[Any],
    boundary: int,
    plan: ExactPlan,
    *,
    known: npt.NDArray[np.float64] | None = None,
    progress: ProgressLike = None,
) -> Neighbors:
    """Find, for every point, the nearest points on the other side of a boundary (a row number).

    Parameters
    ----------
    points : array of shape (n, d), checked
    boundary : int
        The rows before this number are one side, all others the other side.
    plan : ExactPlan
        A plan from :func:`plan_across`.
    known : float64 array of shape (n,), optional
        The returned value of each row's k-th known neighbour; not finite if fewer are known. Without `known`, each side
        needs at least k rows.

    Returns
    -------
    Neighbors of shape (n, k)
        The same bits as separate searches of the two sides. With `known`, lists contain only neighbours that are at
        least as near as the known k-th one, and missing entries are -1.
    """
    n = len(points)
    found = _lists(n, plan)
    prepared = PreparedPoints(points, plan, progress, boundary=boundary)
    with Progress(progress, total=2 * boundary * (n - boundary), seconds=plan.seconds / 2, label="neighbours") as bar:
        search = Search(prepared, plan, Workers(plan.threads), bar, Report(rows=n))
        status = search.across(found, level=_level(search, points), boundary=boundary, known=known)
    del search, prepared  # free the search and its points before rows are retried
    for side, other in ((slice(0, boundary), slice(boundary, n)), (slice(boundary, n), slice(0, boundary))):
        left = np.flatnonzero(status[side]) + side.start
        for part in cut(len(left), max(JOIN_BLOCK, n // tuning.ACROSS_PARTS)):
            _search_again(left[part], points, other, plan, found, progress)
    return found


def _lists(rows: int, plan: ExactPlan) -> Neighbors:
    return Neighbors.empty(rows, plan.k, plan.n, plan.dtype)


def _level(search: Search, points: npt.NDArray[Any]) -> int:
    """Pack all points at the precision that an adaptive search would choose after its first rows.

    Return the index of this precision in the plan.
    """
    plan, report, n = search.plan, search.report, len(points)
    search.hold(0, n)
    if not plan.adaptive:
        return 0
    pilot = min(n, plan.query_block * plan.threads)
    search.bar.extend(pilot * n)
    search.rows(points[:pilot], np.arange(pilot), _lists(pilot, plan), level=0, sampled=False)
    level = int(plan.prefers_finer(0, report.refined / pilot))
    search.hold(level, n)
    return level


def _search_again(
    rows: npt.NDArray[np.int64],
    points: npt.NDArray[Any],
    other: slice,
    plan: ExactPlan,
    found: Neighbors,
    progress: ProgressLike,
) -> None:
    """Search again, without a self-join, for rows with too many survivors, among the points on the other side."""
    k = min(plan.k, other.stop - other.start)
    sizes = other.stop - other.start, len(rows), plan.d, k
    problem = make_problem(*sizes, dtype=plan.dtype, metric=plan.metric, memory=plan.total_bytes, threads=plan.threads)
    planned = plan_on_cpu(problem)
    prepared = PreparedPoints(points[other], planned, progress)
    lists, _ = search_prepared(points[rows], prepared, planned, progress=progress)
    found.distances[rows, :k], found.indices[rows, :k] = lists.distances, lists.indices + other.start
    found.distances[rows, k:] = -np.inf if get_metric(plan.metric).descending else np.inf
    found.indices[rows, k:] = -1
