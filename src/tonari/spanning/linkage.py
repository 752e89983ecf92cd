"""Single linkage from a minimum spanning tree: each edge, lightest first, joins two clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


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
