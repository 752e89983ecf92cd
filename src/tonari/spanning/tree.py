"""`tonari.SpanningTree`, the result of `tonari.mutual_reachability_tree`, with single linkage and HDBSCAN's clusters.

fast_hdbscan condenses the tree and selects the clusters. It is the only library that has a public function for this
step: ``clusters_from_spanning_tree``, which takes edges and their weights in float64.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.core.results.neighbors import index_dtype
from tonari.spanning.boruvka import Lightest


def linkage_of(edges: npt.NDArray[Any], weights: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return SciPy's linkage matrix for edges in ascending order of weight.

    See :meth:`tonari.SpanningTree.to_linkage`.
    """
    joins = len(edges)
    n = joins + 1
    above = list(range(n + joins))  # for each cluster, a larger one that contains it, or itself
    sizes = [1] * n + [0] * joins
    merges = []

    def top(cluster: int) -> int:
        while above[cluster] != cluster:
            above[cluster] = above[above[cluster]]
            cluster = above[cluster]
        return cluster

    for new, (left, right) in enumerate(edges.tolist(), start=n):
        low, high = sorted((top(left), top(right)))
        above[low] = above[high] = new
        sizes[new] = sizes[low] + sizes[high]
        merges.append((low, high, sizes[new]))
    matrix = np.empty((joins, 4))
    matrix[:, 2] = weights
    matrix[:, [0, 1, 3]] = np.array(merges, np.float64).reshape(joins, 3)
    return matrix


_METHODS = ("eom", "leaf")


class Clusters(NamedTuple):
    """The clusters of n points, as :meth:`tonari.SpanningTree.clusters` returns them.

    Attributes
    ----------
    labels : int64 array of shape (n,)
        The cluster of each point, from 0; -1 for noise.
    probabilities : float64 array of shape (n,)
        The strength with which each point belongs to its cluster, from 0 to 1; 0 for noise.
    """

    labels: npt.NDArray[np.int64]
    probabilities: npt.NDArray[np.float64]


class Selection(NamedTuple):
    """The arguments of :meth:`tonari.SpanningTree.clusters`, which determine how clusters are selected."""

    min_cluster_size: Any
    cluster_selection_method: Any
    cluster_selection_epsilon: Any
    max_cluster_size: Any
    allow_single_cluster: Any

    def checked(self) -> dict[str, Any]:
        """Check the arguments, and return them under the names of fast_hdbscan."""
        size = inputs.check_count(self.min_cluster_size, "min_cluster_size", least=2)
        method, epsilon, most = self.cluster_selection_method, self.cluster_selection_epsilon, self.max_cluster_size
        if method not in _METHODS:
            raise ValueError(f"cluster_selection_method={method!r}: expected 'eom' or 'leaf'")
        number = isinstance(epsilon, Real) and not isinstance(epsilon, bool)
        if not number or not math.isfinite(epsilon) or epsilon < 0:
            raise ValueError(f"cluster_selection_epsilon={epsilon!r}: expected a distance of at least 0")
        return {
            "min_cluster_size": size,
            "cluster_selection_method": method,
            "cluster_selection_epsilon": float(epsilon),
            "max_cluster_size": math.inf if most is None else inputs.check_count(most, "max_cluster_size"),
            "allow_single_cluster": inputs.check_flag(self.allow_single_cluster, "allow_single_cluster"),
        }


def clusters_of(edges: npt.NDArray[Any], weights: npt.NDArray[Any], selection: Selection) -> Clusters:
    """Find the clusters of a spanning tree; see :meth:`tonari.SpanningTree.clusters`."""
    options, n = selection.checked(), len(weights) + 1
    try:
        from fast_hdbscan.hdbscan import clusters_from_spanning_tree
    except ImportError as error:
        raise ImportError("clusters needs fast_hdbscan: pip install 'tonari[hdbscan]'") from error
    if n < options["min_cluster_size"]:
        return Clusters(np.full(n, -1), np.zeros(n))
    tree = np.column_stack([edges, weights]).astype(np.float64)
    labels, strengths, *_ = clusters_from_spanning_tree(tree, **options)
    return Clusters(np.asarray(labels, np.int64), np.asarray(strengths, np.float64))


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

    def clusters(
        self,
        min_cluster_size: int,
        *,
        cluster_selection_method: str = "eom",
        cluster_selection_epsilon: float = 0.0,
        max_cluster_size: int | None = None,
        allow_single_cluster: bool = False,
    ) -> Clusters:
        """Return HDBSCAN's clusters of this tree.

        fast_hdbscan condenses the tree and selects the clusters (``pip install 'tonari[hdbscan]'``). Arguments and
        labels agree with HDBSCAN in fast_hdbscan, scikit-learn and hdbscan. If weights are equal, several minimum
        spanning trees exist, and labels of border points may differ.

        Parameters
        ----------
        min_cluster_size : int
            The smallest number of points in a cluster, 2 or more.
        cluster_selection_method : "eom" or "leaf"
            "eom", excess of mass, selects the clusters that persist longest; "leaf" selects the leaves of the condensed
            tree, which are the smallest clusters.
        cluster_selection_epsilon : float
            Clusters that separate below this distance are not split.
        max_cluster_size : int, optional
            The largest number of points in a cluster that "eom" selects. Default: no limit.
        allow_single_cluster : bool
            Whether "eom" may return one cluster.

        Returns
        -------
        Clusters(labels, probabilities)
            int64 labels from 0, -1 for noise; and float64 strengths of membership from 0 to 1, as fast_hdbscan computes
            them. Both of shape (n,).

        Raises
        ------
        TypeError, ValueError
            An argument is out of range.
        ImportError
            fast_hdbscan is not installed.
        """
        return clusters_of(
            self.edges,
            self.weights,
            Selection(
                min_cluster_size,
                cluster_selection_method,
                cluster_selection_epsilon,
                max_cluster_size,
                allow_single_cluster,
            ),
        )

    def to_linkage(self) -> npt.NDArray[np.float64]:
        """Return the hierarchy of single linkage as SciPy's matrix.

        ``scipy.cluster.hierarchy`` reads this matrix (``fcluster``, ``dendrogram``), and hdbscan and fast_hdbscan make
        condensed trees from it.

        Returns
        -------
        float64 array of shape (n - 1, 4)
            Row i joins two clusters to cluster n + i. Its columns are the ids of both clusters, the smaller id
            first, their distance, and the number of points in the new cluster. An id below n is a row number: the
            cluster is this point alone.

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
    """Return the tree of n points from its edges and their weights, both in the order of :class:`SpanningTree`."""
    edges = np.stack([found.pairs // n, found.pairs % n], axis=1)
    return SpanningTree(edges.astype(index_dtype(n)), found.weights)


def with_weights(tree: SpanningTree, weights: npt.NDArray[Any]) -> SpanningTree:
    """Return the tree with other weights, which must order the edges alike, except for additional ties."""
    order = np.lexsort((tree.edges[:, 1], tree.edges[:, 0], weights))
    return SpanningTree(tree.edges[order], weights[order])
