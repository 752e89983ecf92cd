"""Reference implementation of searches by the caller's own distances: all distances, sorted stably."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core.results.neighbors import Neighbors, index_dtype
from tonari.core.results.radius_neighbors import RadiusNeighbors


def brute(table: npt.NDArray[Any], k: int, *, own: bool = False) -> Neighbors:
    """Return the k nearest points of each query from the matrix of all distances.

    With `own`, query i is point i and is left out of its own list.

    >>> brute(np.array([[3.0, 1.0, 1.0]]), 2).indices.tolist()
    [[1, 2]]
    """
    lists = [_ordered(row, i if own else -1)[:k] for i, row in enumerate(table)]
    indices = np.array(lists, index_dtype(table.shape[1])).reshape(len(table), k)
    return Neighbors(np.take_along_axis(table, indices, axis=1), indices)


def brute_within(table: npt.NDArray[Any], limits: npt.NDArray[Any], *, own: bool = False) -> RadiusNeighbors:
    """Return all points whose distance is at most the limit of the query, from the matrix of all distances.

    >>> brute_within(np.array([[3.0, 1.0, 1.0]]), np.array([1.0])).indices.tolist()
    [1, 2]
    """
    ids = [
        [j for j in _ordered(row, i if own else -1) if row[j] <= limit]
        for i, (row, limit) in enumerate(zip(table, limits, strict=True))
    ]
    indptr = np.cumsum([0, *map(len, ids)], dtype=np.int64)
    values = [row[each] for row, each in zip(table, ids, strict=True)]
    flat = np.array([j for each in ids for j in each], index_dtype(table.shape[1]))
    return RadiusNeighbors(indptr, flat, np.concatenate([np.empty(0, table.dtype), *values]))


def _ordered(row: npt.NDArray[Any], own: int) -> list[int]:
    """Return the points in ascending order of (distance, index), without point `own`."""
    return sorted((j for j in range(len(row)) if j != own), key=lambda j: (row[j], j))
