"""Searches in lists of points, one for each query, among rows with missing values: the k nearest, or a count."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core.results.neighbors import Neighbors, value_dtype
from tonari.core.rows.listed import Listed
from tonari.core.rows.slices import cut
from tonari.metrics.reference import returned
from tonari.missing import tuning
from tonari.missing.cpu.values import pair_values

Ids = npt.NDArray[np.int64]


def search_listed(
    queries: npt.NDArray[Any],
    points: npt.NDArray[Any],
    k: int,
    metric: str,
    listed: Listed,
    *,
    threads: int | None = None,
    found: Neighbors | None = None,
) -> Neighbors:
    """Find the k nearest points in each query's list; see :meth:`tonari.core.method.SearchMethod.search_listed`.

    >>> rows = np.array([[0.0, np.nan], [1.0, 2.0], [np.nan, 4.0]])
    >>> listed = Listed(np.array([1, 2]), np.array([0]), np.array([2]))
    >>> search_listed(rows[:1], rows, 2, "nan_euclidean", listed).indices
    array([[ 1, -1]], dtype=int32)
    """
    if found is None:
        found = Neighbors.empty(len(queries), k, len(points), queries.dtype, points.dtype)
    found.distances[:], found.indices[:] = np.inf, -1
    for rows in cut(len(queries), max(1, tuning.PAIRS_HELD // max(1, int(listed.lengths.max(initial=0))))):
        of, ids, values = _pairs(queries, points, listed, rows, threads)
        there = ~np.isnan(values)
        of, ids, values = of[there], ids[there], values[there]
        order = np.lexsort((ids, values, of))
        of, ids, values = of[order], ids[order], values[order]
        rank = np.arange(len(of)) - np.searchsorted(of, of)
        first = rank < k
        found.distances[of[first], rank[first]] = values[first]
        found.indices[of[first], rank[first]] = ids[first]
    return found


def count_listed(
    queries: npt.NDArray[Any],
    points: npt.NDArray[Any],
    limits: npt.NDArray[Any],
    metric: str,
    listed: Listed,
    *,
    threads: int | None = None,
) -> npt.NDArray[np.int64]:
    """Count the points in each query's list whose distance is within the query's limit."""
    counts = np.zeros(len(queries), np.int64)
    for rows in cut(len(queries), max(1, tuning.PAIRS_HELD // max(1, int(listed.lengths.max(initial=0))))):
        of, _, values = _pairs(queries, points, listed, rows, threads)
        counts += np.bincount(of[values <= limits[of]], minlength=len(queries))
    return counts


def _pairs(
    queries: npt.NDArray[Any], points: npt.NDArray[Any], listed: Listed, rows: slice, threads: int | None
) -> tuple[Ids, Ids, npt.NDArray[Any]]:
    """Return the query, the listed point and the distance of each pair, for a slice of the queries.

    Pairs of a query and itself are left out.
    """
    lengths = listed.lengths[rows]
    of = np.repeat(np.arange(rows.start, rows.stop), lengths)
    ahead = np.cumsum(lengths) - lengths
    ids = listed.numbers[np.arange(len(of)) + np.repeat(listed.begins[rows] - ahead, lengths)]
    if listed.self_ids is not None:
        others = ids != listed.self_ids[of]
        of, ids = of[others], ids[others]
    values = pair_values(queries, points, of, ids, threads)
    return of, ids, returned(values, value_dtype(queries.dtype, points.dtype))
