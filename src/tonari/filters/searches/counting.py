"""Count the allowed points within a radius of each query.

On the CPU, a search checks the rules for each point that it counts. On CUDA, the method depends on the number of points
within the radius. If there are few, the search lists them, and forbidden points are dropped from the lists. If there
are many, the search only counts them, and the number of forbidden points within the radius is counted separately and
subtracted. The forbidden points are the excluded points and, with groups="other", the query's own group, unless it is
large. If each query has its own mask, the shortest of three lists is used: of allowed points, of forbidden points, or
of points within the radius.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.core.process.progress import Progress, ProgressLike
from tonari.core.results.radius_neighbors import RadiusNeighbors, cut_lists
from tonari.core.rows.allowed import Allowed
from tonari.core.rows.listed import Listed
from tonari.core.rows.slices import in_room
from tonari.filters import tuning
from tonari.filters.excluded import distinct
from tonari.filters.listed import (
    ENTRY,
    LISTED_PAIR,
    PAIR,
    TABLE_PAIR,
    allowed_of,
    groups_of,
    kept_of,
    row_bytes,
)
from tonari.filters.looking import are_few_forbidden, are_short, is_listed_soon, near_some
from tonari.filters.rules import Ids, Rules
from tonari.filters.scope import Scope, on_host
from tonari.filters.shared import true_places


def count_allowed(
    scope: Scope, queries: Any, limits: npt.NDArray[Any], rules: Rules, progress: ProgressLike = None
) -> Ids:
    """Count the allowed points within the radius of each query; the result is in host memory.

    Parameters
    ----------
    scope : Scope
    queries : checked rows of shape (m, d)
    limits : array of shape (m,)
        See :func:`tonari.core.results.radius_neighbors.limits_for`.
    rules : Rules
    progress : None, bool or callable(done, total)
        Counts queries.
    """
    scope = scope.with_room(rules, pair=PAIR, results=8 * len(queries), m=len(queries))
    with Progress(progress, total=len(queries), seconds=None, label="neighbours", unit="query") as bar:
        counts = _count(scope, queries, limits, rules)
        bar.add(len(queries))
    return counts


def _count(scope: Scope, queries: Any, limits: npt.NDArray[Any], rules: Rules) -> Ids:
    if not scope.n or not len(queries):
        return np.zeros(len(queries), np.int64)
    if rules.shared is not None and (not scope.prepared or rules.grouped):
        return _among(scope, queries, limits, rules.without("shared"), None, rules.open_places())
    filtered, m = scope.allowed_by(rules), len(queries)
    if rules.shared is not None:
        return _by_mask(scope, queries, limits, rules, filtered)
    if not (rules.grouped or rules.by_pairs or rules.own):
        return scope.count(queries, limits)
    if not (_are_large(scope, queries, rules) or is_listed_soon(scope, queries, rules, filtered=filtered is not None)):
        if filtered is not None:
            return scope.count(queries, limits, filtered)
        scope = scope.ready(queries, limits)
        near = near_some(scope, queries, limits, np.arange(m))
        if not are_few_forbidden(scope, near, rules, m) and are_short(near, scope.n):
            return _by_lists(scope, queries, limits, rules)
    if rules.query_groups is not None and not rules.same:
        return _by_other_groups(scope, queries, limits, rules)
    return _by_group(scope, queries, limits, rules) if rules.grouped else _by_rows(scope, queries, limits, rules)


def _by_mask(scope: Scope, queries: Any, limits: npt.NDArray[Any], rules: Rules, filtered: Allowed | None) -> Ids:
    """Count the allowed points with one mask for all queries.

    This requires that all points are already prepared for searches.
    """
    inside = rules.without("shared")
    if filtered is not None and (len(queries) < tuning.UNCOUNTED_QUERIES or not rules.opens_few(tuning.COUNTED_FEW)):
        return scope.count(queries, limits, filtered)
    allowed = rules.open_places()
    if filtered is not None or 2 * len(allowed) <= scope.n:
        return _among(scope, queries, limits, inside, None, allowed)
    closed = np.ones(scope.n, bool)
    closed[allowed] = False
    return _count(scope, queries, limits, inside) - _among(scope, queries, limits, inside, None, true_places(closed))


def _by_lists(scope: Scope, queries: Any, limits: npt.NDArray[Any], rules: Rules) -> Ids:
    """List all points within the radius of each query, and count those of them that are allowed."""
    counts = np.zeros(len(queries), np.int64)
    for block in in_room(np.full(len(queries), PAIR * scope.n + row_bytes(queries)), scope.room):
        rows = np.arange(block.start, block.stop)
        chosen = queries if len(rows) == len(queries) else inputs.rows_at(queries, rows)
        counts[block] = _allowed(on_host(scope.within(chosen, limits[block], False)), rules, rows)
    return counts


def _allowed(lists: RadiusNeighbors, rules: Rules, rows: Ids) -> Ids:
    """Count the allowed points in the lists of the queries `rows`."""
    return np.diff(kept_of(lists, rules, rows)[1])


def _among(scope: Scope, queries: Any, limits: npt.NDArray[Any], rules: Rules, rows: Ids | None, ids: Ids) -> Ids:
    """Count the allowed points among copies of the points `ids`, for the queries `rows` (None: for all queries).

    The copies take at most half of the memory.
    """
    asked, here = (queries, limits) if rows is None else (inputs.rows_at(queries, rows), limits[rows])
    counts = np.zeros(len(asked), np.int64)
    for block in in_room(np.full(len(ids), scope.row_bytes), scope.copied_at_once):
        some = ids[block]
        counts += _count(scope.among(some), asked, here, rules.part(rows, some))
    return counts


def _are_large(scope: Scope, queries: Any, rules: Rules) -> bool:
    """Return whether to count the points of each group of queries separately: if the groups are few and all large."""
    if rules.query_groups is None or rules.point_groups is None:
        return False
    query_groups = rules.query_groups if rules.rows is None else rules.query_groups[rules.rows]
    points = rules.point_groups if rules.ids is None else rules.point_groups[rules.ids]
    groups, members = np.unique(query_groups, return_counts=True)
    if len(groups) > tuning.APART_GROUPS:
        return False
    own = np.array([np.count_nonzero(points == group) for group in groups])
    large = own * members >= tuning.COUNTED_LARGE
    if not rules.same:
        large = (own * tuning.COMPLEMENT_SHARE >= scope.n) & (members >= tuning.COMPLEMENT_QUERIES)
    if not large.all():
        return False
    sizes = own if rules.same else np.maximum(1, scope.n - own)
    pairs = zip(members.tolist(), sizes.tolist(), strict=True)
    return sum(scope.seconds(rows, 1, n=size) for rows, size in pairs) < scope.seconds(len(queries), 1)


def _by_group(scope: Scope, queries: Any, limits: npt.NDArray[Any], rules: Rules) -> Ids:
    """Count the points of each query's group that are within its limit.

    In a small group, all exact values are computed; a large group is searched.
    """
    order, begins, ends = groups_of(rules)
    inside, sizes = rules.without("query_groups", "point_groups"), ends - begins
    counts = np.zeros(len(queries), np.int64)
    keys, which, members = np.unique(begins, return_inverse=True, return_counts=True)
    longest = np.zeros(len(keys), np.int64)
    np.maximum.at(longest, which, sizes)
    large = members * longest >= tuning.COUNTED_LARGE
    for group in np.flatnonzero(large):
        rows = np.flatnonzero((which == group) & (sizes > 0))
        some = order[keys[group] : keys[group] + longest[group]]
        counts[rows] = _among(scope, queries, limits, inside, rows, some)
    small = np.flatnonzero(~large[which] & (sizes > 0))
    if not (inside.by_pairs or inside.own):
        counts[small] = _near(scope, queries, limits, small, Listed(order, begins[small], ends[small]))
        return counts
    for block in in_room(PAIR * sizes[small], scope.room // 2):
        rows = small[block]
        listed = allowed_of(inside, rows, Listed(order, begins[rows], ends[rows]))
        counts[rows] = _near(scope, queries, limits, rows, listed)
    return counts


def _by_other_groups(scope: Scope, queries: Any, limits: npt.NDArray[Any], rules: Rules) -> Ids:
    """Count, for each query, the points of groups other than the query's own.

    If the own group is large, a copy of the other points is searched. Otherwise all points are counted, and the count
    of the own group is subtracted.
    """
    order, begins, ends = groups_of(rules)
    inside = rules.without("query_groups", "point_groups")
    counts, rest = np.zeros(len(queries), np.int64), np.ones(len(queries), bool)
    large = (ends - begins) * tuning.COMPLEMENT_SHARE >= scope.n
    for first in distinct(begins[large]):
        rows = np.flatnonzero(large & (begins == first))
        if len(rows) >= tuning.COMPLEMENT_QUERIES:
            others = np.sort(np.concatenate([order[:first], order[ends[rows[0]] :]]))
            counts[rows] = _among(scope, queries, limits, inside, rows, others)
            rest[rows] = False
    rows = np.flatnonzero(rest)
    if len(rows):
        asked, here = (queries, limits) if len(rows) == len(queries) else (inputs.rows_at(queries, rows), limits[rows])
        scope = scope.ready(asked, here)
        everything = _count(scope, asked, here, inside.part(rows, None))
        own = dataclasses.replace(rules, same=True).part(rows, None)
        counts[rows] = everything - _by_group(scope, asked, here, own)
    return counts


def _by_rows(scope: Scope, queries: Any, limits: npt.NDArray[Any], rules: Rules) -> Ids:
    """Count the allowed points of each query by the shortest of three lists: allowed, forbidden, or near points."""
    n, counts = scope.n, np.zeros(len(queries), np.int64)
    least, forbidden = rules.forbidden_bounds(scope.room)
    few = tuning.COUNTED_FEW * (n - forbidden) < n
    some = np.flatnonzero(few)
    counts[some] = _listed(scope, queries, limits, rules, some, n - least[some], allowed=True)
    rest = np.flatnonzero(~few)
    if not len(rest):
        return counts
    ready = scope.ready(queries, limits)
    near = ready.count(queries if len(rest) == len(queries) else inputs.rows_at(queries, rest), limits[rest])
    found = near <= forbidden[rest]
    if rules.only_excluded and found.any():
        some = rest[found]
        values = scope.listed_seconds(len(some), int(forbidden[some].sum())) / (scope.threads or 1)
        found &= values > ready.seconds(len(some), 1)
    some = rest[~found]
    counts[some] = near[~found] - _listed(scope, queries, limits, rules, some, forbidden[some], allowed=False)
    found &= near > 0
    some = rest[found]
    for block in in_room(PAIR * near[found] + row_bytes(queries), scope.room):
        rows = some[block]
        lists = on_host(ready.within(inputs.rows_at(queries, rows), limits[rows], False))
        counts[rows] = _allowed(lists, rules, rows)
    return counts


def _listed(
    scope: Scope,
    queries: Any,
    limits: npt.NDArray[Any],
    rules: Rules,
    rows: Ids,
    lengths: Ids,
    *,
    allowed: bool,
) -> Ids:
    """Count the points within the radius in a list for each of the queries `rows`.

    The list has the allowed points, or the forbidden ones; `lengths` are upper bounds on the lengths of the lists.
    """
    counts, table = np.zeros(len(rows), np.int64), allowed or not rules.only_excluded
    room = min(scope.room // 2, (LISTED_PAIR + ENTRY) * tuning.LISTED_PAIRS)
    for block in in_room((TABLE_PAIR * scope.n * table) + (LISTED_PAIR + ENTRY) * lengths + 64, room):
        ids, bounds = rules.lists(rows[block], allowed=allowed)
        counts[block] = _near(scope, queries, limits, rows[block], Listed(ids, bounds[:-1], bounds[1:]))
    return counts


def _near(scope: Scope, queries: Any, limits: npt.NDArray[Any], rows: Ids, listed: Listed) -> Ids:
    """Count, for each of the queries `rows`, the points in its list `listed` that are within its radius."""
    counts = scope.count_listed(inputs.rows_at(queries, rows), limits[rows], listed)
    return _by_pieces(scope, queries, limits, rows, listed) if counts is None else counts


def _by_pieces(scope: Scope, queries: Any, limits: npt.NDArray[Any], rows: Ids, listed: Listed) -> Ids:
    """Count the listed points within the radius of each query; each list is searched in pieces, to bound the memory."""
    piece = tuning.COUNTED_PIECE
    number = -(-listed.lengths // piece)
    of = np.repeat(np.arange(len(rows)), number)
    first = listed.begins[of] + piece * (np.arange(len(of)) - np.repeat(np.cumsum(number) - number, number))
    last, counts = np.minimum(first + piece, listed.ends[of]), np.zeros(len(rows), np.int64)
    k = int((last - first).max(initial=1))
    for block in in_room(np.full(len(of), ENTRY * k + row_bytes(queries)), scope.room // 2):
        pieces = Listed(listed.numbers, first[block], last[block])
        np.add.at(counts, of[block], _inside(scope, queries, limits, rows[of[block]], pieces))
    return counts


def _inside(scope: Scope, queries: Any, limits: npt.NDArray[Any], rows: Ids, pieces: Listed) -> Ids:
    """Count the points within the radius in each piece of a list, by searching the piece for its nearest points.

    If a sample shows that few points are within the radius, each piece is searched for a few nearest points first, and
    searched again for all of its points if all those few are within the radius.
    """

    def among_nearest(k: int, some: Any) -> Ids:
        part = Listed(pieces.numbers, pieces.begins[some], pieces.ends[some])
        found = scope.listed(inputs.rows_at(queries, rows[some]), k, part)
        counts: Ids = np.diff(cut_lists(found, limits[rows[some]], descending=scope.metric.descending).indptr)
        return counts

    lengths, few = pieces.lengths, tuning.NEAR_FEW
    longest = int(lengths.max(initial=1))
    if longest <= tuning.NEAR_ALL or len(rows) < tuning.COUNTED_ONE_OF:
        return among_nearest(longest, np.arange(len(rows)))
    if among_nearest(longest, np.arange(0, len(rows), tuning.COUNTED_ONE_OF)).max() > few:
        return among_nearest(longest, np.arange(len(rows)))
    inside = among_nearest(few, np.arange(len(rows)))
    more = np.flatnonzero((inside == few) & (lengths > few))
    if len(more):
        inside[more] = among_nearest(longest, more)
    return inside
