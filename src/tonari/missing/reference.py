"""Reference implementation of searches among rows with missing values: all distances, sorted stably."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core.results.neighbors import Neighbors, value_dtype
from tonari.inputs import as_floats
from tonari.metrics.definitions import Float64, nan_euclidean
from tonari.metrics.reference import returned


def pairwise(queries: npt.NDArray[Any], points: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Compute the returned distance of each query and each point; NaN for rows without a common column.

    >>> pairwise(np.array([[0.0, np.nan], [np.nan, 1.0]]), np.array([[3.0, 4.0]]))
    array([[4.24264069],
           [4.24264069]])
    """

    def columns_first(rows: npt.NDArray[Any]) -> Float64:
        return np.ascontiguousarray(as_floats(rows).T, np.float64)

    values = nan_euclidean(columns_first(queries)[:, :, None], columns_first(points)[:, None, :])
    return returned(values, value_dtype(queries.dtype, points.dtype))


def brute(queries: npt.NDArray[Any], points: npt.NDArray[Any], k: int, *, own: bool = False) -> Neighbors:
    """Find the k nearest points of each query; with `own`, query i is point i and is left out of its own list.

    Lists of fewer than k points end with -1 at inf.

    >>> brute(np.array([[0.0, np.nan]]), np.array([[np.nan, 1.0], [2.0, 1.0]]), 2).indices.tolist()
    [[1, -1]]
    """
    table = pairwise(queries, points)
    found = Neighbors.empty(len(queries), k, len(points), table.dtype)
    found.distances[:], found.indices[:] = np.inf, -1
    for i, row in enumerate(table):
        near = sorted((j for j in np.flatnonzero(~np.isnan(row)) if not (own and i == j)), key=lambda j: (row[j], j))
        near = near[:k]
        found.distances[i, : len(near)], found.indices[i, : len(near)] = row[near], near
    return found
