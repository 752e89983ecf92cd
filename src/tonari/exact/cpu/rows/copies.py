"""Find duplicate rows that no answer can contain, so that a search can leave them out.

Points at equal distances are ordered by row number. An answer therefore contains at most the first k copies of a row,
or the first k + 1 if the query may be one of them. Leaving out later copies does not change any answer, but it
saves time: if a row has thousands of copies, all of them would survive the screen.

    some rows    are hashed to estimate the share of copies; the next step runs only if the share is large enough
    all rows     are sorted by hash, then by row number, and each is compared with the row before it

A hash collision affects only the time: if it sorts a different row between two copies, the second one counts as a first
copy. The same holds for rows that differ only in the signs of zeros.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.core.plan import Plan
from tonari.core.process.workers import Workers
from tonari.core.rows.slices import cut
from tonari.core.trail import decided
from tonari.exact import tuning

Numbers = npt.NDArray[np.int64]

_ROW_BYTES = 32  # bytes of memory per row while rows are sorted


def first_copies(
    points: npt.NDArray[Any], plan: Plan, meeting: float, memory: int, copied: int = 0, spare: int = 0
) -> Numbers | None:
    """Return the row numbers of the points that a search needs, ascending; None if leaving out copies saves little.

    Parameters
    ----------
    points : array of shape (n, d)
    plan : Plan
        The plan of the search.
    meeting : float
        Seconds that a query spends on one copy that survives the screen.
    memory : int
        Bytes that the search would need to prepare all points and to work.
    copied : int
        Additional bytes per point that a search of a subset needs for the row numbers of its points, or for a copy of
        its rows.
    spare : int
        Free bytes. The additional bytes of the subset must fit into them.
    """
    n, most = plan.n, plan.k + 1
    if n * plan.m < tuning.COPIES_PAIRS or n * _ROW_BYTES > memory:
        return None
    # Assumes that queries are distributed like points.
    if plan.m * _share(points) * meeting <= tuning.COPIES_ROW_SECONDS:
        return None
    order, copies = _in_runs(points, Workers(plan.threads))
    begins = np.append(np.flatnonzero(copies == 0), n)
    lengths = np.diff(begins)
    # Each row of a run of c copies is compared with its c - most later copies, so a run has c (c - most) such pairs.
    if np.sum(lengths * np.maximum(lengths - most, 0)) < tuning.LEAST_COPIES * n:
        return None
    is_first = np.ones(n, np.bool_)
    for run in np.flatnonzero(lengths > most):
        is_first[begins[run] + most : begins[run + 1]] = False
    numbers: Numbers = np.sort(order[is_first])
    fits = len(numbers) * copied <= (n - len(numbers)) * (memory / n) + spare
    if not fits:
        return None
    decided("copies", f"{len(numbers):,} of {n:,} points are searched: no answer holds a later copy of a row")
    return numbers


def _share(points: npt.NDArray[Any]) -> float:
    """Estimate, from a sample, the share of pairs of points that are copies of each other."""
    step = max(1, len(points) // tuning.COPIES_ROWS)
    hashes = np.empty(-(-len(points) // step), np.uint64)
    _native.hash_rows(points, step, hashes)
    counts = np.unique(hashes, return_counts=True)[1]
    return float(np.sum(counts * (counts - 1)) / len(hashes) ** 2)


def _in_runs(points: npt.NDArray[Any], workers: Workers) -> tuple[Numbers, npt.NDArray[np.uint8]]:
    """Sort row numbers so that equal rows are adjacent; also return a mask of rows that equal the row before."""
    n = len(points)
    hashes, copies = np.empty(n, np.uint64), np.empty(n, np.uint8)

    def make(part: slice) -> None:
        workers.check()
        _native.hash_rows(points[part], 1, hashes[part])

    workers.map(make, cut(n, tuning.COPIES_TASK))
    order: Numbers = np.argsort(hashes, kind="stable")

    def mark(part: slice) -> None:
        workers.check()
        _native.mark_copies(points, hashes, order, part.start, part.stop, copies)

    workers.map(mark, cut(n, tuning.COPIES_TASK))
    return order, copies
