"""The third element of UMAP's ``precomputed_knn``: what finds the neighbours of new points in ``UMAP.transform``.

umap-learn 0.5 asks it for ``query(points, k, epsilon=...)`` and ``_angular_trees``, and warns at ``fit`` that new
points cannot be embedded unless it is a ``pynndescent.NNDescent``. So this is one by name: nothing of it is set up.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.graph.exports.searcher import Searcher

try:
    from pynndescent import NNDescent
except ImportError:  # to_umap says so; all modules can be imported without the libraries that take graphs
    NNDescent = object


class UmapIndex(NNDescent):
    """Exact neighbours of new points, in the shape in which UMAP takes them."""

    _angular_trees = False  # it chooses an epsilon by this, which exact search has no use for

    def __init__(self, index: Searcher) -> None:
        self._index = index

    def query(
        self, query_data: Any, k: int = 10, epsilon: float = 0.1
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
        """Return the indices and distances of the k nearest points, both writable."""
        found = self._index.search(query_data, k)
        return found.indices.astype(np.int32), found.distances.astype(np.float32)

    def prepare(self) -> None:
        """Do nothing: the Index is ready."""

    def update(self, *_: Any, **__: Any) -> None:
        """Refuse UMAP.update."""
        raise NotImplementedError(
            "UMAP.update cannot add to a graph that tonari built; use graph.add(points, new_points) and fit again"
        )

    def __getstate__(self) -> dict[str, Any]:
        return {"_index": self._index}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
