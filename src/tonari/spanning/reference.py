"""Prim's algorithm (1957) on all pairs, in plain NumPy: the reference for all other implementations.

Values are computed by :mod:`tonari.metrics.definitions`, and rounded to the returned dtype; all n² values are in
memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.metrics.reference import brute
from tonari.spanning.boruvka import Lightest, pairs_of
from tonari.spanning.tree import SpanningTree, tree_of


def reachability(points: Any, min_samples: int, metric: str = "euclidean") -> npt.NDArray[Any]:
    """Return the mutual reachability distances of all pairs: an array of shape (n, n), with inf on the diagonal."""
    n = len(points)
    distances, indices = brute(points, points, n - 1, metric, self_ids=np.arange(n))
    weights = np.full((n, n), np.inf, distances.dtype)
    np.put_along_axis(weights, indices.astype(np.int64), distances, axis=1)
    core = distances[:, min_samples - 2] if min_samples > 1 else np.zeros(n, distances.dtype)
    return np.maximum(weights, np.maximum(core, core[:, None]))


def spanning_tree(points: Any, min_samples: int, metric: str = "euclidean") -> SpanningTree:
    """Find the minimum spanning tree; see :func:`tonari.mutual_reachability_tree`.

    Examples
    --------
    >>> import numpy as np
    >>> from tonari.spanning.reference import spanning_tree
    >>> spanning_tree(np.array([[0.0], [1.0], [3.0]]), 1).edges.tolist()
    [[0, 1], [1, 2]]
    """
    return spanning_tree_of(reachability(points, min_samples, metric))


def spanning_tree_of(weights: npt.NDArray[Any]) -> SpanningTree:
    """Find the minimum spanning tree of a complete graph.

    Its weights have shape (n, n), with inf on the diagonal.
    """
    n = len(weights)
    inside = np.zeros(n, bool)
    # for each point that is not in the tree yet, the weight of its lightest edge to a point in the tree
    best = weights[0].copy()
    pairs = pairs_of(np.zeros(n, np.int64), np.arange(n), n)
    inside[0] = True
    edges = []
    for _ in range(n - 1):
        outside = np.flatnonzero(~inside)
        at = outside[np.lexsort((pairs[outside], best[outside]))[0]]
        edges.append((best[at], pairs[at]))
        inside[at] = True
        offered = pairs_of(np.full(n, at), np.arange(n), n)
        earlier = (weights[at] < best) | ((weights[at] == best) & (offered < pairs))
        best, pairs = np.where(earlier, weights[at], best), np.where(earlier, offered, pairs)
    found = Lightest(np.array([weight for weight, _ in edges], weights.dtype), np.array([pair for _, pair in edges]))
    order = np.lexsort((found.pairs, found.weights))
    return tree_of(Lightest(found.weights[order], found.pairs[order]), n)
