"""Everything within a radius that a query may find."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core.neighbors import index_dtype
from tonari.core.progress import Progress, ProgressLike
from tonari.core.radius_neighbors import RadiusNeighbors, cut_lists
from tonari.filters.engine import Engine, on_host, rows_at
from tonari.filters.listed import by_lists, groups_of, nothing
from tonari.filters.rules import Ids, Rules, distinct
from tonari.metrics import get_metric

_ENTRIES = 1 << 22  # of lists of whole groups that are held at a time
_LARGE = 4096  # points of a group that is searched by itself

Part = tuple[Ids, RadiusNeighbors]  # queries, and what they find


def within_allowed(
    engine: Engine, queries: Any, limits: npt.NDArray[Any], rules: Rules, progress: ProgressLike = None
) -> RadiusNeighbors:
    """Find all points within the limits that each query may find; in host memory.

    Parameters
    ----------
    engine : Engine
    queries : checked rows of shape (m, d)
    limits : array of shape (m,)
        See :func:`tonari.core.radius_neighbors.limits_for`.
    rules : Rules
    progress : None, bool or callable(done, total)
        Counts queries.
    """
    with Progress(progress, total=len(queries), seconds=None, label="neighbours", unit="query") as bar:
        return _within(engine, queries, limits, rules, bar)


def _within(engine: Engine, queries: Any, limits: npt.NDArray[Any], rules: Rules, bar: Progress) -> RadiusNeighbors:
    if rules.shared is not None and (engine.held_within is None or rules.grouped):
        return _among(engine, queries, limits, rules.without("shared"), bar, None, rules.open_places())
    if rules.grouped:
        return _by_group(engine, queries, limits, rules, bar)
    if not engine.n:
        bar.add(len(queries))
        return _of_parts([], engine, queries)
    found = RadiusNeighbors(*on_host(engine.within(queries, limits, False)))
    bar.add(len(queries))
    if not (rules.by_pairs or rules.own or rules.shared is not None):
        return found
    kept = rules.allowed(np.repeat(np.arange(len(queries)), np.diff(found.indptr)), found.indices)
    ahead = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept)])
    return RadiusNeighbors(ahead[found.indptr], found.indices[kept], found.distances[kept])


def _among(
    engine: Engine, queries: Any, limits: npt.NDArray[Any], rules: Rules, bar: Progress, rows: Ids | None, ids: Ids
) -> RadiusNeighbors:
    """Search a copy of some points for some queries; found are numbers of all points."""
    asked = queries if rows is None else rows_at(queries, rows)
    if not len(ids):
        bar.add(len(asked))
        return _of_parts([], engine, asked)
    found = _within(engine.among(ids), asked, limits if rows is None else limits[rows], rules.part(rows, ids), bar)
    return RadiusNeighbors(found.indptr, ids[found.indices].astype(index_dtype(engine.n)), found.distances)


def _by_group(engine: Engine, queries: Any, limits: npt.NDArray[Any], rules: Rules, bar: Progress) -> RadiusNeighbors:
    """Compute all values within small groups, and search each large group by itself."""
    order, begins, ends = groups_of(rules)
    inside, sizes, parts = rules.without("query_groups", "point_groups"), ends - begins, list[Part]()
    for first in distinct(begins[sizes > _LARGE]):
        rows = np.flatnonzero((begins == first) & (sizes > 0))
        members = order[first : first + sizes[rows[0]]]
        parts.append((rows, _among(engine, queries, limits, inside, bar, rows, members)))
    small = np.flatnonzero(sizes <= _LARGE)
    small = small[np.argsort(sizes[small], kind="stable")]
    at, descending = 0, get_metric(engine.metric).descending
    while at < len(small):
        size = max(16, 2 * int(sizes[small[at]]))
        stop = min(int(np.searchsorted(sizes[small], size, "right")), at + max(1, _ENTRIES // size))
        rows, k = np.sort(small[at:stop]), max(1, int(sizes[small[stop - 1]]))
        found = nothing(len(rows), k, engine, queries, engine.n)
        lists = {"order": order, "begins": begins[rows], "ends": ends[rows]}
        everyone = np.arange(len(rows))
        by_lists(engine, rows_at(queries, rows), k, inside.part(rows, None), found, bar, rows=everyone, **lists)
        parts.append((rows, cut_lists(found, limits[rows], descending=descending)))
        at = stop
    return _of_parts(parts, engine, queries)


def _of_parts(parts: list[Part], engine: Engine, queries: Any) -> RadiusNeighbors:
    """Join what was found for some of the queries each, in the order of the queries."""
    m = len(queries)
    empty = nothing(0, 1, engine, queries, engine.n)
    counts = np.zeros(m, np.int64)
    for rows, found in parts:
        counts[rows] = np.diff(found.indptr)
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    total = int(indptr[-1])
    joined = RadiusNeighbors(indptr, np.empty(total, empty.indices.dtype), np.empty(total, empty.distances.dtype))
    for rows, found in parts:
        sizes = np.diff(found.indptr)
        places = np.repeat(indptr[rows] - found.indptr[:-1], sizes) + np.arange(len(found.indices))
        joined.indices[places], joined.distances[places] = found.indices, found.distances
    return joined
