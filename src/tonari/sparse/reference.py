"""Reference implementation of a search among sparse rows: they are converted to dense arrays and searched as such."""

from __future__ import annotations

from typing import Any

import numpy as np

from tonari.core.results.neighbors import Neighbors
from tonari.metrics.reference import brute
from tonari.sparse.rows import as_sparse_rows


def search(queries: Any, points: Any, k: int, metric: str, *, self_join: bool = False) -> Neighbors:
    """Find the k nearest points of every query by computing all values.

    >>> from scipy.sparse import csr_array
    >>> points = csr_array([[1.0, 0.0], [0.0, 3.0]])
    >>> search(points[:1], points, 2, "inner_product").distances
    array([[1., 0.]])
    """
    sets = metric == "jaccard"
    rows, base = (
        as_sparse_rows(x, name, sets=sets).toarray() for x, name in ((queries, "queries"), (points, "points"))
    )
    own = np.arange(len(rows)) if self_join else None
    if sets:
        rows, base = (np.packbits(x != 0, axis=1) for x in (rows, base))
    return brute(rows, base, k, metric, self_ids=own)
