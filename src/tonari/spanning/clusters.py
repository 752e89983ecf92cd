"""HDBSCAN's clusters of a spanning tree: fast_hdbscan condenses the tree and selects the clusters.

fast_hdbscan is the only library that has a public function for this step: ``clusters_from_spanning_tree``, which takes
edges and their weights in float64.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tonari import inputs

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
