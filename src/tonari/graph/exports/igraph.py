"""Export a graph as an ``igraph.Graph``."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from tonari.graph.exports.common import HasLists
from tonari.graph.exports.csr import matrix_of
from tonari.graph.lists import Lists


def to_igraph(graph: HasLists, *, symmetric: Literal["union", "mutual"] | None = None) -> Any:
    """Export the graph as an ``igraph.Graph``, without self-loops.

    Parameters
    ----------
    symmetric : "union" or "mutual", optional
        None: directed, from each point to its neighbours. "union", "mutual": undirected, with each pair once, as
        for :meth:`to_csr`; leidenalg and ``community_leiden`` take such graphs.

    Returns
    -------
    igraph.Graph
        Vertices are the points in their order, including points without edges. Edges have the attribute "distance".
        It is not called "weight", because leidenalg and others interpret weights as similarities.

    Raises
    ------
    ImportError
        igraph or SciPy is not installed.
    ValueError
        The kind of symmetry is unknown.
    """
    try:
        import igraph
    except ImportError as error:
        raise ImportError("to_igraph needs igraph: pip install igraph") from error
    pairs, distances = edges(graph.lists, symmetric)
    directed = symmetric is None
    return igraph.Graph(n=graph.lists.n, edges=pairs, directed=directed, edge_attrs={"distance": distances.tolist()})


def edges(lists: Lists, symmetric: str | None) -> tuple[Any, Any]:
    """Return the edges as pairs of points, of shape (edges, 2), and the distance of each pair.

    If the graph is symmetric, each pair occurs once.
    """
    matrix = matrix_of(lists, symmetric=symmetric)
    rows = np.repeat(np.arange(lists.n), np.diff(matrix.indptr))
    stays = slice(None) if symmetric is None else rows < matrix.indices
    return np.column_stack([rows[stays], matrix.indices[stays]]), matrix.data[stays]
