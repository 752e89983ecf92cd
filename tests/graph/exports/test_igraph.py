"""Edges for igraph: each edge once, in the stated direction, without loops."""

from __future__ import annotations

from typing import Any

import pytest

import tonari
from tests.helpers import consumers
from tests.helpers.graphs import expected_edges


@pytest.mark.interop
@pytest.mark.parametrize("symmetric", [None, "union", "mutual"])
def test_graphs_have_every_edge_once(symmetric: Any) -> None:
    consumers.consumer("igraph")
    graph = consumers.with_missing(consumers.hostile(6, include_self=True)[1])
    made = graph.to_igraph(symmetric=symmetric)
    assert (made.vcount(), made.is_directed()) == (graph.n, symmetric is None)
    assert made.es.attributes() == ["distance"]
    found = {edge.tuple: edge["distance"] for edge in made.es}
    assert len(found) == made.ecount()
    if symmetric is not None:
        found = {(min(pair), max(pair)): d for pair, d in found.items()}
    assert found == expected_edges(graph, symmetric)


@pytest.mark.interop
def test_leiden_finds_the_clusters() -> None:
    leidenalg: Any = consumers.consumer("leidenalg")
    from sklearn.metrics import adjusted_rand_score

    points, labels = consumers.clusters(apart=4)
    made = tonari.knn_graph(points, 15).to_igraph(symmetric="union")
    found = leidenalg.find_partition(made, leidenalg.CPMVertexPartition, resolution_parameter=0.02, seed=0).membership
    assert adjusted_rand_score(labels, found) > 0.9
