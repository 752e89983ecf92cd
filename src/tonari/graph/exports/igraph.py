"""Export a graph as an ``igraph.Graph``."""

from __future__ import annotations

from typing import Any

import numpy as np

from tonari.graph.exports.csr import to_csr
from tonari.graph.lists import Lists


def to_igraph(lists: Lists, symmetric: str | None) -> Any:
    """Export lists; see :meth:`tonari.KNNGraph.to_igraph`."""
    try:
        import igraph
    except ImportError as error:
        raise ImportError("to_igraph needs igraph: pip install igraph") from error
    pairs, distances = edges(lists, symmetric)
    directed = symmetric is None
    return igraph.Graph(n=lists.n, edges=pairs, directed=directed, edge_attrs={"distance": distances.tolist()})


def edges(lists: Lists, symmetric: str | None) -> tuple[Any, Any]:
    """Return pairs of points, of shape (edges, 2), and their distances: each pair once if the graph is symmetric."""
    matrix = to_csr(lists, order="distance", include_self=False, symmetric=symmetric, dtype=None)
    rows = np.repeat(np.arange(lists.n), np.diff(matrix.indptr))
    kept = slice(None) if symmetric is None else rows < matrix.indices
    return np.column_stack([rows[kept], matrix.indices[kept]]), matrix.data[kept]
