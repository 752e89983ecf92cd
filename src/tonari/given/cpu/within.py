"""The points within a radius by given distances, block by block."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core.process.progress import Progress, ProgressLike
from tonari.core.results.neighbors import index_dtype
from tonari.core.results.radius_neighbors import RadiusNeighbors
from tonari.core.slices import cut
from tonari.given.plan import GivenPlan
from tonari.given.values import Values, strip, without_own

Array = npt.NDArray[Any]


def within(
    values: Values,
    limits: Array,
    plan: GivenPlan,
    *,
    own: bool = False,
    symmetric: bool = False,
    progress: ProgressLike = None,
) -> RadiusNeighbors:
    """Find all points whose distance is at most the limit of the query; see :func:`tonari.given.cpu.nearest.nearest`.

    With `symmetric`, all limits must be equal.
    """
    parts = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, values.dtype))]
    with Progress(progress, total=values.m, seconds=None, label="neighbours", unit="query") as bar:
        for rows in cut(values.m, plan.rows):
            columns = slice(rows.start if symmetric else 0, values.n)
            block = strip(values, rows, columns, plan.columns, own=own)
            if own:
                without_own(block, rows, columns)
            at, to = np.nonzero(block <= limits[rows, None])
            parts.append((at + rows.start, to + columns.start, block[at, to]))
            if symmetric:
                later = to >= rows.stop - rows.start
                parts.append((to[later] + columns.start, at[later] + rows.start, block[at[later], to[later]]))
            bar.add(rows.stop - rows.start)
    queries, points, distances = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.lexsort((points, distances, queries))
    counts = np.bincount(queries, minlength=values.m)
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])
    return RadiusNeighbors(indptr, points[order].astype(index_dtype(values.n)), distances[order])


def count(values: Values, limits: Array, plan: GivenPlan, *, progress: ProgressLike = None) -> npt.NDArray[np.int64]:
    """Count the points at a distance of at most the limit of each query."""
    counts = np.zeros(values.m, np.int64)
    with Progress(progress, total=values.m, seconds=None, label="neighbours", unit="query") as bar:
        for rows in cut(values.m, plan.rows):
            near = strip(values, rows, slice(0, values.n), plan.columns, own=False)
            counts[rows] = (near <= limits[rows, None]).sum(axis=1)
            bar.add(rows.stop - rows.start)
    return counts
