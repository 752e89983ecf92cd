"""The third element of UMAP's ``precomputed_knn``, which finds the neighbours of new points in ``UMAP.transform``.

umap-learn 0.5 uses two members of this object: ``query(points, k, epsilon=...)`` and ``_angular_trees``. If the object
is not a ``pynndescent.NNDescent``, ``fit`` warns that new points cannot be embedded. The class therefore inherits from
NNDescent, but does not call its constructor.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.graph.exports.embeddings.searcher import Searcher

try:
    from pynndescent import NNDescent
except ImportError:  # without pynndescent, this module can still be imported; to_umap raises the error
    NNDescent = object


class UmapIndex(NNDescent):
    """Find exact neighbours of new points, with the interface that UMAP expects."""

    _angular_trees = False  # UMAP reads this attribute to choose epsilon, which exact search ignores

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
