"""Reference implementation of radius searches: every value is computed by :mod:`tonari.metrics.definitions`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core.results.neighbors import index_dtype
from tonari.core.results.radius_neighbors import RadiusNeighbors
from tonari.metrics import get_metric
from tonari.metrics.reference import pairwise, returned


def brute_within(
    queries: npt.NDArray[Any],
    points: npt.NDArray[Any],
    limits: npt.NDArray[Any],
    metric: str = "euclidean",
    *,
    self_ids: npt.NDArray[np.int64] | None = None,
) -> RadiusNeighbors:
    """Find all points whose returned value is at most the query's limit.

    Parameters
    ----------
    queries, points, metric, self_ids
        As for :func:`tonari.metrics.reference.brute`.
    limits : array of shape (m,)
        See :func:`tonari.core.results.radius_neighbors.limits_for`; its dtype is that of the returned distances. For
        ``inner_product``, values are at least the limit.

    Returns
    -------
    RadiusNeighbors
        Rows ordered by (returned distance, index).

    Examples
    --------
    >>> import numpy as np
    >>> from tonari.metrics.radius_reference import brute_within
    >>> points = np.array([[0.0], [3.0], [1.0]], np.float32)
    >>> brute_within(points[:1], points, np.array([1.0], np.float32)).indices
    array([0, 2], dtype=int32)
    """
    descending = get_metric(metric).descending
    rows = []
    for i, limit in enumerate(limits):
        values = returned(pairwise(queries[i : i + 1], points, metric)[0], limits.dtype)
        inside = values >= limit if descending else values <= limit
        if self_ids is not None:
            inside[self_ids[i]] = False
        ids = np.flatnonzero(inside)
        order = np.lexsort((ids, -values[ids] if descending else values[ids]))
        rows.append((ids[order], values[ids[order]]))
    indptr = np.cumsum([0, *(len(ids) for ids, _ in rows)], dtype=np.int64)
    empty = np.empty(0, np.int64), np.empty(0, limits.dtype)
    ids, distances = (np.concatenate(parts) for parts in zip(empty, *rows, strict=True))
    return RadiusNeighbors(indptr, ids.astype(index_dtype(len(points))), distances)
