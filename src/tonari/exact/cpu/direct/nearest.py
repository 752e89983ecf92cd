"""Search by computing the exact values of all pairs, without packed points or a screen; for small searches.

A search of microseconds is one native call on the caller's thread. Longer searches are divided into calls of a few
milliseconds for several threads. A call has some queries and all points, or all queries and a slice of the points; the
lists of several slices are merged.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.core.process.progress import Progress, ProgressLike, Silent, counting
from tonari.core.process.workers import Workers, worth_sharing
from tonari.core.results.neighbors import Neighbors, index_dtype
from tonari.core.rows.slices import cut
from tonari.core.trail import current
from tonari.exact import tuning
from tonari.exact.plan import ExactPlan
from tonari.select.merge import merge_neighbors

logger = logging.getLogger("tonari")


Rows = npt.NDArray[Any]


def search_directly(
    queries: Rows,
    points: Rows,
    plan: ExactPlan,
    *,
    self_ids: npt.NDArray[np.int64] | None = None,
    progress: ProgressLike = None,
) -> Neighbors:
    """Find the k nearest points of every query; the rows have been checked for refused values.

    Returns
    -------
    Neighbors of shape (m, k)
    """
    found = _search(queries, points, plan, self_ids, True, progress)
    assert found is not None  # None would report a refused value, but the rows have been checked
    return found


def search_unchecked(
    queries: Rows, points: Rows, plan: ExactPlan, *, progress: ProgressLike = None
) -> Neighbors | None:
    """Search rows whose values have not been checked; return None if the search meets a value that is not finite."""
    return _search(queries, points, plan, None, False, progress)


def _search(
    queries: Rows,
    points: Rows,
    plan: ExactPlan,
    self_ids: npt.NDArray[np.int64] | None,
    checked: bool,
    progress: ProgressLike,
) -> Neighbors | None:
    started, m, n = time.perf_counter(), len(queries), len(points)
    rows, size = _sizes(m, n, plan, self_ids is None)
    with counting(progress, total=m * n, seconds=plan.seconds, label="neighbours") as bar:
        if rows >= m and size >= n:  # one call is enough, as in most searches of a few microseconds
            found = _call(queries, points, plan, self_ids, checked)
            bar.add(m * n)
        else:
            found = _in_calls(queries, points, plan, self_ids, checked, (rows, size), bar)
    if found is not None:
        seconds, record = time.perf_counter() - started, current.get()
        if record is not None:
            record.tried("exact values", m, m, seconds)
        logger.info("%d rows in %.3g s by exact values alone", m, seconds)
    return found


def quick_search(
    queries: Rows, points: Rows, plan: ExactPlan, unchecked: int
) -> Callable[[Rows, Rows], tuple[Neighbors, bool] | None] | None:
    """Return a function that searches rows of these shapes and dtypes in one call; None if one call is not enough.

    `unchecked` is 1 if the function must check only the values of queries, and 2 if it must check those of points, too.
    """
    m, n, metric, isa, k = len(queries), len(points), plan.metric, plan.isa, plan.k
    if _sizes(m, n, plan, True) != (m, n):
        return None
    like, search = Neighbors.empty(m, k, n, queries.dtype, points.dtype), _native.search_directly
    shape, value, index = (m, k), like.distances.dtype, like.indices.dtype

    def quick(queries: Rows, points: Rows) -> tuple[Neighbors, bool] | None:
        distances, indices = np.empty(shape, value), np.empty(shape, index)
        plain = search(metric, isa, queries, points, k, None, distances, indices, unchecked)
        return None if plain is None else (Neighbors(distances, indices), plain)

    return quick


def _call(
    queries: Rows, points: Rows, plan: ExactPlan, self_ids: npt.NDArray[np.int64] | None, checked: bool
) -> Neighbors | None:
    found, unchecked = _room(queries, points, plan.k), 0 if checked else 2
    plain = _native.search_directly(plan.metric, plan.isa, queries, points, plan.k, self_ids, *found, unchecked)
    return None if plain is None else found


def _in_calls(
    queries: Rows,
    points: Rows,
    plan: ExactPlan,
    self_ids: npt.NDArray[np.int64] | None,
    checked: bool,
    sizes: tuple[int, int],
    bar: Progress | Silent,
) -> Neighbors | None:
    """Search in several native calls; `sizes` are the numbers of queries and of points in one call."""
    (rows, size), m, n, workers = sizes, len(queries), len(points), Workers(plan.threads)

    def call(some: slice, part: slice) -> Neighbors | None:
        workers.check()
        asked, among = queries[some], points[part]
        found = _call(asked, among, plan, None if self_ids is None else self_ids[some], checked)
        bar.add(len(asked) * len(among))
        return found

    if size < n:
        parts = cut(n, size)
        if n - parts[-1].start < size:  # a last slice of fewer than `size` points becomes part of the slice before it
            parts[-2:] = [slice(parts[-2].start, n)]
        lists = workers.map(lambda part: call(slice(0, m), part), parts)
        finite = [each for each in lists if each is not None]
        return _merged(finite, [part.start for part in parts], plan, n) if len(finite) == len(lists) else None
    lists = workers.map(lambda some: call(some, slice(0, n)), cut(m, rows))
    finite = [each for each in lists if each is not None]
    return Neighbors(*map(np.concatenate, zip(*finite, strict=True))) if len(finite) == len(lists) else None


def _sizes(m: int, n: int, plan: ExactPlan, may_slice: bool) -> tuple[int, int]:
    """Return the numbers of queries and points in one native call; if queries are few, points are cut into slices."""
    work = plan.seconds * plan.threads
    if not worth_sharing(work):
        return m, n
    calls = math.ceil(max(plan.threads, work / tuning.DIRECT_SECONDS))
    least = max(tuning.DIRECT_POINTS, tuning.DIRECT_TIMES * plan.k)
    if m >= calls or not may_slice or n < 2 * least:
        together = min(tuning.DIRECT_QUERIES, math.ceil(m / plan.threads))
        return max(together, m // calls), n
    return m, max(least, -(-n // calls))


def _room(queries: Rows, points: Rows, k: int) -> Neighbors:
    return Neighbors.empty(len(queries), k, len(points), queries.dtype, points.dtype)


def _merged(lists: list[Neighbors], offsets: list[int], plan: ExactPlan, n: int) -> Neighbors:
    distances, indices = merge_neighbors(lists, offsets, k=plan.k, metric=plan.metric)
    return Neighbors(distances, indices.astype(index_dtype(n), copy=False))
