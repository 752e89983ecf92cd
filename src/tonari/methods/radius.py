"""Which method finds what is within a radius, and its run.

A radius says nothing of how many points it holds, on which the choice between a tree and brute force depends. Where
sizes alone do not settle it, "auto" counts the neighbours of a few queries in a sample of the points, and chooses as
for a search for so many.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.core.neighbors import Neighbors
from tonari.core.problem import Problem
from tonari.core.progress import ProgressLike
from tonari.core.radius_neighbors import RadiusNeighbors, cut_lists
from tonari.methods.auto import by_sizes, choose
from tonari.methods.decision import Decision, by_plan
from tonari.methods.registry import search_method
from tonari.methods.value_range import check_counts, check_range
from tonari.metrics import get_metric

_COUNTED = 32  # queries whose neighbours are counted
_COUNTED_AMONG = 1 << 16  # points
_SEARCHED = 64  # most nearest neighbours for which a search is cheaper than lists of all within the radius


def decide_within(
    problem: Problem, points: Any, queries: Any, limits: npt.NDArray[Any], method: str, progress: ProgressLike = None
) -> Decision:
    """Decide who finds all points within the limits, and prepare the points.

    Parameters
    ----------
    problem : Problem
        With k = 1.
    points, queries : checked rows
    limits : array of shape (m,)
        See :func:`tonari.core.radius_neighbors.limits_for`.
    method : str
    progress : None, bool or callable(done, total)
    """
    prepared = None
    if method == "auto":
        choice = by_sizes(problem, problem.m)
        if not isinstance(choice, Decision):
            k = _mean_count(problem, points, queries, limits)
            nearest = dataclasses.replace(problem, k=k, memory=None)
            choice = choose(nearest, points, queries, as_if=queries, once=False, progress=progress)
        method, prepared = choice.plan.method, choice.prepared
    made = search_method(method, problem.device)
    plan = made.plan(problem)
    return by_plan(made, plan, made.prepare(points, plan, progress) if prepared is None else prepared)


def find_within(
    queries: Any,
    points: Any,
    decision: Decision,
    limits: npt.NDArray[Any],
    *,
    self_join: bool = False,
    progress: ProgressLike = None,
) -> RadiusNeighbors:
    """Find all prepared points within the limits."""
    method, plan, prepared = decision.method, decision.plan, decision.prepared
    found: RadiusNeighbors = method.find_within(queries, prepared, plan, limits, self_join=self_join, progress=progress)
    check_range(found.distances, found.indices, found.indptr, queries, points, plan.metric)
    return found


def count_within(
    queries: Any, points: Any, decision: Decision, limits: npt.NDArray[Any], *, progress: ProgressLike = None
) -> Any:
    """Count all prepared points within the limits; the counts are where the queries are."""
    method, plan, prepared = decision.method, decision.plan, decision.prepared

    def count(rows: npt.NDArray[np.int64], limits: npt.NDArray[Any]) -> Any:
        return method.count_within(_at(queries, rows), prepared, plan, limits, progress=False)

    def find(rows: npt.NDArray[np.int64]) -> RadiusNeighbors:
        found: RadiusNeighbors = method.find_within(
            _at(queries, rows), prepared, plan, limits[rows], self_join=False, progress=False
        )
        return found

    counts = method.count_within(queries, prepared, plan, limits, progress=progress)
    check_counts(counts, limits, queries, points, plan.metric, count, find)
    return counts


def search_within(found: Neighbors, limits: npt.NDArray[Any], metric: str) -> RadiusNeighbors:
    """Return those of the nearest neighbours that are within the limits."""
    return cut_lists(found, limits, descending=get_metric(metric).descending)


def is_searched(most: int | None) -> bool:
    """Whether the nearest so many are found by a search, and then cut at the limits."""
    return most is not None and most <= _SEARCHED


def _mean_count(problem: Problem, points: Any, queries: Any, limits: npt.NDArray[Any]) -> int:
    """Estimate how many points a query finds, at least 1."""
    step, every = -(-problem.m // _COUNTED), -(-problem.n // _COUNTED_AMONG)
    some, among = _every(queries, step), _every(points, every)
    method = search_method("exact", problem.device)
    plan = method.plan(dataclasses.replace(problem, n=len(among), m=len(some), memory=None))
    prepared = method.prepare(among, plan, False)
    counts = method.count_within(some, prepared, plan, np.ascontiguousarray(limits[::step]), progress=False)
    return min(problem.n, max(1, round(float(counts.sum()) / len(some) * every)))


def _at(rows: Any, ids: npt.NDArray[np.int64]) -> Any:
    return rows[ids if isinstance(rows, np.ndarray) else inputs.like("torch", ids).to(rows.device)]


def _every(rows: Any, step: int) -> Any:
    part = rows[::step]
    return np.ascontiguousarray(part) if isinstance(part, np.ndarray) else part.contiguous()
