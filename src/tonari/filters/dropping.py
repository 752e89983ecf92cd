"""Searches with rules that allow many points: find more than k neighbours, and drop the forbidden ones.

The K nearest points include the k nearest allowed ones if k of the K points are allowed, if K is the number of points,
or if K is at least k plus the number of forbidden points. The first K is chosen such that it almost always suffices if
forbidden points are distributed at random. A query that finds fewer than k allowed points is searched again with K four
times as large. When K approaches the number of points, computing the exact values of all allowed points is faster.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from typing import Any

import numpy as np

from tonari import inputs
from tonari.core.errors import BudgetExceeded
from tonari.core.process.progress import Progress
from tonari.core.results.neighbors import Neighbors
from tonari.core.trail import current, decided, part
from tonari.filters import tuning
from tonari.filters.excluded import distinct
from tonari.filters.listed import PAIR, by_table, row_bytes
from tonari.filters.rules import Ids, Rules
from tonari.filters.scope import Scope, on_host


def by_dropping(scope: Scope, queries: Any, k: int, rules: Rules, found: Neighbors, bar: Progress) -> None:
    """Find the k nearest allowed points of each query, and write them to `found`, which has no neighbours yet."""
    n, (_, forbidden) = scope.n, rules.forbidden_bounds(scope.room)
    enough = np.minimum(n, k + forbidden)
    wanted = np.minimum(enough, first_guess(k, n, forbidden))
    todo = np.arange(len(queries))
    while len(todo):
        listed = _is_listed(scope, k, forbidden[todo], wanted[todo])
        if listed.any():
            by_table(scope, queries, k, rules, found, bar, todo[listed])
            todo = todo[~listed]
        again: list[Ids] = []
        level = np.ceil(np.log(wanted[todo]) / np.log(tuning.GROWTH)).astype(np.int64)
        for some in (todo[level == at] for at in distinct(level)):
            size = _length(scope, len(some), int(wanted[some].max()))
            step = _at_once(scope, size)
            for begin in range(0, len(some), step):
                rows, started = some[begin : begin + step], time.perf_counter()
                try:
                    done = _cut(scope, queries, k, rules, found, rows, size) | (size >= enough[rows])
                except BudgetExceeded:  # fall back to tables of allowed points, which take longer but need less memory
                    decided("rules", f"exact values of allowed points: memory holds no search for the nearest {size}")
                    by_table(scope, queries, k, rules, found, bar, rows)
                    continue
                bar.add(int(done.sum()))
                record = current.get()
                if record is not None:
                    name = f"the nearest {size}, less forbidden ones"
                    record.tried(name, len(rows), int(done.sum()), time.perf_counter() - started)
                again.append(rows[~done])
                wanted[rows[~done]] = np.minimum(enough[rows[~done]], tuning.GROWTH * size)
        todo = np.sort(np.concatenate([np.empty(0, np.int64), *again]))


def first_guess(k: int, n: int, forbidden: Ids) -> Ids:
    """Return, for each query, a number of nearest points that almost always includes k allowed ones.

    `forbidden` is the number of forbidden points of each query, which are assumed to be distributed at random.
    """
    share = np.maximum(1, n - forbidden) / n
    size: Ids = np.ceil((k + 3 * np.sqrt(k) + 3) / share).astype(np.int64)
    return size


def _length(scope: Scope, m: int, size: int) -> int:
    """Return the number of neighbours to search for: `size` on the CPU, `size` or more on CUDA.

    On CUDA, kernels are compiled for ranges of lengths, so only a few lengths are used: each is twice the previous one,
    or four times for a few queries, because compilation takes long compared with their search. If memory is too small
    for a length, the largest possible length of at least `size` is used.
    """
    if not scope.points.call.place.devices:
        return size
    growth = tuning.GROWTH if m < tuning.MANY_QUERIES else 2
    length = tuning.LEAST_LENGTH
    while length < size:
        length *= growth
    length = max(size, min(length, scope.n))
    if scope.memory is None or dropping_seconds(scope, m, length) < np.inf:
        return length
    shorter = range(size, length)  # longer lists take more memory, so only the first lengths fit
    return max(size, size - 1 + bisect_left(shorter, 1, key=lambda at: dropping_seconds(scope, m, at) == np.inf))


def dropping_seconds(scope: Scope, m: int, size: int) -> float:
    """Estimate the seconds of a search for the `size` nearest points of m queries; inf if memory is too small."""
    step = min(m, _at_once(scope, size))
    return scope.seconds(step, size) * (m / step)


def _is_listed(scope: Scope, k: int, forbidden: Ids, wanted: Ids) -> Any:
    """Return a mask of the queries that should be faster if the exact values of all allowed points are computed."""
    n, allowed = scope.n, scope.n - forbidden
    if n <= tuning.FEW_POINTS:
        return 4 * wanted >= n
    least, most = int(wanted.min()), int(wanted.max())
    low, high = (dropping_seconds(scope, len(wanted), size) / len(wanted) for size in (least, most))
    between = (wanted - least) / max(1, most - least)
    searched = np.where(wanted == least, low, low + (high - low) * between if max(low, high) < np.inf else np.inf)
    threads = scope.threads or 1
    values = np.array([scope.listed_seconds(1, int(count)) for count in (0, n)])
    listed = (values[0] + (values[1] - values[0]) * allowed / n) / threads
    checked = tuning.LOOKED_AT * n + tuning.TABLE_POINT_SECONDS * allowed
    return (4 * wanted >= n) | (listed + checked < searched)


def _at_once(scope: Scope, size: int) -> int:
    """Return the number of queries whose lists of `size` points fit in memory together while the rules are checked."""
    return max(1, scope.room // (PAIR * size + row_bytes(scope.rows)))


def _cut(scope: Scope, queries: Any, k: int, rules: Rules, found: Neighbors, rows: Ids, size: int) -> Any:
    """Find the `size` nearest points of the queries `rows`, and write the first k allowed ones to `found`.

    Return a mask of the queries that have k allowed points among these `size` points.
    """
    whole = len(rows) == len(queries)
    with part(f"nearest {size} without rules", len(rows)):
        near = on_host(scope.nearest(queries if whole else inputs.rows_at(queries, rows), size, False))
    allowed = rules.allowed(rows[:, None], near.indices)
    first = np.argsort(~allowed, axis=1, kind="stable")[:, :k]
    allowed = np.take_along_axis(allowed, first, axis=1)
    for mine, new in zip(found, near, strict=True):
        own = mine[rows]
        own[:, : first.shape[1]] = np.where(allowed, np.take_along_axis(new, first, axis=1), own[:, : first.shape[1]])
        mine[rows] = own
    return allowed.sum(axis=1) >= k
