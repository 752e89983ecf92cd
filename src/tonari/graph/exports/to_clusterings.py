"""The methods of KNNGraph for HDBSCAN*: its distances, and matrices for hdbscan and fast_hdbscan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from tonari.graph.exports import hdbscan
from tonari.graph.lists import Lists

if TYPE_CHECKING:
    import scipy.sparse


class ToClusterings:
    """Exports by core distances, which need as many neighbours as min_samples."""

    if TYPE_CHECKING:

        @property
        def lists(self) -> Lists:
            """The contents."""

    def core_distances(self, min_samples: int) -> npt.NDArray[Any]:
        """Return the distance of each point's min_samples-th neighbour, itself not counted: of shape (n,).

        Raises
        ------
        ValueError
            The graph has fewer neighbours of a point, or similarities.

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

        The largest of the distance and the core distances of both ends (Campello, Moulavi and Sander 2013). Stored for
        (i, j) and (j, i) if i or j lists the other; 0 between duplicates is stored. Single linkage by these distances
        is HDBSCAN*, as far as its minimum spanning tree is in the graph.

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
            That of HDBSCAN: pass it to both. Left out there it is min_cluster_size, and where that is more than k,
            hdbscan fails.

        Returns
        -------
        scipy.sparse.csr_matrix of shape (n, n)
            Symmetric, float64, without self: core distances are those of hdbscan on the points. Distances of 0, which
            hdbscan drops, are replaced by the smallest number above 0.

        Raises
        ------
        ValueError
            min_samples is more than the graph's k; the graph is not connected, which hdbscan refuses; or it has
            similarities.

        Notes
        -----
        Clusters are those of the points as far as the minimum spanning tree by mutual reachability lies in the graph: a
        larger k than min_samples brings more of it. Where several trees are minimal, a point on the border of a cluster
        may change sides. hdbscan takes Python's time for each edge; fast_hdbscan does not.
        """
        return hdbscan.to_hdbscan(self.lists, min_samples)

    def to_fast_hdbscan(self, min_samples: int) -> scipy.sparse.csr_matrix:
        """Export the graph for ``fast_hdbscan.HDBSCAN(metric="precomputed", min_samples=min_samples)``.

        Parameters
        ----------
        min_samples : int
            That of HDBSCAN: pass it to both. Left out there it is min_cluster_size, and where that is more than k, all
            points are noise, without a word.

        Returns
        -------
        scipy.sparse.csr_matrix of shape (n, n)
            Symmetric, float64, without self; distances of 0 are stored.

        Raises
        ------
        ValueError
            min_samples is more than the graph's k, or the graph has similarities.

        Notes
        -----
        As for :meth:`to_hdbscan`, but components of the graph are joined, at an infinite distance.
        """
        return hdbscan.to_fast_hdbscan(self.lists, min_samples)
