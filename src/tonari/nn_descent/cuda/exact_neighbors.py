"""Exact search for a sample of queries; all tensors are on one device."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any

import torch

from tonari import inputs
from tonari.core.errors import BudgetExceeded
from tonari.core.problem import Problem
from tonari.core.results.neighbors import Neighbors
from tonari.exact.cuda import dispatch as run
from tonari.exact.cuda.plan import CudaPlan
from tonari.exact.cuda.planning import plan_on_cuda
from tonari.exact.cuda.refine.groups import refine_all
from tonari.exact.cuda.rows.groups import GROUP_SIZES, POINT_TILE
from tonari.metrics.names import is_own
from tonari.metrics.problem import make_problem
from tonari.nn_descent import tuning


def nearest(queries: Any, points: Any, k: int, metric: str, memory: int) -> Neighbors:
    """Find the k nearest points of every query, nearest first, within `memory` bytes.

    Return tensors of shape (m, k).
    """
    n, d = points.shape
    if is_own(metric):  # a screen needs a bound on the metric, which is unknown for a user-defined function
        double = torch.float64 in (queries.dtype, points.dtype)
        return Neighbors(*refine_all(queries, points, k, metric=metric, double=double, scratch_bytes=memory))
    problem = make_problem(
        n,
        len(queries),
        d,
        k,
        dtype=inputs.name_of_dtype(points),
        query_dtype=inputs.name_of_dtype(queries),
        metric=metric,
        devices=(str(points.device),),
        host_points=False,
        host_queries=False,
        memory=memory,
    )
    return run.search_once(queries, points, plan_nearest(problem), progress=False)


def plan_nearest(problem: Problem, *, free_bytes: int | None = None) -> CudaPlan:
    """Plan an exact search of a few thousand queries within a budget, with all rows on the device.

    Most of the memory is for the screen's minima, one for each query and group of points. If slabs of points are packed
    one after another, more memory remains for larger batches of queries. The plan with the fewest pairs of a batch and
    a slab is the fastest. Its batches have equal lengths, because a short last batch would need its own compiled
    kernels.

    Parameters
    ----------
    free_bytes : int, optional
        See :func:`tonari.exact.cuda.planning.plan_on_cuda`.
    """
    n, m = problem.n, problem.m

    def plan(**slabs: Any) -> CudaPlan:
        return plan_on_cuda(problem, free_bytes=free_bytes, group=GROUP_SIZES[-1], **slabs)

    def visits(plan: CudaPlan) -> int:
        return -(-n // plan.point_slab) * -(-m // plan.query_batch)

    plans = [plan()]
    slab = n
    while plans[-1].query_batch < m and slab > tuning.LEAST_SLAB:
        slab = -(-slab // (2 * POINT_TILE)) * POINT_TILE
        # with several slabs, their lists have to be merged, which takes memory
        with contextlib.suppress(BudgetExceeded):
            plans.append(plan(route="streamed", point_slab=slab, query_slab=m))
    best = min(plans, key=visits)
    return dataclasses.replace(best, query_batch=-(-m // -(-m // best.query_batch)))
