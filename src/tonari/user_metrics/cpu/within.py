"""The points within a radius by the caller's own distances, found or counted block by block."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core.process.progress import Progress, ProgressLike
from tonari.core.results.neighbors import index_dtype
from tonari.core.results.radius_neighbors import RadiusNeighbors
from tonari.core.rows.slices import cut
from tonari.user_metrics.plan import GivenPlan
from tonari.user_metrics.values import Allowed, Values, strip, without_own

Array = npt.NDArray[Any]


def within(
    values: Values,
    limits: Array,
    plan: GivenPlan,
    *,
    own: bool = False,
    symmetric: bool = False,
    later: bool = False,
    allowed: Allowed | None = None,
    progress: ProgressLike = None,
) -> RadiusNeighbors:
    """Find all points whose distance is at most the query's limit; see :func:`tonari.user_metrics.cpu.nearest.nearest`.

    With `symmetric` or `later`, all limits must be equal. With `own` and `later`, each row finds only later rows.
    """
    parts = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, values.dtype))]

    def keep(queries: npt.NDArray[np.int64], points: npt.NDArray[np.int64], distances: Array) -> None:
        if allowed is not None:
            passed = allowed(queries, points)
            queries, points, distances = queries[passed], points[passed], distances[passed]
        parts.append((queries, points, distances))

    with Progress(progress, total=values.m, seconds=None, label="neighbours", unit="query") as bar:
        for rows in cut(values.m, plan.rows):
            columns = slice(rows.start if symmetric or later else 0, values.n)
            block = strip(values, rows, columns, plan.columns, own=own)
            if own:
                without_own(block, rows, columns)
            at, to = np.nonzero(block <= limits[rows, None])
            distances, at, to = block[at, to], at + rows.start, to + columns.start
            if later:
                after = to > at
                keep(at[after], to[after], distances[after])
            else:
                keep(at, to, distances)
            if symmetric:
                after = to >= rows.stop
                keep(to[after], at[after], distances[after])
            bar.add(rows.stop - rows.start)
    queries, points, distances = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.lexsort((points, distances, queries))
    counts = np.bincount(queries, minlength=values.m)
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])
    return RadiusNeighbors(indptr, points[order].astype(index_dtype(values.n)), distances[order])


def count(
    values: Values, limits: Array, plan: GivenPlan, *, allowed: Allowed | None = None, progress: ProgressLike = None
) -> npt.NDArray[np.int64]:
    """Count the points whose distance is at most the limit of the query, for each query."""
    counts, columns = np.zeros(values.m, np.int64), slice(0, values.n)
    with Progress(progress, total=values.m, seconds=None, label="neighbours", unit="query") as bar:
        for rows in cut(values.m, plan.rows):
            near = strip(values, rows, columns, plan.columns, own=False) <= limits[rows, None]
            if allowed is not None:
                near &= allowed(np.arange(rows.start, rows.stop)[:, None], np.arange(values.n)[None])
            counts[rows] = near.sum(axis=1)
            bar.add(rows.stop - rows.start)
    return counts
