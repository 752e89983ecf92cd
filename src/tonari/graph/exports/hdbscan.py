"""Core distances, mutual reachability, and matrices for hdbscan 0.8 and fast_hdbscan 0.3.

The core distance of a point is the distance of its min_samples-th neighbour, itself not counted, and the mutual
reachability distance of two points is the largest of their core distances and their distance (Campello, Moulavi and
Sander 2013, definitions 1 and 3). HDBSCAN* is the hierarchy of single linkage by that distance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.graph.exports.common import refuse_similarities, with_self
from tonari.graph.exports.csr import to_csr
from tonari.graph.lists import Lists
from tonari.graph.structure import connected_components

if TYPE_CHECKING:
    import scipy.sparse

_LEAST = np.finfo(np.float64).smallest_subnormal  # its inverse is infinite, like that of 0


def core_distances(lists: Lists, min_samples: int) -> npt.NDArray[Any]:
    """Return the distance of each point's min_samples-th neighbour; see :meth:`tonari.KNNGraph.core_distances`."""
    refuse_similarities(lists, "HDBSCAN")
    distances, indices = with_self(lists, False)
    wanted = inputs.check_count(min_samples, "min_samples")
    k = indices.shape[1]
    if wanted > k:
        raise ValueError(
            f"min_samples={wanted}: the graph has {k} neighbours of each point, itself left out; build it with "
            f"k={wanted} or more. If you leave min_samples out, HDBSCAN takes min_cluster_size for it"
        )
    missing = indices[:, wanted - 1] < 0
    if missing.any():
        raise ValueError(
            f"min_samples={wanted}: row {int(missing.argmax())} has fewer neighbours, the others are missing"
        )
    core: npt.NDArray[Any] = distances[:, wanted - 1].copy()
    return core


def mutual_reachability(lists: Lists, min_samples: int) -> scipy.sparse.csr_matrix:
    """Return the edges by mutual reachability distance; see :meth:`tonari.KNNGraph.mutual_reachability`."""
    core = core_distances(lists, min_samples)
    matrix = _edges(lists, None)
    rows = np.repeat(np.arange(lists.n), np.diff(matrix.indptr))
    np.maximum(matrix.data, np.maximum(core[rows], core[matrix.indices]), out=matrix.data)
    return matrix


def to_hdbscan(lists: Lists, min_samples: int) -> scipy.sparse.csr_matrix:
    """Export lists for hdbscan; see :meth:`tonari.KNNGraph.to_hdbscan`."""
    core_distances(lists, min_samples)
    parts = int(connected_components(lists).max()) + 1
    if parts > 1:
        raise ValueError(
            f"hdbscan takes one connected component, and the graph has {parts}; build it with a larger k than "
            f"{lists.k}, or use to_fast_hdbscan, which takes several"
        )
    matrix = _edges(lists, "float64")
    matrix.data[matrix.data == 0] = _LEAST  # hdbscan would drop edges of length 0
    return matrix


def to_fast_hdbscan(lists: Lists, min_samples: int) -> scipy.sparse.csr_matrix:
    """Export lists for fast_hdbscan; see :meth:`tonari.KNNGraph.to_fast_hdbscan`."""
    core_distances(lists, min_samples)
    return _edges(lists, "float64")


def _edges(lists: Lists, dtype: str | None) -> scipy.sparse.csr_matrix:
    """The symmetric graph: its edges in both directions."""
    return to_csr(lists, order="index", include_self=False, symmetric="union", dtype=dtype)
