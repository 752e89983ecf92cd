"""The k nearest points by the caller's own distances, found for one block of queries after another.

In a graph with symmetric distances, a block of rows is compared only with itself and with later rows, and the distances
are also merged into the lists of the later rows. Distances to points that a query may not find are replaced by NaN,
which is selected last, and then removed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tonari.core.process.progress import Progress, ProgressLike
from tonari.core.results.neighbors import Neighbors
from tonari.core.rows.slices import cut
from tonari.select import select_k
from tonari.user_metrics.plan import GivenPlan
from tonari.user_metrics.values import Allowed, Values, forbid, own_values, strip, without_own

Array = npt.NDArray[Any]


class GivenLists(NamedTuple):
    """The result of :func:`nearest`: the nearest points, and the distance of each row to itself.

    `own` has the shape (n,) for a graph, and (0,) for a search.
    """

    found: Neighbors
    own: Array


def nearest(
    values: Values,
    k: int,
    plan: GivenPlan,
    *,
    own: bool = False,
    symmetric: bool = False,
    allowed: Allowed | None = None,
    threads: int | None = None,
    progress: ProgressLike = None,
) -> GivenLists:
    """Find the k nearest points of each query by the caller's own distances.

    Parameters
    ----------
    values : Values
        The distances.
    k : int
        At most n, or n - 1 with `own`.
    plan : GivenPlan
    own : bool
        Whether the queries are the points, and no point is its own neighbour.
    symmetric : bool
        With `own`: whether the distance of two rows is the same in both directions.
    allowed : callable, optional
        A function that says which queries may find which points. A list of fewer than k points ends with -1 at inf.
    threads : int, optional
        Number of threads that select the nearest points.
    progress : None, bool or callable(done, total)
        Counts queries.
    """
    found, selves = Neighbors.empty(values.m, k, values.n, values.dtype), np.zeros(values.m if own else 0, values.dtype)
    if symmetric:
        found.distances[:], found.indices[:] = np.inf, -1
    with Progress(progress, total=values.m, seconds=None, label="neighbours", unit="query") as bar:
        for rows in cut(values.m, plan.rows):
            columns = slice(rows.start if symmetric else 0, values.n)
            block = strip(values, rows, columns, plan.columns, own=own)
            if own:
                selves[rows] = own_values(block, rows, columns)
                without_own(block, rows, columns)
            # copied before filters are applied, because filters differ between rows
            later = block[:, rows.stop - rows.start :]
            if allowed is not None:
                block = forbid(block.copy() if symmetric else block, allowed, _all(rows), _all(columns))
            most = min(k, block.shape[1] - own)
            best = _best(block, most, rows.start if symmetric else 0, threads) if most else None
            if not symmetric:
                assert best is not None
                found.distances[rows], found.indices[rows] = best
            else:
                if best is not None:
                    _merge(found, _all(rows), *best)
                _mirror(found, later, rows, allowed, threads)
            bar.add(rows.stop - rows.start)
    return GivenLists(found, selves)


def _all(part: slice) -> npt.NDArray[np.int64]:
    return np.arange(part.start, part.stop)


def _best(block: Array, k: int, first: int, threads: int | None) -> Neighbors:
    """Select the k smallest distances in each row of a block; the block's first column is point number `first`.

    NaN marks points that may not be found; if fewer than k points remain, the list ends with -1 at inf.
    """
    best = select_k(block, k, nan="last", threads=threads)
    missing = np.isnan(best.values)
    return Neighbors(np.where(missing, np.inf, best.values), np.where(missing, -1, best.indices + first))


def _mirror(found: Neighbors, block: Array, rows: slice, allowed: Allowed | None, threads: int | None) -> None:
    """Merge the distances from a block of rows to all later rows into the lists of the later rows."""
    last = found.distances[rows.stop :, -1]
    if not len(last):
        return
    near = np.flatnonzero((block.min(axis=0) < last) | (found.indices[rows.stop :, -1] < 0))
    if not len(near):
        return
    turned = np.ascontiguousarray(block[:, near].T)
    if allowed is not None:
        forbid(turned, allowed, near + rows.stop, _all(rows))
    _merge(found, near + rows.stop, *_best(turned, min(found.indices.shape[1], turned.shape[1]), rows.start, threads))


def _merge(found: Neighbors, rows: npt.NDArray[np.int64], values: Array, indices: Array) -> None:
    """Merge candidates into the lists of the rows `rows`, in order of (distance, index), missing entries last."""
    k = found.indices.shape[1]
    distances = np.concatenate([found.distances[rows], values], axis=1)
    ids = np.concatenate([found.indices[rows], indices], axis=1, dtype=found.indices.dtype)
    order = np.lexsort((ids, distances, ids < 0), axis=1)[:, :k]
    found.distances[rows] = np.take_along_axis(distances, order, axis=1)
    found.indices[rows] = np.take_along_axis(ids, order, axis=1)
