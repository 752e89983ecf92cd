"""Searches with rules that allow few points for each query: compute the exact values of all allowed points."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.core.process.progress import Progress
from tonari.core.results.neighbors import Neighbors, index_dtype
from tonari.core.results.radius_neighbors import RadiusNeighbors
from tonari.core.rows.listed import Listed
from tonari.core.rows.slices import in_room
from tonari.core.trail import current
from tonari.filters import tuning
from tonari.filters.rules import Ids, Rules
from tonari.filters.scope import Scope

PAIR = 80  # bytes for each found pair of a query and a point, while rules are checked
TABLE_PAIR = 4  # bytes for each entry of a table of allowed points, including the work on the table
LISTED_PAIR = 24  # bytes for each allowed point in a list that is made from such a table
ENTRY = 32  # bytes for each entry of a neighbour list and of its copy


def nothing(m: int, k: int, scope: Scope, queries: Any, n: int) -> Neighbors:
    """Return a result for m queries in host memory, of shape (m, k), without any neighbour."""
    wide = any("float64" in str(rows.dtype) for rows in (queries, scope.rows))
    far = -np.inf if scope.metric.descending else np.inf
    distances = np.full((m, k), far, np.float64 if wide else np.float32)
    return Neighbors(distances, np.full((m, k), -1, index_dtype(n)))


def lists_bytes(m: int, k: int, scope: Scope, queries: Any) -> int:
    """Return the size in bytes of the result for m queries with k neighbours each."""
    distances, indices = nothing(0, 1, scope, queries, scope.n)
    return int(distances.itemsize + indices.itemsize) * m * k


def by_lists(
    scope: Scope,
    queries: Any,
    k: int,
    rules: Rules,
    found: Neighbors,
    bar: Progress,
    *,
    rows: Ids,
    listed: Listed,
) -> None:
    """Find the k nearest allowed points of some queries, each in a list of points, and write them to `found`.

    Parameters
    ----------
    rows : int64 array
        The queries to search for, as positions in `queries`.
    listed : Listed
        The lists; query ``rows[i]`` is compared with the allowed points of list i.
    """
    own, checked = rules.own_places(), rules.by_pairs or rules.shared is not None
    started = time.perf_counter()
    if not checked and len(rows) == len(queries) and bool((rows == np.arange(len(rows))).all()):
        scope.listed(queries, k, dataclasses.replace(listed, self_ids=own), found)
        bar.add(len(rows))
        _record("exact values of the points of each group", len(rows), started)
        return
    lengths = listed.lengths
    for block in in_room(PAIR * lengths * checked + ENTRY * k + row_bytes(queries), scope.room):
        some = rows[block]
        here = Listed(listed.numbers, listed.begins[block], listed.ends[block], None if own is None else own[some])
        part = scope.listed(inputs.rows_at(queries, some), k, allowed_of(rules, some, here) if checked else here)
        for mine, new in zip(found, part, strict=True):
            mine[some] = new
        bar.add(len(some))
    _record("exact values of the points of each group", len(rows), started)


def by_table(scope: Scope, queries: Any, k: int, rules: Rules, found: Neighbors, bar: Progress, rows: Ids) -> None:
    """Find the k nearest allowed points of the queries `rows`, by computing the exact values of all allowed points.

    The result is written to `found`. The lists of allowed points are made from a table: a mask with a row for each
    query.
    """
    least, _ = rules.forbidden_bounds(scope.room)
    each, started = table_bytes(scope.n, scope.n - least[rows]) + ENTRY * k + row_bytes(queries), time.perf_counter()
    for block in in_room(each, scope.room):
        some = rows[block]
        ids, bounds = rules.lists(some, allowed=True)
        part = scope.listed(inputs.rows_at(queries, some), k, Listed(ids, bounds[:-1], bounds[1:]))
        for mine, new in zip(found, part, strict=True):
            mine[some] = new
        bar.add(len(some))
    _record("exact values of all allowed points", len(rows), started)


def _record(name: str, rows: int, started: float) -> None:
    """Add an attempt that has resolved all of its rows to the record of the call.

    The time is correct on CUDA too, because the results are in host memory already.
    """
    record = current.get()
    if record is not None:
        record.tried(name, rows, rows, time.perf_counter() - started)


def allowed_of(rules: Rules, rows: Ids, listed: Listed) -> Listed:
    """Return the lists of the queries `rows` without the points that the rules forbid."""
    lengths = listed.lengths
    ahead = np.cumsum(lengths) - lengths
    asked_by = np.repeat(np.arange(len(rows)), lengths)
    ids = listed.numbers[np.arange(len(asked_by)) + np.repeat(listed.begins - ahead, lengths)]
    allowed = rules.allowed(rows[asked_by], ids)
    bounds = np.concatenate([[0], np.cumsum(np.bincount(asked_by[allowed], minlength=len(rows)))])
    return Listed(ids[allowed], bounds[:-1], bounds[1:])


def kept_of(found: RadiusNeighbors, rules: Rules, rows: Ids) -> tuple[Ids, Ids]:
    """Return, for the queries `rows`, the entries of a radius search's result that the rules allow.

    Returns
    -------
    places, bounds : int64 arrays
        The allowed entries of query ``rows[i]`` are ``places[bounds[i]:bounds[i + 1]]``, ascending indices into
        `found.indices`.
    """
    lengths, allowed = np.diff(found.indptr), np.empty(len(found.indices), bool)
    for block in in_room(lengths, tuning.TABLE_BLOCK):
        entries = slice(found.indptr[block.start], found.indptr[block.stop])
        allowed[entries] = rules.allowed(np.repeat(rows[block], lengths[block]), found.indices[entries])
    places = np.flatnonzero(allowed)
    return places, np.searchsorted(places, found.indptr)


def table_bytes(n: int, listed: Ids) -> Ids:
    """Return the bytes for each query: a table row for n points, and a list of `listed` points made from it."""
    return TABLE_PAIR * n + LISTED_PAIR * listed


def row_bytes(queries: Any) -> int:
    """Return the bytes of a copied query, with an allowance for other arrays that have one entry per query."""
    return int(queries.shape[1] * queries.itemsize) + 64


def groups_of(rules: Rules) -> tuple[Ids, Ids, Ids]:
    """Return the positions of the points ordered by group, and where each query's group begins and ends there."""
    points, asked = _groups(rules)
    order = np.argsort(points, kind="stable")
    groups = points[order]
    return order, np.searchsorted(groups, asked, "left"), np.searchsorted(groups, asked, "right")


def group_sizes(rules: Rules) -> Ids:
    """Return the number of points in each query's group."""
    points, asked = _groups(rules)
    if points.dtype != np.uint16:
        ordered = np.sort(points)
        return np.searchsorted(ordered, asked, "right") - np.searchsorted(ordered, asked, "left")
    sizes = np.append(np.bincount(points), 0)
    # A group that no point has is empty: its id is clipped to the last entry, an appended 0.
    return np.asarray(sizes.take(asked, mode="clip"), np.int64)


def _groups(rules: Rules) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the group of each point and the group of each query, for the points and queries of the current search."""
    assert rules.query_groups is not None
    assert rules.point_groups is not None
    points = rules.point_groups if rules.ids is None else rules.point_groups[rules.ids]
    return _short(points, rules.query_groups if rules.rows is None else rules.query_groups[rules.rows])


def _short(points: npt.NDArray[Any], asked: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Convert groups to 16 bits if all groups of points fit, since NumPy sorts 16-bit numbers ten times as fast."""
    least, most = (int(points.min()), int(points.max())) if len(points) else (0, 0)
    if most - least >= 1 << 16:
        return points, asked
    none = (asked < least) | (asked > most)
    return (points - least).astype(np.uint16), np.where(none, 1 << 16, asked - least).astype(np.uint32)
