"""All allowed points within a radius, or the nearest of them.

Queries are searched in blocks. Before the next block starts, forbidden points and all but the `most` nearest allowed
points are removed from the result. If more than one block is needed, the points within the radius are counted first, to
choose the size of the blocks. The counts also show whether another method is faster for a query: exact values of the
allowed points if there are few of them, or a search for the nearest points if far more than `most` points are within
the radius.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.core.process.progress import Progress, ProgressLike
from tonari.core.results.neighbors import index_dtype
from tonari.core.results.radius_neighbors import RadiusNeighbors, cut_lists, nearest_of
from tonari.core.rows.listed import Listed
from tonari.core.rows.slices import in_room
from tonari.filters import tuning
from tonari.filters.excluded import distinct
from tonari.filters.listed import ENTRY, PAIR, by_lists, groups_of, kept_of, nothing, row_bytes, table_bytes
from tonari.filters.looking import are_short, is_listed_soon, near_some
from tonari.filters.rules import Ids, Rules
from tonari.filters.scope import Scope, on_host
from tonari.filters.searches.nearest import fill

Part = tuple[Ids, RadiusNeighbors]  # the row numbers of some queries, and their results


def within_allowed(
    scope: Scope,
    queries: Any,
    limits: npt.NDArray[Any],
    rules: Rules,
    most: int | None = None,
    progress: ProgressLike = None,
) -> RadiusNeighbors:
    """Find all allowed points within the radius of each query, or the `most` nearest; the result is in host memory.

    Parameters
    ----------
    scope : Scope
    queries : checked rows of shape (m, d)
    limits : array of shape (m,)
        See :func:`tonari.core.results.radius_neighbors.limits_for`.
    rules : Rules
    most : int, optional
        Largest number of points for each query.
    progress : None, bool or callable(done, total)
        Counts queries.
    """
    scope = scope.with_room(rules, pair=PAIR, results=0, k=most or 1, m=len(queries))
    with Progress(progress, total=len(queries), seconds=None, label="neighbours", unit="query") as bar:
        return _within(scope, queries, limits, rules, most, bar)


def _within(
    scope: Scope, queries: Any, limits: npt.NDArray[Any], rules: Rules, most: int | None, bar: Progress
) -> RadiusNeighbors:
    if rules.shared is not None and (not scope.prepared or rules.grouped):
        return _among(scope, queries, limits, rules.without("shared"), most, bar, None, rules.open_places())
    if not scope.n or not len(queries):
        bar.add(len(queries))
        return _of_parts([], scope, queries)
    filtered = scope.allowed_by(rules) if most is None else None
    if filtered is not None and not is_listed_soon(scope, queries, rules, filtered=True):
        found = RadiusNeighbors(*on_host(scope.within(queries, limits, False, filtered)))
        bar.add(len(queries))
        return found
    if most is None and (rules.grouped or rules.by_pairs) and not is_listed_soon(scope, queries, rules):
        scope = scope.ready(queries, limits)
        if are_short(near_some(scope, queries, limits, np.arange(len(queries))), scope.n):
            return _by_dropping(scope, queries, limits, rules, bar)
    by = _by_group if rules.grouped else _by_rows
    return by(scope, queries, limits, rules, most, bar)


def _by_dropping(scope: Scope, queries: Any, limits: npt.NDArray[Any], rules: Rules, bar: Progress) -> RadiusNeighbors:
    """List all points within the radius, block by block with memory for all points, and drop forbidden ones."""
    parts = list[Part]()
    for block in in_room(np.full(len(queries), PAIR * scope.n + row_bytes(queries)), scope.room):
        rows = np.arange(block.start, block.stop)
        chosen = queries if len(rows) == len(queries) else inputs.rows_at(queries, rows)
        found = RadiusNeighbors(*on_host(scope.within(chosen, limits[block], False)))
        parts.append((rows, _allowed_ones(found, rules, rows)))
        bar.add(len(rows))
    return _of_parts(parts, scope, queries)


def _by_rows(
    scope: Scope, queries: Any, limits: npt.NDArray[Any], rules: Rules, most: int | None, bar: Progress
) -> RadiusNeighbors:
    """Find the allowed points within the radius, by the method that is expected to be fastest for each query."""
    m, n = len(queries), scope.n
    cuts = rules.by_pairs or rules.own or rules.shared is not None
    if not cuts and most is None:
        found = RadiusNeighbors(*on_host(scope.within(queries, limits, False)))
        bar.add(m)
        return found
    least, forbidden = rules.forbidden_bounds(scope.room)
    allowed = n - forbidden
    listed, near = tuning.LISTED_FEW * allowed < n, np.full(m, n)
    rest = np.flatnonzero(~listed)
    ready = scope.ready(queries, limits) if len(rest) else scope
    many = np.zeros(m, bool)
    if len(rest) and most is not None and not (rules.by_pairs or rules.shared is not None):
        many[rest] = _have_many(ready, queries, limits, rest, most)
    # count the points first, unless lists of all points would fit into memory
    if len(rest) and not many.any() and (most is not None or m * n * PAIR > scope.room):
        near[rest] = ready.count(queries if len(rest) == m else inputs.rows_at(queries, rest), limits[rest])
        listed |= tuning.FEWER * allowed < near
    many |= ~listed & (near > (n if most is None else tuning.TOO_MANY * most))
    parts = _by_tables(scope, queries, limits, rules, most, np.flatnonzero(listed), least, bar)
    parts += _by_search(scope, queries, limits, rules, most or 0, np.flatnonzero(many), bar)
    rows = np.flatnonzero(~(listed | many))
    for block in in_room(PAIR * near[rows] + row_bytes(queries), scope.room):
        some = rows[block]
        chosen = queries if len(some) == m else inputs.rows_at(queries, some)
        found = RadiusNeighbors(*on_host(ready.within(chosen, limits[some], False)))
        found = _allowed_ones(found, rules, some) if cuts else found
        parts.append((some, _nearest(found, most)))
        bar.add(len(some))
    return _of_parts(parts, scope, queries)


def _have_many(ready: Scope, queries: Any, limits: npt.NDArray[Any], rows: Ids, most: int) -> bool:
    """Return whether most of the queries `rows` are expected to have far more than `most` points within the radius."""
    if len(rows) < tuning.COUNTED_ONE_OF:
        return False
    least = most if most <= tuning.SHORT_SEARCH else tuning.TOO_MANY * most
    return bool(np.median(near_some(ready, queries, limits, rows)) > least)


def _allowed_ones(found: RadiusNeighbors, rules: Rules, rows: Ids) -> RadiusNeighbors:
    """Return the radius results of the queries `rows`, without forbidden points."""
    places, bounds = kept_of(found, rules, rows)
    if len(places) == len(found.indices):
        return found
    return RadiusNeighbors(bounds, found.indices.take(places), found.distances.take(places))


def _nearest(found: RadiusNeighbors, most: int | None) -> RadiusNeighbors:
    return found if most is None else nearest_of(found, most)


def _by_tables(
    scope: Scope,
    queries: Any,
    limits: npt.NDArray[Any],
    rules: Rules,
    most: int | None,
    rows: Ids,
    least: Ids,
    bar: Progress,
) -> list[Part]:
    """Find the points within the radius of the queries `rows` by computing the exact values of all allowed points.

    `least` is a lower bound of the number of forbidden points for each query.
    """
    parts = list[Part]()
    allowed = scope.n - least[rows]
    for block in in_room(table_bytes(scope.n, allowed) + ENTRY * allowed + row_bytes(queries), scope.room):
        some = rows[block]
        ids, bounds = rules.lists(some, allowed=True)
        k = max(1, int(np.diff(bounds).max()))
        k = k if most is None else min(k, most)
        found = scope.listed(inputs.rows_at(queries, some), k, Listed(ids, bounds[:-1], bounds[1:]))
        parts.append((some, cut_lists(found, limits[some], descending=scope.metric.descending)))
        bar.add(len(some))
    return parts


def _by_search(
    scope: Scope, queries: Any, limits: npt.NDArray[Any], rules: Rules, most: int, rows: Ids, bar: Progress
) -> list[Part]:
    """Find the `most` nearest allowed points of the queries `rows`, if each has more points within its radius."""
    parts = list[Part]()
    for block in in_room(np.full(len(rows), ENTRY * most + row_bytes(queries)), scope.room):
        some = rows[block]
        found = nothing(len(some), most, scope, queries, scope.n)
        fill(scope, inputs.rows_at(queries, some), most, rules.part(some, None), found, bar)
        parts.append((some, cut_lists(found, limits[some], descending=scope.metric.descending)))
    return parts


def _among(
    scope: Scope,
    queries: Any,
    limits: npt.NDArray[Any],
    rules: Rules,
    most: int | None,
    bar: Progress,
    rows: Ids | None,
    ids: Ids,
) -> RadiusNeighbors:
    """Search a copy of the points `ids` for the queries `rows` (None: for all queries).

    The results have the row numbers of the original points.
    """
    chosen = queries if rows is None else inputs.rows_at(queries, rows)
    if not len(ids):
        bar.add(len(chosen))
        return _of_parts([], scope, chosen)
    here = limits if rows is None else limits[rows]
    found = _within(scope.among(ids), chosen, here, rules.part(rows, ids), most, bar)
    return RadiusNeighbors(found.indptr, ids.astype(index_dtype(scope.n))[found.indices], found.distances)


def _by_group(
    scope: Scope, queries: Any, limits: npt.NDArray[Any], rules: Rules, most: int | None, bar: Progress
) -> RadiusNeighbors:
    """Find, for each query, the points of its group that are within its limit.

    In a small group, all exact values are computed; a large group is searched.
    """
    order, begins, ends = groups_of(rules)
    inside, sizes, parts = rules.without("query_groups", "point_groups"), ends - begins, list[Part]()
    for first in distinct(begins[sizes > tuning.WITHIN_LARGE]):
        rows = np.flatnonzero((begins == first) & (sizes > 0))
        members = order[first : first + sizes[rows[0]]]
        parts.append((rows, _among(scope, queries, limits, inside, most, bar, rows, members)))
    small = np.flatnonzero(sizes <= tuning.WITHIN_LARGE)
    small = small[np.argsort(sizes[small], kind="stable")]
    at, descending = 0, scope.metric.descending
    while at < len(small):
        size = max(16, 2 * int(sizes[small[at]]))
        step = max(1, scope.room // (PAIR * size + row_bytes(queries)))
        stop = min(int(np.searchsorted(sizes[small], size, "right")), at + step)
        rows, k = np.sort(small[at:stop]), max(1, int(sizes[small[stop - 1]]))
        k = k if most is None else min(k, most)
        found = nothing(len(rows), k, scope, queries, scope.n)
        listed, everyone = Listed(order, begins[rows], ends[rows]), np.arange(len(rows))
        some = inputs.rows_at(queries, rows)
        by_lists(scope, some, k, inside.part(rows, None), found, bar, rows=everyone, listed=listed)
        parts.append((rows, cut_lists(found, limits[rows], descending=descending)))
        at = stop
    return _of_parts(parts, scope, queries)


def _of_parts(parts: list[Part], scope: Scope, queries: Any) -> RadiusNeighbors:
    """Join the results of disjoint sets of queries in the order of the queries, and free these results."""
    if len(parts) == 1 and len(parts[0][0]) == len(queries):
        return parts[0][1] if bool((np.diff(parts[0][0]) == 1).all()) else _joined(parts, scope, queries)
    return _joined(parts, scope, queries)


def _joined(parts: list[Part], scope: Scope, queries: Any) -> RadiusNeighbors:
    m = len(queries)
    empty = nothing(0, 1, scope, queries, scope.n)
    counts = np.zeros(m, np.int64)
    for rows, found in parts:
        counts[rows] = np.diff(found.indptr)
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    total = int(indptr[-1])
    joined = RadiusNeighbors(indptr, np.empty(total, empty.indices.dtype), np.empty(total, empty.distances.dtype))
    while parts:
        rows, found = parts.pop()
        if bool((np.diff(rows) == 1).all()):
            place = slice(indptr[rows[0]], indptr[rows[-1] + 1]) if len(rows) else slice(0)
            joined.indices[place], joined.distances[place] = found.indices, found.distances
            continue
        for block in in_room(ENTRY * np.diff(found.indptr), scope.room):
            first, last = found.indptr[block.start], found.indptr[block.stop]
            sizes = np.diff(found.indptr[block.start : block.stop + 1])
            places = np.repeat(indptr[rows[block]] - found.indptr[block], sizes) + np.arange(first, last)
            joined.indices[places], joined.distances[places] = found.indices[first:last], found.distances[first:last]
    return joined
