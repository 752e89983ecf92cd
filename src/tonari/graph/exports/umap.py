"""Export a graph as UMAP's ``precomputed_knn`` (umap-learn 0.5)."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np

from tonari import inputs
from tonari.core.neighbors import index_dtype
from tonari.graph.exports.common import refuse_similarities, refuse_squares, with_self
from tonari.graph.exports.searcher import Searcher, searcher_of
from tonari.graph.lists import Lists


def to_umap(lists: Lists, index: Searcher | None, n_neighbors: int | None) -> tuple[Any, ...]:
    """Export lists; see :meth:`tonari.KNNGraph.to_umap`."""
    refuse_similarities(lists, "UMAP")
    refuse_squares(lists, "UMAP")
    columns = lists.k + (not lists.include_self)
    wanted = columns if n_neighbors is None else inputs.check_count(n_neighbors, "n_neighbors", least=2)
    if wanted > columns:
        raise ValueError(
            f"n_neighbors={wanted}: UMAP counts the point itself, and the graph has {columns} columns with it; build "
            f"it with k={wanted - 1} or more"
        )
    found = with_self(lists, True)
    # Copies: UMAP writes into both. Columns beyond n_neighbors it would use without a word below 4,096 points.
    indices = np.array(found.indices[:, :wanted], index_dtype(lists.n), order="C")
    distances = np.array(found.distances[:, :wanted], np.float32, order="C")
    return (indices, distances) if index is None else (indices, distances, _searching(lists, index))


def _searching(lists: Lists, index: Searcher) -> Any:
    """Return the object with which UMAP finds the neighbours of new points."""
    searcher = searcher_of(lists, index)
    if importlib.util.find_spec("pynndescent") is None:
        raise ImportError("to_umap(index) needs pynndescent, as umap-learn does: pip install umap-learn")
    from tonari.graph.exports.umap_index import UmapIndex

    return UmapIndex(searcher)
