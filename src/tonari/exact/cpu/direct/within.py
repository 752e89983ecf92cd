"""Radius searches of few pairs, by the exact values of all pairs, without packed points and a screen.

Preparing points takes at least a tenth of a millisecond, in which some ten thousand exact values can be computed.
"""

from __future__ import annotations

import time
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
    """Points without packed copies, for searches that compute all exact values because they have few pairs.

    Parameters
    ----------
    points : checked rows
    """

    held_bytes = 0

    def __init__(self, points: Rows) -> None:
        self.points = points

    def is_compared(self, plan: ExactPlan) -> bool:
        """Whether radius searches use exact values alone; always True, because nothing is packed for a screen."""
        return True

    def release(self) -> None:
        """Do nothing: there is nothing to free."""


def find_directly(request: Within, points: Rows, plan: ExactPlan, progress: ProgressLike = None) -> RadiusNeighbors:
    """Find all points within the limits; see :func:`tonari.exact.cpu.radius.find_prepared`."""
    queries, limits, _, later, allowed = request
    m, n, started = len(queries), len(points), time.perf_counter()
    indptr = np.empty(m + 1, np.int64)
    distances, indices = np.empty(m * n, limits.dtype), np.empty(m * n, index_dtype(n))
    rules = None if allowed is None else allowed.native
    with counting(progress, total=m * n, seconds=plan.seconds, label="neighbours") as bar:
        found = _native.find_directly(
            *(plan.metric, plan.isa, queries, points, limits, request.self_ids, rules, later),
            indptr,
            distances,
            indices,
        )
        bar.add(m * n)
    _record(m, started)
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


def _record(rows: int, started: float) -> None:
    """Record that rows were compared with all points."""
    record = current.get()
    if record is not None:
        record.tried("exact values", rows, rows, time.perf_counter() - started)
