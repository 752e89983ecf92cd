"""Core distances, mutual reachability, and matrices for hdbscan 0.8 and fast_hdbscan 0.3.

The core distance of a point is the distance to its min_samples-th neighbour, not counting the point itself. The mutual
reachability distance of two points is the maximum of their distance and their two core distances (Campello, Moulavi and
Sander 2013, definitions 1 and 3). HDBSCAN* is the hierarchy of single linkage by that distance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.graph.exports.common import HasLists, refuse_similarities, with_self
from tonari.graph.exports.csr import matrix_of
from tonari.graph.lists import Lists
from tonari.graph.structure import connected_components

if TYPE_CHECKING:
    import scipy.sparse

_LEAST = np.finfo(np.float64).smallest_subnormal  # hdbscan divides by distances: 1 / _LEAST is infinite, like 1 / 0


def core_distances(graph: HasLists, min_samples: int) -> npt.NDArray[Any]:
    """Return the distance of each point to its min_samples-th neighbour, not counting the point itself: shape (n,).

    Raises
    ------
    ValueError
        A point has fewer neighbours, or the graph contains similarities.

    Examples
    --------
    >>> import numpy as np, tonari
    >>> graph = tonari.knn_graph(np.array([[0.0], [1.0], [3.0]], dtype=np.float32), k=2)
    >>> graph.core_distances(1).tolist(), graph.core_distances(2).tolist()
    ([1.0, 1.0, 2.0], [3.0, 2.0, 3.0])
    """
    lists = graph.lists
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


def mutual_reachability(graph: HasLists, min_samples: int) -> scipy.sparse.csr_matrix:
    """Return the graph's edges with their mutual reachability distances: a symmetric matrix of shape (n, n).

    The mutual reachability distance of two points is the maximum of their distance and both core distances (Campello,
    Moulavi and Sander 2013). It is stored for (i, j) and (j, i) if i or j lists the other, even if it is 0, as between
    duplicates. Single linkage by these distances is HDBSCAN* if the graph contains its minimum spanning tree.

    Raises
    ------
    ValueError
        As for :meth:`core_distances`.

    Examples
    --------
    >>> import numpy as np, tonari
    >>> graph = tonari.knn_graph(np.array([[0.0], [1.0], [3.0]], dtype=np.float32), k=1)
    >>> graph.mutual_reachability(1).toarray().tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 2.0], [0.0, 2.0, 0.0]]
    """
    core = core_distances(graph, min_samples)
    matrix = _edges(graph.lists, None)
    rows = np.repeat(np.arange(graph.lists.n), np.diff(matrix.indptr))
    np.maximum(matrix.data, np.maximum(core[rows], core[matrix.indices]), out=matrix.data)
    return matrix


def to_hdbscan(graph: HasLists, min_samples: int) -> scipy.sparse.csr_matrix:
    """Export the graph for ``hdbscan.HDBSCAN(metric="precomputed", min_samples=min_samples)``.

    Parameters
    ----------
    min_samples : int
        The min_samples of HDBSCAN: pass the same number to both. HDBSCAN's default is min_cluster_size; if that is
        larger than k, hdbscan fails.

    Returns
    -------
    scipy.sparse.csr_matrix of shape (n, n)
        Symmetric, float64, without self. Core distances equal those of hdbscan on the points. Distances of 0, which
        hdbscan would drop, are replaced by the smallest positive number.

    Raises
    ------
    ValueError
        min_samples is larger than k; the graph is not connected, which hdbscan refuses; or the graph contains
        similarities.

    Notes
    -----
    hdbscan finds the same clusters as from the points if the graph contains the minimum spanning tree by mutual
    reachability. A graph with k larger than min_samples contains more edges of this tree. If several trees are minimal,
    a point on the border between two clusters may belong to either cluster. hdbscan is slow, since it processes each
    edge in Python; fast_hdbscan is much faster.
    """
    lists = graph.lists
    core_distances(graph, min_samples)
    parts = int(connected_components(lists).max()) + 1
    if parts > 1:
        raise ValueError(
            f"hdbscan takes one connected component, and the graph has {parts}; build it with a larger k than "
            f"{lists.k}, or use to_fast_hdbscan, which takes several"
        )
    matrix = _edges(lists, "float64")
    matrix.data[matrix.data == 0] = _LEAST  # hdbscan would drop edges of length 0
    return matrix


def to_fast_hdbscan(graph: HasLists, min_samples: int) -> scipy.sparse.csr_matrix:
    """Export the graph for ``fast_hdbscan.HDBSCAN(metric="precomputed", min_samples=min_samples)``.

    Parameters
    ----------
    min_samples : int
        The min_samples of HDBSCAN: pass the same number to both. HDBSCAN's default is min_cluster_size; if that is
        larger than k, all points become noise, without a warning.

    Returns
    -------
    scipy.sparse.csr_matrix of shape (n, n)
        Symmetric, float64, without self; distances of 0 are stored.

    Raises
    ------
    ValueError
        min_samples is larger than k, or the graph contains similarities.

    Notes
    -----
    As for :meth:`to_hdbscan`, except that fast_hdbscan joins the components of the graph, at an infinite distance.
    """
    core_distances(graph, min_samples)
    return _edges(graph.lists, "float64")


def _edges(lists: Lists, dtype: str | None) -> scipy.sparse.csr_matrix:
    """Return the matrix of the symmetric graph, which has every edge in both directions."""
    return matrix_of(lists, order="index", symmetric="union", dtype=dtype)
