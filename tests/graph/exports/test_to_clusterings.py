"""Exports by core distances hand on what they are asked for."""

from __future__ import annotations

from typing import Any

import pytest

import tonari
from tests.helpers.checks import gaussian
from tonari.graph.exports import to_clusterings

# The module that does it, the method of the graph, what it is given, and what the module gets.
CALLS: list[tuple[str, str, tuple[Any, ...], dict[str, Any], tuple[Any, ...]]] = [
    ("hdbscan", "core_distances", (3,), {}, (3,)),
    ("hdbscan", "mutual_reachability", (3,), {}, (3,)),
    ("hdbscan", "to_hdbscan", (3,), {}, (3,)),
    ("hdbscan", "to_fast_hdbscan", (3,), {}, (3,)),
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
        monkeypatch.setattr(getattr(to_clusterings, module), method, export)
        assert getattr(graph, method)(*given, **named) == "made"
        assert export.lists.found.indices is graph.indices
        assert export.given == expected
