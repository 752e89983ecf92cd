"""Search again for the neighbours of points whose lists lost entries when the graph was changed.

The distances from a point to its remaining neighbours and to their neighbours give an upper bound of its new k-th
distance, so it is enough to search for all points within this bound.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.core.process.progress import Progress
from tonari.core.results.neighbors import Neighbors, index_dtype
from tonari.core.results.radius_neighbors import RadiusNeighbors
from tonari.core.rows.listed import Listed
from tonari.core.rows.slices import cut
from tonari.core.trail import decided
from tonari.filters.looking import near_some
from tonari.filters.scope import Scope, on_host
from tonari.graph import tuning
from tonari.methods.places.points import Points

Ids = npt.NDArray[np.int64]


def search_again(those: Points, found: Neighbors, short: Ids, bar: Progress) -> None:
    """Search for the neighbours of the points `short` among all other points, and write their lists to `found`.

    `found` has the remaining entries of all lists. Brute force on the CPU uses them to bound the distance of each
    search. A k-d tree or a CUDA device searches for the k nearest points without a bound, since a bound saves it no
    time.
    """
    k = found.indices.shape[1]
    if not len(short):
        return
    queries = inputs.rows_at(those.rows, short)
    on_device = bool(those.call.place.devices)
    if on_device or those.decided(queries, min(k + 1, len(those)), False).method.name != "exact":
        search_plainly(those, found, short, bar)
        return
    bounds = _bounds(those, found, short, queries)
    bounded = np.isfinite(bounds)
    if bounded.any():
        ready = Scope(points=those).ready(queries, bounds)
        near = near_some(ready, queries, bounds, np.flatnonzero(bounded))
        if near.mean() > tuning.CROWDED * (k + 1):
            decided("bounds", f"{near.mean():.0f} points within the bounds: the nearest are searched without them")
            bounded[:] = False
        else:
            rows = short[bounded]
            request = inputs.rows_at(queries, np.flatnonzero(bounded))
            new = nearest_within(ready.points, request, bounds[bounded], k, own=rows)
            found.distances[rows], found.indices[rows] = new
            bar.add(len(rows))
    if not bounded.all():
        search_plainly(those, found, short[~bounded], bar)


def search_plainly(those: Points, found: Neighbors, rows: Ids, bar: Progress) -> None:
    """Search for the neighbours of the points `rows` among all other points, without bounds.

    Write their lists to `found`.
    """
    k, n = found.indices.shape[1], len(those)
    near = on_host(those.nearest(inputs.rows_at(those.rows, rows), min(k + 1, n), False))
    other = near.indices != rows[:, None]
    # among more than k duplicates, the result of a point may lack the point itself
    other[other.all(axis=1), -1] = False
    for mine, new in zip(found, near, strict=True):
        mine[rows] = new[other].reshape(len(rows), k)
    bar.add(len(rows))


def _bounds(those: Points, found: Neighbors, short: Ids, queries: Any) -> npt.NDArray[Any]:
    """Return an upper bound of the new k-th distance of each point in `short`, computed from its neighbours' lists."""
    k = found.indices.shape[1]
    bounds = np.full(len(short), -np.inf if those.call.metric.descending else np.inf, found.distances.dtype)
    first = min(k, tuning.BOUNDING_NEIGHBOURS)
    for block in cut(len(short), max(1, tuning.READ_AT_ONCE // (k * (first + 1)))):
        rows = short[block]
        own = found.indices[rows]
        near = found.indices[np.maximum(own[:, :first], 0)]
        near = np.where(own[:, :first, None] >= 0, near, -1).reshape(len(rows), -1)
        some = np.concatenate([own, near], axis=1)
        some.sort(axis=1)
        some[:, 1:][some[:, 1:] == some[:, :-1]] = -1
        some[some == rows[:, None]] = -1
        listed = some >= 0
        ends = np.cumsum(listed.sum(axis=1))
        numbers = some[listed].astype(np.int64)
        begins = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
        nearest = Scope(points=those).listed(
            inputs.rows_at(queries, np.arange(len(short))[block]), k, Listed(numbers, begins, ends)
        )
        bounds[block] = nearest.distances[:, -1]
    return bounds


def nearest_within(those: Points, queries: Any, limits: npt.NDArray[Any], k: int, own: Ids | None = None) -> Neighbors:
    """Return the k nearest points within each query's distance limit, in host memory; -1 if there are fewer than k.

    `own` has the row number of each query's own point, which is left out of its list. Default: no point is left out.
    """
    m, descending = len(queries), those.call.metric.descending
    values = np.full((m, k), -np.inf if descending else np.inf, limits.dtype)
    numbers = np.full((m, k), -1, index_dtype(len(those)))
    ready = those.ready(queries, limits)
    memory = those.call.memory
    entries = tuning.WITHIN_ENTRIES if memory is None else min(tuning.WITHIN_ENTRIES, memory // tuning.WITHIN_BYTES)
    for block in cut(m, max(1, entries // len(those))):
        request = inputs.rows_at(queries, np.arange(m)[block])
        within = RadiusNeighbors(*on_host(ready.within(request, limits[block], False)))
        lists = np.repeat(np.arange(len(limits[block])), np.diff(within.indptr))
        stays = np.arange(len(lists)) if own is None else np.flatnonzero(within.indices != own[block][lists])
        column = np.arange(len(stays)) - np.searchsorted(stays, within.indptr[:-1])[lists[stays]]
        inside = column < k
        at = lists[stays[inside]] + block.start, column[inside]
        values[at], numbers[at] = within.distances[stays[inside]], within.indices[stays[inside]]
    return Neighbors(values, numbers)
