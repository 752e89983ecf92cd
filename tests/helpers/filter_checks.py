"""Filters as a mask of shape (m, n), and the expected answers among allowed points, computed in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tests.helpers.checks import Array
from tonari.core.results.neighbors import Neighbors
from tonari.core.results.radius_neighbors import RadiusNeighbors
from tonari.filters.excluded import Excluded
from tonari.metrics import get_metric
from tonari.metrics.reference import brute

Mask = npt.NDArray[np.bool_]


def nearest_allowed(queries: Array, points: Array, k: int, allowed: Mask, metric: str = "euclidean") -> Neighbors:
    """Return the k nearest allowed points of each query, from lists of all points in order."""
    everything = brute(queries, points, len(points), metric)
    far = -np.inf if get_metric(metric).descending else np.inf
    distances = np.full((len(queries), k), far, everything.distances.dtype)
    indices = np.full((len(queries), k), -1, everything.indices.dtype)
    for i, (values, ids) in enumerate(zip(*everything, strict=True)):
        kept = allowed[i, ids]
        count = min(k, int(kept.sum()))
        distances[i, :count], indices[i, :count] = values[kept][:count], ids[kept][:count]
    return Neighbors(distances, indices)


def excluded_of(pairs: Array, m: int, n: int) -> Excluded:
    """Return lists of excluded points that have these pairs, as query * n + point, in descending order and twice."""
    rows, ids = np.divmod(np.repeat(np.sort(pairs)[::-1], 2), n)
    order = np.argsort(rows, kind="stable")
    return Excluded(np.searchsorted(rows[order], np.arange(m + 1)), ids[order], n)


def cut(found: RadiusNeighbors, allowed: Mask) -> RadiusNeighbors:
    """Return only the allowed points of radius lists."""
    rows = np.repeat(np.arange(len(allowed)), np.diff(found.indptr))
    kept = allowed[rows, found.indices]
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows[kept], minlength=len(allowed)))])
    return RadiusNeighbors(indptr, found.indices[kept], found.distances[kept])


def assert_equal(found: Any, truth: Any) -> None:
    """Check that two answers have the same dtypes, shapes and bytes."""
    for name, mine, right in zip(truth._fields, found, truth, strict=True):
        assert mine.dtype == right.dtype, f"{name}: {mine.dtype}, not {right.dtype}"
        assert mine.shape == right.shape, f"{name}: shape {mine.shape}, not {right.shape}"
        wrong = np.argwhere(mine != right)
        assert not len(wrong), f"{name} differs at {wrong[0]}: {mine[tuple(wrong[0])]}, not {right[tuple(wrong[0])]}"
        assert mine.tobytes() == right.tobytes(), name
