"""Graphs and points for tests of other libraries that consume k-NN graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks


def consumer(name: str) -> Any:
    """Import a library, or skip the test if it is not installed; `make interop` installs all such libraries."""
    return pytest.importorskip(name, reason=f"{name} is in the extra interop (make interop)")


def clusters(n: int = 400, d: int = 8, apart: float = 2.0, copies: int = 10) -> tuple[Any, Any]:
    """Make points of four overlapping clusters, some of them equal; return the points and the clusters' numbers."""
    rng = np.random.default_rng(0)
    labels = rng.integers(4, size=n)
    points = apart * rng.standard_normal((4, d))[labels] + rng.standard_normal((n, d))
    points[: 3 * copies : 3], labels[: 3 * copies : 3] = points[0], labels[0]
    return points.astype(np.float32), labels


def hostile(k: int = 6, include_self: bool = False, metric: str = "euclidean") -> tuple[Any, tonari.KNNGraph]:
    """Make points, most of them duplicates, and return them with their graph."""
    points = checks.duplicates(60, 3)
    return points, tonari.knn_graph(points, k, metric=metric, include_self=include_self)


def with_missing(graph: tonari.KNNGraph, row: int = 7, count: int = 2) -> tonari.KNNGraph:
    """Return the graph with the last neighbours of one row missing."""
    indices, distances = graph.indices.copy(), graph.distances.copy()
    indices[row, -count:], distances[row, -count:] = -1, np.inf
    return tonari.KNNGraph(indices, distances, graph.metric, graph.method, include_self=graph.include_self)
