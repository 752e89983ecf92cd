"""Lists of neighbours from the results of faiss."""

from __future__ import annotations

from typing import Any

import numpy as np

from tonari.graph.imports.arrays import Array, host_matrix, in_order
from tonari.metrics import get_metric

_RETURNED = ("euclidean", "sqeuclidean", "inner_product", "l1", "linf", "canberra")


def from_faiss(distances: Any, indices: Any, metric: str, include_self: bool) -> tuple[Array, Array]:
    """Turn the result of a search by faiss into lists of a graph; see :meth:`tonari.KNNGraph.from_faiss`."""
    hint = "faiss returns (D, I): distances come first, then indices"
    values = host_matrix(distances, "distances", "f", hint)
    ids = host_matrix(indices, "indices", "iu", hint)
    record = get_metric(metric)
    if record.name not in _RETURNED:
        raise ValueError(
            f"metric={metric!r}: faiss returns {', '.join(_RETURNED)}; for the cosine of normalized rows pass "
            "KNNGraph.from_arrays(I, 1 - D, metric='cosine')"
        )
    if not record.descending:
        values = np.maximum(values, 0)  # faiss computes |q|² + |x|² - 2 <q, x>, which may round below 0
    if record.root:
        values = np.sqrt(values)
    return in_order(ids, values, record.name, include_self=include_self, same_length=True)
