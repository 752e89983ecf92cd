"""Exports as matrices, edges and graphs hand on what they are asked for."""

from __future__ import annotations

from typing import Any

import pytest

import tonari
from tests.helpers.checks import gaussian
from tonari.graph.exports import to_graphs

# The module that does it, the method of the graph, what it is given, and what the module gets.
CALLS: list[tuple[str, str, tuple[Any, ...], dict[str, Any], tuple[Any, ...]]] = [
    ("weights", "to_weights", ("umap",), {}, ("umap",)),
    ("edge_index", "to_edge_index", (), {"flow": "target_to_source"}, ("target_to_source",)),
    ("igraph", "to_igraph", (), {"symmetric": "mutual"}, ("mutual",)),
    ("networkx", "to_networkx", (), {"symmetric": "union"}, ("union",)),
    ("networkx", "to_networkx", (), {}, (None,)),
    ("arrow", "to_arrow", (), {}, ()),
]


class Export:
    """Notes what it is given."""

    def __call__(self, lists: Any, *rest: Any, **more: Any) -> str:
        self.lists, self.given = lists, (*rest, *more.items())
        return "made"


def test_what_is_asked_for_is_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = tonari.knn_graph(gaussian(12, 2), 4)
    for module, method, given, named, expected in CALLS:
        export = Export()
        target = "weights" if method == "to_weights" else method
        monkeypatch.setattr(getattr(to_graphs, module), target, export)
        assert getattr(graph, method)(*given, **named) == "made"
        assert export.lists.found.indices is graph.indices
        assert export.given == expected
