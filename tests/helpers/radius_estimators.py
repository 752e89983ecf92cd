"""Data and radii for comparing estimators with a radius with scikit-learn's; radii equal some distances exactly."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.helpers import checks
from tests.helpers.radius_checks import all_values
from tonari.core.results.radius_neighbors import RadiusNeighbors, limits_for
from tonari.metrics.reference import brute_within


def grid(n: int, d: int, seed: int = 0) -> checks.Array:
    """Make rows of small whole numbers: distances are exact everywhere, and many are equal."""
    return np.random.default_rng(seed).integers(5, size=(n, d)).astype(np.float64)


def grid_offset_1e4(n: int, d: int, seed: int = 0) -> checks.Array:
    """Make the rows of :func:`grid`, 1e4 from the origin."""
    return grid(n, d, seed) + 1e4


def grids_far_apart(n: int, d: int, seed: int = 0) -> checks.Array:
    """Make small grids whose centres are 1e4 apart."""
    rows = grid(n, d, seed)
    rows[:, 0] += 1e4 * np.random.default_rng(seed + 1).integers(6, size=n)
    return rows


EXACT = {"grid": grid, "offset": grid_offset_1e4, "far apart": grids_far_apart, "equal": checks.all_equal}
HOSTILE = {
    "gaussian": checks.gaussian,
    "duplicates": checks.duplicates,
    "offset": checks.offset,
    "far clusters": checks.tight_far_clusters,
    "equal": checks.all_equal,
}
NAMES = {"minkowski": "euclidean", "manhattan": "l1", "chebyshev": "linf"}  # tonari's


def radius_on_a_value(points: checks.Array, metric: str, share: float = 0.1) -> float:
    """Return a distance between two rows that about this share of all distances does not exceed."""
    values = np.sort(all_values(points, points, metric).distances)
    return float(values[int(share * (len(values) - 1))])


def lists_of(
    queries: checks.Array, points: checks.Array, radius: float, metric: str, *, own: bool = False
) -> RadiusNeighbors:
    """Return the radius lists of the reference; with `own`, lists exclude each row itself."""
    dtype = np.float64 if np.float64 in (queries.dtype, points.dtype) else np.float32
    limits = limits_for(radius, len(queries), dtype, closed=True, descending=False)
    return brute_within(queries, points, limits, metric, self_ids=np.arange(len(points)) if own else None)


def parts_of(found: RadiusNeighbors, entries: Any) -> list[Any]:
    """Divide an array into the parts that belong to each list."""
    return np.split(entries, found.indptr[1:-1])


def peak_of(call: Callable[[], object]) -> int:
    """Return the peak number of bytes that Python and NumPy allocate during a call."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
