"""The choice of the method for a radius search.

The choice between a tree and brute force depends on the number of points within the radius, which is unknown. If the
sizes do not decide, "auto" counts the neighbours of a few queries in a sample of the points, and estimates the mean
number of neighbours from them. It then chooses as for a search with k set to this mean. On CUDA, the choice is cached
for the next search of the same tensors with the same radius, unless the tensors have been written to in the meantime.
"""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Hashable
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core.problem import Problem
from tonari.core.process.caches import emptied_by
from tonari.core.process.progress import ProgressLike
from tonari.core.results.neighbors import Neighbors
from tonari.core.results.radius_neighbors import RadiusNeighbors, Within, cut_lists
from tonari.core.trail import part
from tonari.inputs.arrays.kinds import kind_of
from tonari.methods import tuning
from tonari.methods.answer import keep_decision, kept_decision
from tonari.methods.auto import by_sizes, choose, rows_apart
from tonari.methods.decision import Decision, by_plan
from tonari.methods.registry import search_method
from tonari.metrics import Metric

# Cached choices that depended on the data. A key has the sizes and addresses of a search. A value has the name of the
# chosen method, and references to the memory of the rows, because the choice is valid only for these rows.
_looks: dict[Hashable, tuple[tuple[weakref.ref[Any], ...], str]] = {}
emptied_by(_looks.clear)


def decide_within(
    problem: Problem, points: Any, queries: Any, limits: npt.NDArray[Any], method: str, progress: ProgressLike = None
) -> Decision:
    """Choose the method that finds all points within the radius of each query, and prepare the points.

    Parameters
    ----------
    problem : Problem
        A problem with k = 1, for the sizes, dtypes and devices.
    points, queries : checked rows
    limits : array of shape (m,)
        See :func:`tonari.core.results.radius_neighbors.limits_for`.
    method : str
    progress : None, bool or callable(done, total)
    """
    decision = kept_decision(problem, method, "within")
    if decision is None:
        decision = _chosen(problem, points, queries, limits, method, progress)
        keep_decision(decision, problem, method, "within")
    if decision.prepared is None:
        decision = decision._replace(prepared=decision.method.prepare_within(points, decision.plan, progress))
    return decision


def _chosen(
    problem: Problem, points: Any, queries: Any, limits: npt.NDArray[Any], method: str, progress: ProgressLike
) -> Decision:
    """Return the decision for a radius search, made by examining the data if the sizes do not decide."""
    prepared, by_data = None, False
    if method == "auto":
        choice = by_sizes(problem, problem.m)
        by_data = not isinstance(choice, Decision)
        if isinstance(choice, Decision):
            method, prepared = choice.plan.method, choice.prepared
        else:
            method, prepared = _by_look(problem, points, queries, limits, progress)
    by = search_method(method, problem.device)
    return by_plan(by, by.plan(problem), prepared)._replace(by_data=by_data)


def _by_look(
    problem: Problem, points: Any, queries: Any, limits: npt.NDArray[Any], progress: ProgressLike
) -> tuple[str, Any]:
    """Choose the method by examining the data, or repeat a cached choice.

    Return its name and, if the examination has prepared the points for this method, the prepared points.
    """
    key, memory = _memory_of(problem, points, queries, limits)
    if key in _looks:
        before, method = _looks[key]
        if all(ref() is part for ref, part in zip(before, memory, strict=True)):
            return method, None
    k = _mean_count(problem, points, queries, limits)
    nearest = dataclasses.replace(problem, k=k, memory=None)
    choice = choose(nearest, points, queries, as_if=queries, once=False, progress=progress)
    if key is not None:
        if len(_looks) >= tuning.KEPT_LOOKS:
            _looks.clear()
        _looks[key] = tuple(map(weakref.ref, memory)), choice.plan.method
    return choice.plan.method, choice.prepared


def _memory_of(
    problem: Problem, points: Any, queries: Any, limits: npt.NDArray[Any]
) -> tuple[Hashable | None, tuple[Any, ...]]:
    """Return the key under which the choice for a search is cached, and the memory of its rows.

    The key is None unless the rows are tensors on CUDA and all queries have the same limit. It includes torch's count
    of the writes to each tensor. If a write is not counted, the cached choice may be slow, but the answer is correct.
    """
    if limits.strides != (0,) or not all(kind_of(x) == "torch" and not x.is_inference() for x in (points, queries)):
        return None, ()
    versions = [(x.data_ptr(), x.stride(), x._version) for x in (points, queries)]
    return (problem, *versions, float(limits[0])), tuple(x.untyped_storage() for x in (points, queries))


def search_within(found: Neighbors, limits: npt.NDArray[Any], metric: Metric) -> RadiusNeighbors:
    """Return the entries of `found`, the result of a search for the nearest points, that are within the limits."""
    return cut_lists(found, limits, descending=metric.descending)


def is_searched(most: int | None) -> bool:
    """Return whether to search for the `most` nearest points and drop those beyond the limits.

    The alternative is to list all points within the limits.
    """
    return most is not None and most <= tuning.SEARCHED


def _mean_count(problem: Problem, points: Any, queries: Any, limits: npt.NDArray[Any]) -> int:
    """Estimate the mean number of points within the radius of a query, at least 1, from counts in a sample."""
    step, every = -(-problem.m // tuning.COUNTED), -(-problem.n // tuning.COUNTED_AMONG)
    some, among = rows_apart(queries, step), rows_apart(points, every)
    method = search_method("exact", problem.device)
    plan = method.plan(dataclasses.replace(problem, n=len(among), m=len(some), memory=None))
    with part("counts of a few rows", len(some)):
        counts = method.count_once(Within(some, np.ascontiguousarray(limits[::step])), among, plan)
    return min(problem.n, max(1, round(float(counts.sum()) / len(some) * every)))
