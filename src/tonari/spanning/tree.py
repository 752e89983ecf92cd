"""`tonari.SpanningTree`, the result of `tonari.mutual_reachability_tree`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core.results.neighbors import index_dtype
from tonari.spanning.linkage import linkage_of
from tonari.spanning.pool import Lightest


@dataclass(frozen=True, eq=False)
class SpanningTree:
    """A minimum spanning tree of n points, as :func:`tonari.mutual_reachability_tree` returns it.

    Attributes
    ----------
    edges : NumPy int32 array of shape (n - 1, 2), or int64 for 2**31 points or more
        Row numbers of both ends of each edge, the smaller one first, ordered by (weight, smaller end, larger end).
    weights : NumPy float32 or float64 array of shape (n - 1,)
        The weight of each edge, ascending.
    """

    edges: npt.NDArray[Any]
    weights: npt.NDArray[Any]

    @property
    def n(self) -> int:
        """Number of points."""
        return len(self.weights) + 1

    def to_linkage(self) -> npt.NDArray[np.float64]:
        """Return the hierarchy of single linkage as SciPy's matrix.

        ``scipy.cluster.hierarchy`` reads this matrix (``fcluster``, ``dendrogram``), and hdbscan and fast_hdbscan make
        condensed trees from it.

        Returns
        -------
        float64 array of shape (n - 1, 4)
            Row i joins two clusters to cluster n + i. Its columns are the numbers of both clusters, the smaller one
            first, their distance, and the number of points in the new cluster. Numbers below n are points.

        Examples
        --------
        >>> import numpy as np, tonari
        >>> line = np.array([[0.0], [1.0], [3.0]], dtype=np.float32)
        >>> tonari.mutual_reachability_tree(line, min_samples=1).to_linkage().tolist()
        [[0.0, 1.0, 1.0, 2.0], [2.0, 3.0, 2.0, 3.0]]
        """
        return linkage_of(self.edges, self.weights)

    def __repr__(self) -> str:
        return f"SpanningTree(n={self.n}, dtype={self.weights.dtype})"


def tree_of(found: Lightest, n: int) -> SpanningTree:
    """Return the tree of n points with these edges, which are already in order."""
    edges = np.stack([found.pairs // n, found.pairs % n], axis=1)
    return SpanningTree(edges.astype(index_dtype(n)), found.weights)


def with_weights(tree: SpanningTree, weights: npt.NDArray[Any]) -> SpanningTree:
    """Return the tree with other weights, which are in the same order but may have more ties."""
    order = np.lexsort((tree.edges[:, 1], tree.edges[:, 0], weights))
    return SpanningTree(tree.edges[order], weights[order])
