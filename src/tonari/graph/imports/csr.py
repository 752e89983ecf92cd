"""Lists of neighbours from a sparse matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from tonari.graph.imports.arrays import Array, in_order


def from_csr(matrix: Any, metric: str, include_self: bool) -> tuple[Array, Array]:
    """Turn the stored entries of each row into a list of a graph; see :meth:`tonari.KNNGraph.from_csr`."""
    if not hasattr(matrix, "tocsr"):
        raise TypeError(f"matrix: expected a SciPy sparse matrix or array, got {type(matrix).__name__}")
    rows = matrix.tocsr()
    if rows.ndim != 2 or rows.shape[0] != rows.shape[1] or not rows.nnz:
        raise ValueError(f"matrix: expected a square one with entries, got shape {rows.shape} with {rows.nnz} entries")
    if rows.dtype.kind not in "fiu":
        raise TypeError(f"matrix: expected distances, got {rows.dtype}")
    counts = np.diff(rows.indptr)
    places = np.arange(counts.max()) < counts[:, None]
    indices = np.full(places.shape, -1, np.int64)
    distances = np.zeros(places.shape, rows.dtype)
    indices[places], distances[places] = rows.indices, rows.data
    return in_order(indices, distances, metric, include_self=include_self, same_length=False)
