"""The k nearest allowed points: the choice between copying the allowed points, searching by group, and dropping."""

from __future__ import annotations

from typing import Any

import numpy as np

from tonari import inputs
from tonari.core.process.progress import Progress, ProgressLike
from tonari.core.results.neighbors import Neighbors, index_dtype
from tonari.core.rows.listed import Listed
from tonari.core.rows.slices import cut
from tonari.core.trail import current, decided
from tonari.filters import tuning
from tonari.filters.dropping import by_dropping, dropping_seconds, first_guess
from tonari.filters.excluded import distinct
from tonari.filters.listed import ENTRY, LISTED_PAIR, TABLE_PAIR, by_lists, groups_of, lists_bytes, nothing
from tonari.filters.rules import Ids, Rules
from tonari.filters.scope import Scope, on_host


def nearest_allowed(scope: Scope, queries: Any, k: int, rules: Rules, progress: ProgressLike = None) -> Neighbors:
    """Find the k nearest allowed points of each query, by the method that is expected to be fastest.

    Parameters
    ----------
    scope : Scope
    queries : checked rows of shape (m, d)
    k : int
    rules : Rules
    progress : None, bool or callable(done, total)
        Counts queries, or pairs if a single search suffices.

    Returns
    -------
    Neighbors of shape (m, k)
        Missing entries, of queries that may find fewer than k points, are -1 and inf (-inf for similarities).
    """
    only = not (rules.by_pairs or rules.grouped or rules.own)
    if only and rules.shared is not None:
        # if the points are on CUDA, the row numbers of the allowed points are computed there, not copied from the host
        host = isinstance(scope.rows, np.ndarray) or rules.ids is not None
        ids = rules.open_places() if host else rules.shared.places_for(scope.rows.device)
        if len(ids) and not _keeps_all(scope, len(queries), k, rules, len(ids)):
            decided("rules", f"a copy of the {len(ids):,} allowed points is searched, of {scope.n:,}")
            places = _sent(ids, scope.rows)
            near = scope.among(places, k, len(queries)).nearest(queries, min(k, len(ids)), progress)
            return _renumbered(near, places, k, scope)
    results = (1 + (rules.query_groups is not None)) * lists_bytes(len(queries), k, scope, queries)
    scope = scope.with_room(rules, pair=TABLE_PAIR + LISTED_PAIR, results=results, k=k, m=len(queries))
    found = nothing(len(queries), k, scope, queries, scope.n)
    with Progress(progress, total=len(queries), seconds=None, label="neighbours", unit="query") as bar:
        fill(scope, queries, k, rules, found, bar)
    return found


def fill(scope: Scope, queries: Any, k: int, rules: Rules, found: Neighbors, bar: Progress) -> None:
    """Write the k nearest allowed points of each query to `found`, whose neighbours are all missing before."""
    if not len(queries):
        return
    if not scope.n:
        _nothing_allowed(len(queries), bar)
    elif rules.shared is not None:
        ids = rules.open_places()
        if not _keeps_all(scope, len(queries), k, rules, len(ids)):
            decided("rules", f"a copy of the {len(ids):,} points that the mask allows is searched, of {scope.n:,}")
            _among(scope, queries, k, rules.without("shared"), found, bar, None, ids)
        else:
            by_dropping(scope, queries, k, rules, found, bar)
    elif rules.grouped:
        _by_group(scope, queries, k, rules, found, bar)
    elif rules.query_groups is not None and _is_complement_faster(scope, len(queries), k, rules):
        decided("rules", "the points of other groups are copied and searched for each group of queries")
        _by_complement(scope, queries, k, rules, found, bar)
    elif rules.by_pairs or rules.own:
        by_dropping(scope, queries, k, rules, found, bar)
    else:
        near = on_host(scope.nearest(queries, min(k, scope.n), False))
        for mine, new in zip(found, near, strict=True):
            mine[:, : new.shape[1]] = new
        bar.add(len(queries))


def _among(
    scope: Scope, queries: Any, k: int, rules: Rules, found: Neighbors, bar: Progress, rows: Ids | None, ids: Ids
) -> None:
    """Search a copy of the points `ids`, and write the results to `found`.

    The queries are `rows`, or all if it is None. The results have the row numbers of the original points.
    """
    asked = queries if rows is None else inputs.rows_at(queries, rows)
    if not len(ids):
        _nothing_allowed(len(asked), bar)
        return
    inner = scope.among(ids, k, len(asked))
    part = found if rows is None else nothing(len(asked), k, inner, queries, scope.n)
    fill(inner, asked, k, rules.part(rows, ids), part, bar)
    for block in cut(len(asked), max(1, scope.room // (ENTRY * k))):
        found_here = part.indices[block]
        found_here[...] = np.where(found_here >= 0, ids[np.maximum(found_here, 0)], -1)
    if rows is not None:
        found.distances[rows], found.indices[rows] = part


def _nothing_allowed(rows: int, bar: Progress) -> None:
    """Add queries without any allowed point, which need no search, to the progress and the record."""
    bar.add(rows)
    record = current.get()
    if record is not None:
        record.tried("no point is allowed", rows, rows)


def _by_group(scope: Scope, queries: Any, k: int, rules: Rules, found: Neighbors, bar: Progress) -> None:
    """Find the nearest points in each query's group.

    In a small group, all exact values are computed; a large group is copied and searched.
    """
    order, begins, ends = groups_of(rules)
    inside = rules.without("query_groups", "point_groups")
    sizes = ends - begins
    large = np.zeros(len(queries), bool)
    keys, which, members = np.unique(begins, return_inverse=True, return_counts=True)
    pairs = np.zeros(len(keys), np.int64)
    np.maximum.at(pairs, which, sizes)
    for group in np.flatnonzero(members * pairs >= tuning.LARGE_PAIRS):
        size, asked = int(pairs[group]), int(members[group])
        values = scope.listed_seconds(asked, asked * size) / (scope.threads or 1)
        wanted = k + int(rules.own)
        if scope.seconds(asked, wanted, n=size) < values and scope.can_copy(asked, wanted, size):
            rows = np.flatnonzero((which == group) & (sizes > 0))
            large[rows] = True
            _among(scope, queries, k, inside, found, bar, rows, order[keys[group] : keys[group] + size])
    if large.any():
        decided("rules", "large groups are copied, each searched by itself; small ones by exact values")
    rows = np.flatnonzero(~large)
    if len(rows):
        listed = Listed(order, begins[rows], ends[rows])
        by_lists(scope, queries, k, inside, found, bar, rows=rows, listed=listed)


def _is_complement_faster(scope: Scope, m: int, k: int, rules: Rules) -> bool:
    """Return whether copying and searching all other groups, for each group of queries, is faster than dropping."""
    sizes, asked = _own_groups(rules)
    if len(asked) > m // 8 or scope.n <= 4096:
        return False
    pairs = zip(sizes.tolist(), asked.tolist(), strict=True)
    if not scope.can_copy(m, k, scope.n - int(sizes.min())):
        return False
    apart = sum(scope.seconds(rows, k, n=max(1, scope.n - size)) for size, rows in pairs)
    # the nearest points are often those of the query's own group, so a list needs as many entries as the group has,
    # plus k
    together = dropping_seconds(scope, m, min(scope.n, k + int(sizes.max())))
    return apart < together


def _own_groups(rules: Rules) -> tuple[Ids, Ids]:
    """Return the size and the number of queries of each group that has queries."""
    assert rules.query_groups is not None
    _order, begins, ends = groups_of(rules)
    asked = rules.query_groups if rules.rows is None else rules.query_groups[rules.rows]
    _, first, counts = np.unique(asked, return_index=True, return_counts=True)
    return (ends - begins)[first], counts


def _by_complement(scope: Scope, queries: Any, k: int, rules: Rules, found: Neighbors, bar: Progress) -> None:
    order, begins, ends = groups_of(rules)
    assert rules.query_groups is not None
    asked = rules.query_groups if rules.rows is None else rules.query_groups[rules.rows]
    inside = rules.without("query_groups", "point_groups")
    for group in distinct(asked):
        rows = np.flatnonzero(asked == group)
        others = np.ones(scope.n, bool)
        others[order[begins[rows[0]] : ends[rows[0]]]] = False
        _among(scope, queries, k, inside, found, bar, rows, np.flatnonzero(others))


def _keeps_all(scope: Scope, m: int, k: int, rules: Rules, allowed: int) -> bool:
    """Return whether to search all points and drop the forbidden ones.

    This pays off if all points are prepared already, and few are forbidden.
    """
    if not scope.prepared or not allowed:
        return False
    if rules.grouped or rules.query_groups is not None:
        return False
    size = int(first_guess(k, scope.n, np.array([scope.n - allowed]))[0])
    return size < scope.n and scope.seconds(m, size) < scope.seconds(m, k, n=allowed)


def _sent(ids: Any, rows: Any) -> Any:
    """Return positions as an array on the device of the rows; the copy to the device may still be running."""
    if isinstance(rows, np.ndarray) or not isinstance(ids, np.ndarray):
        return ids
    from tonari.cuda.devices import sent_to

    return sent_to(ids, rows.device)


def _renumbered(near: Neighbors, ids: Any, k: int, scope: Scope) -> Neighbors:
    """Convert the results of a search among the points `ids` to row numbers of all points, padded to k columns."""
    short, far = k - near.indices.shape[1], -np.inf if scope.metric.descending else np.inf
    if isinstance(near.indices, np.ndarray):
        indices = np.asarray(inputs.to_host(ids))[near.indices].astype(index_dtype(scope.n))
        if scope.metric.missing:
            indices[near.indices < 0] = -1
        if not short:
            return Neighbors(near.distances, indices)
        wide = ((0, 0), (0, short))
        return Neighbors(np.pad(near.distances, wide, constant_values=far), np.pad(indices, wide, constant_values=-1))
    import torch

    numbers = ids.to(near.indices.dtype).index_select(0, near.indices.reshape(-1)).view(near.indices.shape)
    if not short:
        return Neighbors(near.distances, numbers)
    pad = torch.nn.functional.pad
    return Neighbors(pad(near.distances, (0, short), value=far), pad(numbers, (0, short), value=-1))
