"""True graphs of few points, and invalid lists of neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.helpers import checks
from tonari.graph.knn_graph import KNNGraph
from tonari.metrics.reference import brute, pairwise

N, K = 30, 5


def true_graph(points: Any = None, k: int = K, metric: str = "euclidean", include_self: bool = False) -> KNNGraph:
    """Make a true graph; with include_self, the point itself is one of the k columns."""
    points = checks.gaussian(N, 3) if points is None else points
    own = np.arange(len(points))
    distances, indices = brute(points, points, k - include_self, metric, self_ids=own)
    if include_self:
        value = np.diagonal(pairwise(points, points, metric)).astype(distances.dtype)
        distances = np.column_stack([value, distances])
        indices = np.column_stack([own, indices]).astype(np.int32)
    return KNNGraph(indices, distances, metric, "brute", include_self=include_self)


def spoilt(change: Any, metric: str = "euclidean", include_self: bool = False) -> tuple[Any, Any]:
    """Make the lists of a true graph, with a fault in the lists of points 4 and later."""
    graph = true_graph(metric=metric, include_self=include_self)
    change(graph.indices, graph.distances)
    return graph.indices, graph.distances


def _repeated(i: Any, d: Any) -> None:
    i[4, 3] = i[4, 1]
    i[9, 3] = i[9, 1]


def _nan(i: Any, d: Any) -> None:
    d[4, 2] = np.nan


def nan_for_self(i: Any, d: Any) -> None:
    d[4, 0] = np.nan


def _nan_missing(i: Any, d: Any) -> None:
    i[4, 4], d[4, 4] = -1, np.nan


def _swapped(i: Any, d: Any) -> None:
    d[4, [1, 2]] = d[4, [2, 1]]
    i[4, [1, 2]] = i[4, [2, 1]]


def _reversed(i: Any, d: Any) -> None:
    i[4:, 1:], d[4:, 1:] = i[4:, :0:-1].copy(), d[4:, :0:-1].copy()


def _missing_first(i: Any, d: Any) -> None:
    i[4, 1], d[4, 1:] = -1, np.inf


def _missing_but_near(i: Any, d: Any) -> None:
    i[4, 4] = -1


def _beyond(i: Any, d: Any) -> None:
    i[4, 4] = len(i)


# Each fault with a metric, and the message that it causes.
SPOILT = {
    "an index beyond the points": (_beyond, "euclidean", "row 4 has an index outside -1 to"),
    "an id twice": (_repeated, "euclidean", "row 4 lists a point twice"),
    "NaN": (_nan, "euclidean", "row 4 has a distance that is NaN"),
    "NaN for a missing neighbour": (_nan_missing, "euclidean", "row 4 has a distance that is NaN"),
    "two swapped": (_swapped, "euclidean", "row 4 is not in order: distances must ascend"),
    "descending": (_reversed, "l1", "row 4 is not in order: distances must ascend"),
    "ascending similarities": (_reversed, "inner_product", "row 4 is not in order: similarities must descend"),
    "missing before there": (_missing_first, "euclidean", r"row 4 has a neighbour after a missing one \(-1\)"),
    "missing but near": (_missing_but_near, "euclidean", r"row 4 has a distance for a missing neighbour \(-1\)"),
}


def edges_of(graph: KNNGraph) -> dict[tuple[int, int], float]:
    """Return the edges of a graph, without loops, by point and neighbour."""
    first = int(graph.include_self)
    return {
        (i, int(j)): float(d)
        for i in range(graph.n)
        for j, d in zip(graph.indices[i, first:], graph.distances[i, first:], strict=True)
        if j >= 0
    }


def expected_edges(graph: KNNGraph, symmetric: str | None) -> dict[tuple[int, int], float]:
    """Return the edges that a library of graphs should have; in an undirected graph the smaller end is first."""
    edges = edges_of(graph)
    if symmetric is None:
        return edges
    if symmetric == "union":
        edges |= {(j, i): d for (i, j), d in edges.items()}
    else:
        edges = {(i, j): d for (i, j), d in edges.items() if (j, i) in edges}
    return {(i, j): d for (i, j), d in edges.items() if i < j}
