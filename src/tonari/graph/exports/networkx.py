"""Export a graph as a ``networkx`` graph."""

from __future__ import annotations

from typing import Any

from tonari.graph.exports.igraph import edges
from tonari.graph.lists import Lists


def to_networkx(lists: Lists, symmetric: str | None) -> Any:
    """Export lists; see :meth:`tonari.KNNGraph.to_networkx`."""
    try:
        import networkx
    except ImportError as error:
        raise ImportError("to_networkx needs networkx: pip install networkx") from error
    pairs, distances = edges(lists, symmetric)
    graph = networkx.DiGraph() if symmetric is None else networkx.Graph()
    graph.add_nodes_from(range(lists.n))
    rows, columns = pairs.T.tolist()
    graph.add_weighted_edges_from(zip(rows, columns, distances.tolist(), strict=True), weight="distance")
    return graph
