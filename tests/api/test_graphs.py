"""knn_graph and merge: attributes of the graph, and refused arguments."""

from __future__ import annotations

import tonari
from tests.helpers import checks

X = checks.gaussian(20, 4)


def test_graph_says_how_it_was_made() -> None:
    graph = tonari.knn_graph(X, 3, metric="l1", method="auto")
    assert (graph.n, graph.k, graph.metric, graph.method, graph.include_self) == (20, 3, "l1", "exact", False)
