"""Reference implementation of a search: all values are computed by :mod:`tonari.metrics.definitions` and sorted.

Tests compare the results of all methods with it. It is slow, but its temporary arrays stay below about 200 MB.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core.results.neighbors import Neighbors, index_dtype
from tonari.core.results.radius_neighbors import RadiusNeighbors
from tonari.inputs import as_floats, held
from tonari.metrics import get_metric, tuning
from tonari.metrics.definitions import LANES, Float64


def brute(
    queries: npt.ArrayLike,
    points: npt.ArrayLike,
    k: int,
    metric: str = "euclidean",
    *,
    self_ids: npt.NDArray[np.int64] | None = None,
) -> Neighbors:
    """Find the k nearest points of every query by computing and sorting all distances.

    Parameters
    ----------
    queries : array of shape (m, d)
    points : array of shape (n, d)
    k : int
        From 1 to n, or to n - 1 with ``self_ids``.
    metric : str
        A name in ``tonari.metrics.METRICS``.
    self_ids : int64 array of shape (m,), optional
        For each query, its own row number among the points. This point is left out, but not its duplicates.

    Returns
    -------
    Neighbors of shape (m, k)
        float64 if queries or points are float64, else float32. Ordered by the returned distance (descending for
        ``inner_product``), equal distances by index.

    Raises
    ------
    ValueError
        Shapes do not match, a value is NaN or infinite, k is out of range, or the metric is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> from tonari.metrics.reference import brute
    >>> points = np.array([[0.0], [3.0], [1.0], [3.0]], np.float32)
    >>> brute(points[:1], points, 2, self_ids=np.array([0]))
    Neighbors(distances=array([[1., 3.]], dtype=float32), indices=array([[2, 1]], dtype=int32))
    """
    q, x = _rows(queries, points)
    m, n = len(q), len(x)
    largest = n if self_ids is None else n - 1
    if not 1 <= k <= largest:
        raise ValueError(f"k={k}: the largest k is {largest}, the smallest is 1")
    if self_ids is not None and (self_ids.shape != (m,) or self_ids.min() < 0 or self_ids.max() >= n):
        raise ValueError(f"self_ids must be {m} point numbers from 0 to {n - 1}")
    descending = get_metric(metric).descending

    ids = np.arange(n)
    distances, indices = Neighbors.empty(m, k, n, q.dtype.name, x.dtype.name)
    step = max(1, tuning.REFERENCE_PAIRS // n)
    for start in range(0, m, step):
        here = slice(start, start + step)
        values = returned(pairwise(q[here], x, metric), distances.dtype)
        is_self = np.zeros(values.shape, bool) if self_ids is None else ids == self_ids[here, None]
        by_value = -values if descending else values
        order = np.lexsort((np.broadcast_to(ids, values.shape), by_value, is_self))[:, :k]
        distances[here] = np.take_along_axis(values, order, axis=1)
        indices[here] = order
    return Neighbors(distances, indices)


def pairwise(queries: npt.ArrayLike, points: npt.ArrayLike, metric: str = "euclidean") -> Float64:
    """Compute the float64 value of every (query, point) pair, before it is rounded to the returned dtype.

    Parameters
    ----------
    queries : array of shape (m, d)
    points : array of shape (n, d)
    metric : str
        A name in ``tonari.metrics.METRICS``.

    Returns
    -------
    float64 of shape (m, n)

    Examples
    --------
    >>> import numpy as np
    >>> from tonari.metrics.reference import pairwise
    >>> pairwise(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0], [0.0, 2.0]]), "euclidean")
    array([[5., 2.]])
    """
    q, x = _rows(queries, points)
    get_metric(metric)
    values = np.empty((len(q), len(x)))
    wide = min(len(x), 1 << 12)
    tall = max(1, tuning.REFERENCE_PAIRS // wide)
    for top in range(0, len(q), tall):
        for left in range(0, len(x), wide):
            rows = _columns_first(q[top : top + tall])[:, :, None]
            columns = _columns_first(x[left : left + wide])[:, None, :]
            values[top : top + tall, left : left + wide] = _values(rows, columns, metric)
    return values


def values_at(
    queries: npt.ArrayLike, points: npt.ArrayLike, indices: npt.NDArray[Any], metric: str = "euclidean"
) -> Float64:
    """Compute the float64 value of each query with each point listed for it.

    Parameters
    ----------
    queries : array of shape (m, d)
    points : array of shape (n, d)
    indices : integers of shape (m, k)
        Row numbers of points, or -1 for a missing entry.
    metric : str
        A name in ``tonari.metrics.METRICS``.

    Returns
    -------
    float64 of shape (m, k)
        The entries of :func:`pairwise` at these indices; inf (-inf for ``inner_product``) where missing.

    Examples
    --------
    >>> import numpy as np
    >>> from tonari.metrics.reference import values_at
    >>> values_at(np.array([[1.0]]), np.array([[1.0], [4.0]]), np.array([[1, -1]]))
    array([[ 3., inf]])
    """
    q, x = _rows(queries, points)
    descending = get_metric(metric).descending
    if indices.ndim != 2 or len(indices) != len(q):
        raise ValueError(f"indices of shape {indices.shape} must be ({len(q)}, k): one row per query")
    if indices.size and (indices.min() < -1 or indices.max() >= len(x)):
        raise ValueError(f"indices must be from -1 to {len(x) - 1}")
    values = np.empty(indices.shape)
    tall = max(1, 64 * tuning.REFERENCE_PAIRS // max(1, indices.shape[1] * (x.shape[1] + LANES)))
    for top in range(0, len(q), tall):
        ids = indices[top : top + tall]
        rows = _columns_first(q[top : top + tall])[:, :, None]
        listed = _columns_first(x[ids])
        values[top : top + tall] = _values(rows, listed, metric)
    values[indices < 0] = -np.inf if descending else np.inf
    return values


def returned(values: Float64, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Round values once, to the nearest number of the dtype that a search returns; -0.0 becomes 0.0.

    >>> import numpy as np
    >>> from tonari.metrics.reference import returned
    >>> returned(np.array([0.1, -0.0, 1e60]), np.float32)
    array([0.1, 0. , inf], dtype=float32)
    """
    with np.errstate(over="ignore"):
        return values.astype(dtype) + np.zeros((), dtype)


def _rows(queries: npt.ArrayLike, points: npt.ArrayLike) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    q, x = held(queries), held(points)
    if q.ndim != 2 or x.ndim != 2 or q.shape[1] != x.shape[1] or 0 in q.shape or 0 in x.shape:
        raise ValueError(f"queries {q.shape} and points {x.shape} must be (m, d) and (n, d), neither empty")
    if not (_is_finite(q) and _is_finite(x)):
        raise ValueError("queries and points must be finite")
    return q, x


def _is_finite(rows: npt.NDArray[Any]) -> bool:
    step = max(1, 64 * tuning.REFERENCE_PAIRS // rows.shape[1])
    return all(np.isfinite(as_floats(rows[begin : begin + step])).all() for begin in range(0, len(rows), step))


def _columns_first(rows: npt.NDArray[Any]) -> Float64:
    return np.ascontiguousarray(np.moveaxis(as_floats(rows), -1, 0), dtype=np.float64)


def _values(q: Float64, x: Float64, metric: str) -> Float64:
    """Compute the value of each pair of rows, from arrays with the columns as first axis.

    q has the shape (d, m, 1), and x has the shape (d, 1, n) or (d, m, n).
    """
    value = get_metric(metric).value
    if value is None:
        raise ValueError(f"metric {metric!r} has no reference definition")
    return value(q, x)


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
    >>> from tonari.metrics.reference import brute_within
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
