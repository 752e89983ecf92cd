"""Radius searches of few pairs, by the exact values of all pairs, without packed points and a screen.

Preparing points takes at least a tenth of a millisecond, in which some ten thousand exact values can be computed.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.core.process.caches import cached
from tonari.core.process.progress import ProgressLike, counting
from tonari.core.results.neighbors import index_dtype
from tonari.core.results.radius_neighbors import RadiusNeighbors, Within
from tonari.core.trail import current
from tonari.exact.plan import ExactPlan
from tonari.metrics import get_metric
from tonari.metrics.reference import returned

Rows = npt.NDArray[Any]


class Unpacked:
    """Points without packed copies, for searches of so few pairs that all exact values are computed.

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
    """Find all points within the radius of each query; see :func:`tonari.exact.cpu.radius.find_prepared`."""
    m, n, self_ids = len(request.queries), len(points), request.self_ids
    if request.later and m == n:
        return _find_pairs(points, plan, request.limits, progress)
    values, inside, descending = _compared(request, points, plan, progress)
    if request.later and self_ids is not None:
        inside &= _every_point(1, n) > self_ids[:, None]
    (places,) = inside.ravel().nonzero()
    indptr = places.searchsorted(_first_places(m, n))
    found = values.ravel()[places]
    keys = -found if descending else found
    if m == 1:
        order = keys.argsort(kind="stable")  # equal values by index
    else:
        rows = places // n
        order = np.lexsort((keys, rows))
        places -= rows * n
    return RadiusNeighbors(indptr, places[order].astype(index_dtype(n)), found[order])


def count_directly(
    request: Within, points: Rows, plan: ExactPlan, progress: ProgressLike = None
) -> npt.NDArray[np.int64]:
    """Count, for each query, the points that :func:`find_directly` finds."""
    _, inside, _ = _compared(request, points, plan, progress)
    if len(inside) == 1:
        return np.array([np.count_nonzero(inside)], np.int64)
    counts: npt.NDArray[np.int64] = inside.sum(axis=1, dtype=np.int64)
    return counts


def _find_pairs(points: Rows, plan: ExactPlan, limits: npt.NDArray[Any], progress: ProgressLike) -> RadiusNeighbors:
    """Find, for each point, the later points within its limit; the value of a pair does not depend on its order."""
    n, descending, started = len(points), get_metric(plan.metric).descending, time.perf_counter()
    others, left, right = _each_pair(n)
    with counting(progress, total=n * n, seconds=plan.seconds, label="neighbours") as bar:
        exact = np.empty(others.shape)
        _native.exact_values(plan.metric, points, points, others, exact)
        if n % 2 == 0:
            exact[n // 2 :, -1] = np.nan  # points half the circle apart are paired twice; drop one pair
        values = returned(exact, limits.dtype).ravel()
        bar.add(n * n)
    _record(n, started)
    (places,) = (values >= limits[left] if descending else values <= limits[left]).nonzero()
    found, left, right = values[places], left[places], right[places]
    order = np.lexsort((right, -found if descending else found, left))
    indptr = left[order].searchsorted(np.arange(n + 1))
    return RadiusNeighbors(indptr, right[order].astype(index_dtype(n)), found[order])


def _compared(
    request: Within, points: Rows, plan: ExactPlan, progress: ProgressLike
) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_], bool]:
    """Return all values, a mask of pairs of two points within the limits, and whether values descend."""
    queries, limits, self_ids, _ = request
    m, n, descending, started = len(queries), len(points), get_metric(plan.metric).descending, time.perf_counter()
    with counting(progress, total=m * n, seconds=plan.seconds, label="neighbours") as bar:
        exact = np.empty((m, n))
        _native.exact_values(plan.metric, queries, points, _every_point(m, n), exact)
        values = returned(exact, limits.dtype)
        bar.add(m * n)
    _record(m, started)
    inside = values >= limits[:, None] if descending else values <= limits[:, None]
    if self_ids is not None:
        inside[np.arange(m), self_ids] = False
    return values, inside, descending


def _record(rows: int, started: float) -> None:
    """Record that rows were compared with all points."""
    record = current.get()
    if record is not None:
        record.tried("exact values", rows, rows, time.perf_counter() - started)


@cached(maxsize=8)
def _every_point(m: int, n: int) -> npt.NDArray[np.int64]:
    """Return the numbers of n points for each of m queries."""
    return np.tile(np.arange(n), (m, 1))


@cached(maxsize=8)
def _each_pair(n: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return for each of n points, arranged in a circle, the next half of the circle, and both ends of these pairs."""
    rows = np.arange(n)[:, None]
    others = (rows + np.arange(1, n // 2 + 1)) % n
    return others, np.minimum(rows, others).ravel(), np.maximum(rows, others).ravel()


@cached(maxsize=8)
def _first_places(m: int, n: int) -> npt.NDArray[np.int64]:
    """Return the position of the first pair of each of m queries with n points, and the number of pairs."""
    return np.arange(0, (m + 1) * n, n)
