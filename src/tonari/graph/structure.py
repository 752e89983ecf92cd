"""What the shape of a graph tells: components, how often points are neighbours, what two graphs have in common."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tonari.core.slices import cut
from tonari.graph.lists import Lists

_COMPARED_AT_ONCE = 1 << 22  # pairs of entries


def connected_components(lists: Lists) -> npt.NDArray[np.int32]:
    """Label the components; see :meth:`tonari.KNNGraph.connected_components`."""
    try:
        from scipy.sparse import csgraph, csr_matrix
    except ImportError as error:
        raise ImportError("connected_components needs SciPy: pip install 'tonari[sparse]'") from error
    indices = lists.in_numpy().indices
    present = indices >= 0
    ends = np.concatenate([[0], np.cumsum(present.sum(axis=1, dtype=np.int64))])
    columns = indices[present]
    edges = csr_matrix((np.ones(len(columns), np.int8), columns, ends), shape=(lists.n, lists.n))
    labels: npt.NDArray[np.int32] = csgraph.connected_components(edges, directed=False)[1]
    return labels


def occurrence(lists: Lists) -> npt.NDArray[np.int64]:
    """Count how often points are neighbours; see :meth:`tonari.KNNGraph.occurrence`."""
    indices = lists.in_numpy().indices[:, int(lists.include_self) :]
    return np.bincount(indices[indices >= 0], minlength=lists.n).astype(np.int64)


def overlap(lists: Lists, other: Lists) -> npt.NDArray[np.float64]:
    """Compare two graphs row by row; see :meth:`tonari.KNNGraph.overlap`."""
    if lists.n != other.n:
        raise ValueError(f"the graphs are of {lists.n} and {other.n} points: they must be of the same points")
    ours, theirs = (each.in_numpy().indices[:, int(each.include_self) :] for each in (lists, other))
    shared = np.empty(lists.n, np.float64)
    for part in cut(lists.n, max(1, _COMPARED_AT_ONCE // max(1, ours.shape[1] * theirs.shape[1]))):
        both = ours[part, :, None] == theirs[part, None, :]
        common = (both & (ours[part] >= 0)[:, :, None]).sum(axis=(1, 2))
        longer = np.maximum((ours[part] >= 0).sum(axis=1), (theirs[part] >= 0).sum(axis=1))
        shared[part] = np.where(longer > 0, common / np.maximum(longer, 1), 1.0)
    return shared
