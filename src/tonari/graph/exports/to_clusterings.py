"""The methods of KNNGraph for HDBSCAN*: its distances, and matrices for hdbscan and fast_hdbscan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from tonari.graph.exports import hdbscan
from tonari.graph.lists import Lists

if TYPE_CHECKING:
    import scipy.sparse


class ToClusterings:
    """Exports that use core distances, which need min_samples neighbours."""

    if TYPE_CHECKING:

        @property
        def lists(self) -> Lists:
            """The contents."""

    def core_distances(self, min_samples: int) -> npt.NDArray[Any]:
        """Return the distance of each point to its min_samples-th neighbour, not counting itself: of shape (n,).

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
        return hdbscan.core_distances(self.lists, min_samples)

    def mutual_reachability(self, min_samples: int) -> scipy.sparse.csr_matrix:
        """Return the graph's edges with their mutual reachability distances: a symmetric matrix of shape (n, n).

        The mutual reachability distance of two points is the maximum of their distance and both core distances
        (Campello, Moulavi and Sander 2013). It is stored for (i, j) and (j, i) if i or j lists the other, also if it is
        0, as between duplicates. Single linkage by these distances is HDBSCAN* if the graph contains its minimum
        spanning tree.

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
        return hdbscan.mutual_reachability(self.lists, min_samples)

    def to_hdbscan(self, min_samples: int) -> scipy.sparse.csr_matrix:
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
        Clusters equal those of the points if the graph contains the minimum spanning tree by mutual reachability; a k
        larger than min_samples contains more of its edges. If several trees are minimal, a point on the border of a
        cluster may belong to either. hdbscan is slow, since it processes each edge in Python; fast_hdbscan is not.
        """
        return hdbscan.to_hdbscan(self.lists, min_samples)

    def to_fast_hdbscan(self, min_samples: int) -> scipy.sparse.csr_matrix:
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
        As for :meth:`to_hdbscan`, except that components of the graph are joined, at an infinite distance.
        """
        return hdbscan.to_fast_hdbscan(self.lists, min_samples)
