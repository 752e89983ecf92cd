"""The ``knn_index`` with which openTSNE finds the neighbours of new points in ``TSNEEmbedding.transform``."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from tonari.core.results.neighbors import Neighbors
from tonari.graph.exports.embeddings.searcher import Searcher

try:
    from openTSNE.nearest_neighbors import PrecomputedNeighbors
except ImportError:  # without openTSNE, this module can still be imported; to_opentsne raises the error
    PrecomputedNeighbors = object


class OpenTsneIndex(PrecomputedNeighbors):
    """A ``knn_index`` that contains a graph's lists, and finds exact neighbours of new points by an index."""

    def __init__(self, found: Neighbors, index: Searcher) -> None:
        super().__init__(found.indices, found.distances)
        self._index = index

    def query(self, query: Any, k: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return the indices and distances of the k nearest points."""
        found = self._index.search(query, k)
        return found.indices, found.distances
