"""The choice of the method for a radius search, and its run.

The choice between a tree and brute force depends on the number of points within the radius, which is unknown. If the
sizes do not decide, "auto" counts the neighbours of a few queries in a sample of the points and estimates the mean
number of neighbours. It then chooses the method that it would choose for a search with k set to this mean.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core.neighbors import Neighbors
from tonari.core.problem import Problem
from tonari.core.progress import ProgressLike
from tonari.core.radius_neighbors import RadiusNeighbors, cut_lists
from tonari.core.trail import part
from tonari.methods import tuning
from tonari.methods.answer import keep_decision, kept_decision
from tonari.methods.auto import by_sizes, choose, rows_apart
from tonari.methods.decision import Decision, by_plan
from tonari.methods.registry import search_method
from tonari.metrics import Metric


def decide_within(
    problem: Problem, points: Any, queries: Any, limits: npt.NDArray[Any], method: str, progress: ProgressLike = None
) -> Decision:
    """Choose the method that finds all points within the limits, and prepare the points.

    Parameters
    ----------
    problem : Problem
        The problem with k = 1.
    points, queries : checked rows
    limits : array of shape (m,)
        See :func:`tonari.core.radius_neighbors.limits_for`.
    method : str
    progress : None, bool or callable(done, total)
    """
    made = kept_decision(problem, method, "within")
    if made is None:
        made = _chosen(problem, points, queries, limits, method, progress)
        keep_decision(made, problem, method, "within")
    if made.prepared is None:
        made = made._replace(prepared=made.method.prepare_within(points, made.plan, progress))
    return made


def _chosen(
    problem: Problem, points: Any, queries: Any, limits: npt.NDArray[Any], method: str, progress: ProgressLike
) -> Decision:
    """Choose the method, by examining the data if the sizes do not decide."""
    prepared, by_data = None, False
    if method == "auto":
        choice = by_sizes(problem, problem.m)
        if not isinstance(choice, Decision):
            k = _mean_count(problem, points, queries, limits)
            nearest = dataclasses.replace(problem, k=k, memory=None)
            choice, by_data = choose(nearest, points, queries, as_if=queries, once=False, progress=progress), True
        method, prepared = choice.plan.method, choice.prepared
    made = search_method(method, problem.device)
    return by_plan(made, made.plan(problem), prepared)._replace(by_data=by_data)


def search_within(found: Neighbors, limits: npt.NDArray[Any], metric: Metric) -> RadiusNeighbors:
    """Return the nearest neighbours that are within the limits."""
    return cut_lists(found, limits, descending=metric.descending)


def is_searched(most: int | None) -> bool:
    """Whether to search for the `most` nearest points and then drop those beyond the limits."""
    return most is not None and most <= tuning.SEARCHED


def _mean_count(problem: Problem, points: Any, queries: Any, limits: npt.NDArray[Any]) -> int:
    """Estimate the mean number of points that a query finds, at least 1."""
    step, every = -(-problem.m // tuning.COUNTED), -(-problem.n // tuning.COUNTED_AMONG)
    some, among = rows_apart(queries, step), rows_apart(points, every)
    method = search_method("exact", problem.device)
    plan = method.plan(dataclasses.replace(problem, n=len(among), m=len(some), memory=None))
    prepared = method.prepare(among, plan, False)
    with part("counts of a few rows", len(some)):
        counts = method.count_within(some, prepared, plan, np.ascontiguousarray(limits[::step]), progress=False)
    return min(problem.n, max(1, round(float(counts.sum()) / len(some) * every)))
