"""Export a graph as a ``networkx`` graph."""

from __future__ import annotations

from typing import Any, Literal

from tonari.graph.exports.common import HasLists
from tonari.graph.exports.igraph import edges


def to_networkx(graph: HasLists, *, symmetric: Literal["union", "mutual"] | None = None) -> Any:
    """Export the graph as a ``networkx.DiGraph``, or a ``Graph`` if it is symmetric, without self-loops.

    Parameters
    ----------
    symmetric : "union" or "mutual", optional
        As for :meth:`to_igraph`.

    Returns
    -------
    networkx.DiGraph or networkx.Graph
        Nodes are 0 to n - 1, including nodes without edges. Edges have the attribute "distance". It is not called
        "weight", because community detection interprets weights as similarities. Pass the name where a length is
        needed: ``networkx.shortest_path(graph, 0, 1, weight="distance")``.

    Raises
    ------
    ImportError
        networkx or SciPy is not installed.
    ValueError
        The kind of symmetry is unknown.
    """
    try:
        import networkx
    except ImportError as error:
        raise ImportError("to_networkx needs networkx: pip install networkx") from error
    pairs, distances = edges(graph.lists, symmetric)
    network = networkx.DiGraph() if symmetric is None else networkx.Graph()
    network.add_nodes_from(range(graph.lists.n))
    rows, columns = pairs.T.tolist()
    network.add_weighted_edges_from(zip(rows, columns, distances.tolist(), strict=True), weight="distance")
    return network
