"""Exports for embeddings hand on what they are asked for."""

from __future__ import annotations

from typing import Any

import pytest

import tonari
from tests.helpers.checks import gaussian
from tonari.graph.exports import to_embeddings

# The module that does it, the method of the graph, what it is given, and what the module gets.
CALLS: list[tuple[str, str, tuple[Any, ...], dict[str, Any], tuple[Any, ...]]] = [
    ("umap", "to_umap", ("index",), {"n_neighbors": 4}, ("index", 4)),
    ("umap", "to_umap", (), {}, (None, None)),
    ("opentsne", "to_opentsne", (2.5, "index"), {}, (2.5, "index")),
    ("opentsne", "to_opentsne", (), {}, (30, None)),
    ("sklearn", "to_sklearn", (), {"eps": 0.5}, (0.5,)),
    (
        "scanpy",
        "to_scanpy",
        ("adata",),
        {"n_neighbors": 4, "use_rep": "X_pca"},
        ("adata", 4, ("use_rep", "X_pca"), ("n_pcs", None), ("key_added", None)),
    ),
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
        monkeypatch.setattr(getattr(to_embeddings, module), method, export)
        assert getattr(graph, method)(*given, **named) == (None if method == "to_scanpy" else "made")
        assert export.lists.found.indices is graph.indices
        assert export.given == expected
