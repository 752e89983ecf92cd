"""Radius searches of few pairs, which compute the exact values of all pairs, without packed points or a screen.

Packing points takes at least a tenth of a millisecond, in which some ten thousand exact values can be computed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.core.process.progress import ProgressLike, counting
from tonari.core.results.neighbors import index_dtype
from tonari.core.results.radius_neighbors import RadiusNeighbors, Within
from tonari.core.trail import current
from tonari.exact.plan import ExactPlan

Rows = npt.NDArray[Any]


class Unpacked:
    """Points without packed copies, for radius searches of few pairs, which compute all exact values.

    Parameters
    ----------
    points : checked rows
    """

    held_bytes = 0

    def __init__(self, points: Rows) -> None:
        self.points = points

    def is_compared(self, plan: ExactPlan) -> bool:
        """Whether radius searches compute only exact values; always True, because no points are packed for a screen."""
        return True

    def release(self) -> None:
        """Do nothing: there is nothing to free."""


def find_directly(request: Within, points: Rows, plan: ExactPlan, progress: ProgressLike = None) -> RadiusNeighbors:
    """Find all points within the limit of each query; see :func:`tonari.exact.cpu.radius.find_prepared`."""
    queries, limits, _, later, allowed = request
    m, n, started = len(queries), len(points), time.perf_counter()
    indptr = np.empty(m + 1, np.int64)
    distances, indices = np.empty(m * n, limits.dtype), np.empty(m * n, index_dtype(n))
    rules = None if allowed is None else allowed.native
    with counting(progress, total=m * n, seconds=plan.seconds, label="neighbours") as bar:
        made = _native.find_directly(
            *(plan.metric, plan.isa, queries, points, limits, request.self_ids, rules, later),
            indptr,
            distances,
            indices,
        )
        bar.add(m * n)
    _record(m, started)
    assert made is not None  # None would report a refused value, but the rows have been checked
    found = made[0]
    return RadiusNeighbors(indptr, indices[:found].copy(), distances[:found].copy())


def count_directly(
    request: Within, points: Rows, plan: ExactPlan, progress: ProgressLike = None
) -> npt.NDArray[np.int64]:
    """Count, for each query, the points that :func:`find_directly` finds."""
    queries, limits, _, _, allowed = request
    m, n, started = len(queries), len(points), time.perf_counter()
    counts, rules = np.empty(m, np.int64), None if allowed is None else allowed.native
    with counting(progress, total=m * n, seconds=plan.seconds, label="neighbours") as bar:
        _native.count_directly(plan.metric, plan.isa, queries, points, limits, request.self_ids, rules, counts)
        bar.add(m * n)
    _record(m, started)
    return counts


def quick_within(
    request: Within, points: Rows, plan: ExactPlan, unchecked: int
) -> Callable[[Rows, Rows], tuple[RadiusNeighbors, bool] | None]:
    """Return a function that finds the points within a radius in one native call.

    `unchecked` is as for :func:`tonari.exact.cpu.direct.nearest.quick_search`."""
    (queries, limits, _, later, _), own, metric, isa = request, request.self_ids, plan.metric, plan.isa
    lists, pairs, find = len(queries) + 1, len(queries) * len(points), _native.find_directly
    value, index = limits.dtype, index_dtype(len(points))

    def quick(queries: Rows, points: Rows) -> tuple[RadiusNeighbors, bool] | None:
        indptr, distances, indices = np.empty(lists, np.int64), np.empty(pairs, value), np.empty(pairs, index)
        made = find(metric, isa, queries, points, limits, own, None, later, indptr, distances, indices, unchecked)
        if made is None:
            return None
        found, plain = made
        return RadiusNeighbors(indptr, indices[:found].copy(), distances[:found].copy()), plain

    return quick


def quick_count(
    request: Within, points: Rows, plan: ExactPlan, unchecked: int
) -> Callable[[Rows, Rows], npt.NDArray[np.int64] | None]:
    """Return a function that counts the points within a radius in one native call; see :func:`quick_within`."""
    m, limits, own, metric, isa = len(request.queries), request.limits, request.self_ids, plan.metric, plan.isa

    def quick(queries: Rows, points: Rows) -> npt.NDArray[np.int64] | None:
        counts = np.empty(m, np.int64)
        known = _native.count_directly(metric, isa, queries, points, limits, own, None, counts, unchecked)
        return counts if known else None

    return quick


def _record(rows: int, started: float) -> None:
    """Record that a search has resolved all its rows by computing exact values."""
    record = current.get()
    if record is not None:
        record.tried("exact values", rows, rows, time.perf_counter() - started)
