"""The structure of a graph: components, reverse neighbours, occurrence of points in lists, overlap of two graphs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tonari.core.rows.slices import cut
from tonari.graph import tuning
from tonari.graph.lists import Lists, in_blocks


def connected_components(lists: Lists) -> npt.NDArray[np.int32]:
    """Label the components; see :meth:`tonari.KNNGraph.connected_components`."""
    try:
        from scipy.sparse import csgraph, csr_matrix
    except ImportError as error:
        raise ImportError("connected_components needs SciPy: pip install 'tonari[sparse]'") from error
    points = np.arange(lists.n)
    labels: npt.NDArray[np.int32] = np.arange(lists.n, dtype=np.int32)
    first = points  # a point of each component that the blocks so far have found
    for rows, found in in_blocks(lists):
        present = found.indices >= 0
        ends = np.repeat(points[rows], present.sum(axis=1)), found.indices[present]
        tails, heads = (np.concatenate(pair) for pair in zip(ends, (points, first[labels]), strict=True))
        edges = csr_matrix((np.ones(len(tails), np.int8), (tails, heads)), shape=(lists.n, lists.n))
        labels = csgraph.connected_components(edges, directed=False)[1]
        first = np.unique(labels, return_index=True)[1]
    return labels


def occurrence(lists: Lists) -> npt.NDArray[np.int64]:
    """Count the lists that contain each point; see :meth:`tonari.KNNGraph.occurrence`."""
    counts = np.zeros(lists.n, np.int64)
    for _, found in in_blocks(lists):
        counts += np.bincount(found.indices[found.indices >= 0], minlength=lists.n)
    return counts


class ReverseNeighbors(NamedTuple):
    """For each point of a graph, the points that list it as a neighbour, in compressed rows.

    Attributes
    ----------
    indptr : int64 of shape (n + 1,)
        The points that list point i are ``indices[indptr[i]:indptr[i + 1]]``; ``distances`` has their distances from i
        in the same place.
    indices : int32 or int64, as in the graph
        Row numbers, ascending for each point.
    distances : float32 or float64, as in the graph
    """

    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[Any]
    distances: npt.NDArray[Any]


def reverse_neighbors(lists: Lists) -> ReverseNeighbors:
    """Find the points that list each point; see :meth:`tonari.KNNGraph.reverse_neighbors`."""
    parts = list[tuple[npt.NDArray[Any], ...]]()
    for rows, found in in_blocks(lists):
        present = found.indices >= 0
        own = np.repeat(np.arange(rows.start, rows.stop, dtype=found.indices.dtype), present.sum(axis=1))
        parts.append((found.indices[present], own, found.distances[present]))
    listed, points, distances = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = _stable_order(listed, lists.n)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(listed, minlength=lists.n))])
    return ReverseNeighbors(indptr, points[order], distances[order])


def _stable_order(numbers: npt.NDArray[Any], n: int) -> npt.NDArray[np.int64]:
    """Return the permutation that stably sorts nonnegative integers below n; it takes linear time.

    >>> _stable_order(np.array([70000, 3, 70000, 3]), 1 << 17).tolist()
    [1, 3, 0, 2]
    """
    order = np.argsort(numbers.astype(np.uint16), kind="stable")
    for shift in range(16, (n - 1).bit_length(), 16):
        order = order[np.argsort((numbers[order] >> shift).astype(np.uint16), kind="stable")]
    return order


def shared(ours: npt.NDArray[Any], theirs: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Count, in each row, the neighbours that two arrays of lists have in common.

    The arrays have the shapes (rows, k) and (rows, l).
    """
    counts = np.empty(len(ours), np.int64)
    for part in cut(len(ours), max(1, tuning.COMPARED_AT_ONCE // max(1, ours.shape[1] * theirs.shape[1]))):
        both = ours[part, :, None] == theirs[part, None, :]
        counts[part] = (both & (ours[part] >= 0)[:, :, None]).sum(axis=(1, 2))
    return counts


def overlap(lists: Lists, other: Lists) -> npt.NDArray[np.float64]:
    """Compare two graphs row by row; see :meth:`tonari.KNNGraph.overlap`."""
    if lists.n != other.n:
        raise ValueError(f"the graphs are of {lists.n} and {other.n} points: they must be of the same points")
    ours, theirs = (each.in_numpy().indices[:, int(each.include_self) :] for each in (lists, other))
    longer = np.maximum((ours >= 0).sum(axis=1), (theirs >= 0).sum(axis=1))
    return np.where(longer > 0, shared(ours, theirs) / np.maximum(longer, 1), 1.0)
