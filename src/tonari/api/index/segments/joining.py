"""Merge the results of the segments of an Index: drop removed points, and replace row numbers by ids.

Distances are exact and do not depend on the segment, so merging by (distance, id) gives the bits of a search of all
points at once.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.core.results.neighbors import Neighbors
from tonari.core.results.radius_neighbors import RadiusNeighbors
from tonari.metrics import Metric


def named(found: Neighbors, names: Any, k: int) -> Neighbors:
    """Drop removed points from neighbour lists, keep the first k remaining ones, and replace row numbers by ids.

    Parameters
    ----------
    found : Neighbors of shape (m, any)
        The nearest points of m queries by row number. Each list has at least k points that were not removed; only lists
        in host memory may have fewer, and then end with -1.
    names : array or tensor of shape (n,), on the device of the lists
        The ids of the points in the dtype of the result, ascending; -1 for removed points.
    k : int
    """
    if isinstance(found.indices, np.ndarray):
        ids = names[found.indices]
        lacking = bool((found.indices[:, -1] < 0).any())
        if lacking:
            ids[found.indices < 0] = -1
        if ids.shape[1] == k:
            return Neighbors(found.distances, ids)
        order = np.argsort(ids < 0, axis=1, kind="stable")[:, :k]
        left = Neighbors(np.take_along_axis(found.distances, order, axis=1), np.take_along_axis(ids, order, axis=1))
        if lacking:
            left.distances[left.indices < 0] = np.inf
        return left
    torch = sys.modules["torch"]
    ids = names[found.indices.long()]
    if ids.shape[1] == k:
        return Neighbors(found.distances, ids)
    order = torch.sort((ids < 0).to(torch.int32), dim=1, stable=True).indices[:, :k]
    return Neighbors(found.distances.gather(1, order), ids.gather(1, order))


def allowed_ones(found: Neighbors, names: npt.NDArray[Any]) -> Neighbors:
    """Replace row numbers by ids, in lists in host memory without removed points, which may end with -1."""
    return Neighbors(found.distances, np.where(found.indices < 0, found.indices.dtype.type(-1), names[found.indices]))


def join(parts: Sequence[Neighbors], k: int, metric: Metric) -> Neighbors:
    """Merge the lists that several segments found for each query into the k nearest points, ordered by (distance, id).

    The segments have no points in common. The lists of a single segment already have k columns and are returned
    unchanged; the lists of several segments have at least k columns in total.
    """
    if len(parts) == 1:
        return parts[0]
    if not isinstance(parts[0].indices, np.ndarray):
        from tonari.select.cuda.ordering.merge import merge_on_device

        return merge_on_device(parts, [0] * len(parts), k, metric.name)
    descending = metric.descending
    m, first = len(parts[0].indices), parts[0]
    rows = np.arange(m)
    distances = np.full((m, k), -np.inf if descending else np.inf, first.distances.dtype)
    indices = np.full((m, k), -1, first.indices.dtype)
    for part in parts:
        values, ids = map(np.ascontiguousarray, part)
        _native.merge_into(distances, indices, rows, values, ids, descending)
    return Neighbors(distances, indices)


def join_within(parts: Sequence[tuple[RadiusNeighbors, npt.NDArray[Any]]], metric: Metric) -> RadiusNeighbors:
    """Merge the radius results of several segments in host memory, and replace row numbers by ids.

    Each of `parts` has the result of a segment, and the ids of the segment's points: -1 for removed points, which are
    dropped.
    """
    queries, ids, values = [], [], []
    for found, names in parts:
        indptr, indices, distances = (part if isinstance(part, np.ndarray) else part.cpu().numpy() for part in found)
        here = names[indices]
        left = here >= 0
        queries.append(np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))[left])
        ids.append(here[left])
        values.append(distances[left])
    of, point, value = (np.concatenate(pieces) for pieces in (queries, ids, values))
    order = np.lexsort((point, -value if metric.descending else value, of))
    counts = np.bincount(of, minlength=len(parts[0][0].indptr) - 1)
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])
    return RadiusNeighbors(indptr, point[order], value[order])
