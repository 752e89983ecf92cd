"""Edges for networkx: each edge once, in the stated direction, without loops."""

from __future__ import annotations

from typing import Any

import pytest

from tests.helpers import consumers
from tests.helpers.graphs import expected_edges


@pytest.mark.interop
@pytest.mark.parametrize("symmetric", [None, "union", "mutual"])
def test_graphs_have_every_edge_once(symmetric: Any) -> None:
    consumers.consumer("networkx")
    graph = consumers.with_missing(consumers.hostile(6, include_self=True)[1])
    made = graph.to_networkx(symmetric=symmetric)
    assert (list(made), made.is_directed()) == (list(range(graph.n)), symmetric is None)
    assert all(list(values) == ["distance"] for *_, values in made.edges(data=True))
    found = {(i, j): values["distance"] for i, j, values in made.edges(data=True)}
    if symmetric is not None:
        found = {(min(pair), max(pair)): d for pair, d in found.items()}
    assert found == expected_edges(graph, symmetric)
