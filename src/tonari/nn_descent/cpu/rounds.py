"""A round on the CPU: compute the reverse lists, then update every row independently, in blocks on all threads."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.core.process.workers import Workers
from tonari.core.results.neighbors import Neighbors
from tonari.nn_descent import tuning
from tonari.nn_descent.backend import Round
from tonari.nn_descent.cpu.short_rows import ShortRows
from tonari.nn_descent.plan import DescentPlan


def point_terms(points: npt.NDArray[Any], metric: str, workers: Workers) -> npt.NDArray[np.float32] | None:
    """Return the two terms of each point in float32 scores, of shape (n, 2); None if the kernel needs none.

    native/nn_descent/scores.hpp defines the scores.
    """
    if not _native.has_point_terms(metric, points):
        return None
    n = len(points)
    terms = np.empty((n, 2), np.float32)

    def work(begin: int) -> None:
        workers.check()
        _native.point_terms(metric, points, begin, min(begin + tuning.TERM_ROWS, n), terms)

    workers.map(work, range(0, n, tuning.TERM_ROWS))
    return terms


class Helps(NamedTuple):
    """Optional data that help a round to compare points.

    Attributes
    ----------
    terms : float32 of shape (n, 2), optional
        The result of :func:`point_terms`.
    short : ShortRows, optional
        Contracted rows that bound distances. They affect only speed.
    """

    terms: npt.NDArray[np.float32] | None = None
    short: ShortRows | None = None


def reverse_lists(entries: npt.NDArray[np.int32], hubs: int, most: int, workers: Workers) -> npt.NDArray[np.int32]:
    """Find, for each point, the rows that list this point among their first entries.

    Parameters
    ----------
    entries : int32 of shape (n, list_size)
    hubs : int
        The number of leading columns to read.
    most : int
        The largest number of rows per point. If there are more, the first ones in the order of (column, row) are kept.

    Returns
    -------
    int32 of shape (n, most)
        Row numbers, marked as new if the entry is new; missing ones are at the end.
    """
    n = len(entries)
    counts, behind = np.zeros(n, np.int32), np.empty((n, most), np.int32)
    bounds = np.linspace(0, n, min(workers.threads, n) + 1).astype(int).tolist()

    def work(part: int) -> None:
        begin, end = bounds[part : part + 2]
        for column in range(hubs if most else 0):
            workers.check()
            _native.add_reverse(entries, column, begin, end, counts, behind)
        _native.end_reverse(entries, begin, end, counts, behind)

    workers.map(work, range(len(bounds) - 1))
    return behind


def run_round(
    points: npt.NDArray[Any],
    entries: npt.NDArray[np.int32],
    plan: DescentPlan,
    workers: Workers,
    *,
    helps: Helps,
    order: npt.NDArray[np.int32] | None,
    boundary: int | None,
    last: bool = False,
) -> Round:
    """Run one round; the result is that of :mod:`tonari.nn_descent.reference`, bit for bit.

    Parameters
    ----------
    points : array of shape (n, d), checked
    entries : int32 of shape (n, list_size)
    helps : Helps
    order : int32 of shape (n,), optional
        The order in which rows are processed. If adjacent rows are compared with the same points, these points are
        still in the cache. The order affects only speed.
    boundary : int, optional
        Compare only points of different graphs: ids below this number belong to the first graph.
    last : bool
        Whether to return only the first k neighbours, without the entries that another round would read.
    """
    n, size = entries.shape
    hubs = min(plan.n_hubs, size)
    behind = reverse_lists(entries, hubs, plan.reverse, workers)
    kept, sums = None if last else np.empty_like(entries), np.empty(n)
    found = Neighbors.empty(n, plan.k, n, points.dtype)
    short = helps.short
    native = _native.DescentRound(
        plan.isa,
        plan.metric,
        points,
        helps.terms,
        None if short is None else short.rows,
        1.0 if short is None else short.scale,
        0.0 if short is None else short.error,
        entries,
        behind,
        hubs,
        min(plan.neighbors_per_hub, size),
        plan.width,
        -1 if boundary is None else boundary,
        order,
        kept,
        found.distances,
        found.indices,
        sums,
    )

    def work(begin: int) -> int:
        workers.check()
        return native.run(begin, min(begin + plan.block, n))

    changed = sum(workers.map(work, range(0, n, plan.block)))
    return Round(kept, found, changed, float(sums.sum()))
