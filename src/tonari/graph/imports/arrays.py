"""Turn arrays of neighbours into lists of a graph: sort each list, and move self to column 0 or remove it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.core.results.neighbors import first_repeated_row, index_dtype
from tonari.inputs.arrays.kinds import from_host
from tonari.metrics import get_metric

Array = npt.NDArray[Any]


def host_matrix(given: Any, name: str, kinds: str, hint: str) -> Array:
    """Return an array of shape (n, k) in host memory; raise TypeError if the kind of its dtype is not allowed."""
    array = from_host(inputs.to_host(given), name, "(n, k)")
    if array.dtype.kind not in kinds:
        raise TypeError(f"{name}: got {array.dtype}; {hint}")
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(f"{name}: expected a non-empty array of shape (n, k), got {array.shape}")
    return array


def in_order(
    indices: Array, distances: Array, metric: str, *, include_self: bool, same_length: bool
) -> tuple[Array, Array]:
    """Return lists sorted as in :class:`tonari.KNNGraph`, with the point itself in column 0 or removed.

    The constructor of KNNGraph checks everything else.

    Parameters
    ----------
    indices : integers of shape (n, k)
    distances : numbers of shape (n, k)
    metric : str
    include_self : bool
        Whether the point itself stays, in column 0. Otherwise it is removed from the lists that contain it.
    same_length : bool
        If only some lists contain their own point, remove the last neighbour of the other lists, so that all lists have
        k - 1 entries.
    """
    if indices.shape != distances.shape:
        raise ValueError(f"indices have shape {indices.shape} and distances {distances.shape}, expected the same")
    include_self = inputs.check_flag(include_self, "include_self")
    record, n = get_metric(metric), len(indices)
    beyond = (indices < -1) | (indices >= n)
    if beyond.any():
        row = int(beyond.any(axis=1).argmax())
        raise ValueError(f"row {row} has an index outside -1 to {n - 1}: a graph lists points of its own rows")
    ids = indices.astype(index_dtype(n))
    narrow = distances.dtype.kind == "f" and distances.dtype.itemsize <= 4
    values: Any = distances.astype(np.float32 if narrow else np.float64)
    nowhere = -np.inf if record.descending else np.inf
    values[ids < 0] = nowhere
    if not record.descending and (values < 0).any():
        row = int((values < 0).any(axis=1).argmax())
        raise ValueError(f"row {row} has a negative distance; use numpy.maximum(distances, 0) if that is rounding")
    own = ids == np.arange(n)[:, None]
    repeated = first_repeated_row(ids)  # checked before self is removed, since self may be the repeated point
    if repeated >= 0:
        raise ValueError(f"row {repeated} lists a point twice")
    if include_self:
        if record.self_value is not None:
            values[own] = record.self_value
    else:
        ids[own], values[own] = -1, nowhere
    keys = -values if record.descending else values.copy()
    keys[own] = -np.inf if include_self else np.inf
    order = np.lexsort((np.where(ids < 0, n, ids), keys), axis=1)
    ids, values = (np.take_along_axis(part, order, axis=1) for part in (ids, values))
    columns = ids.shape[1]
    if not include_self and own.any():
        columns -= 1
        if not same_length:
            columns = int((ids >= 0).sum(axis=1).max())
        if not columns:
            raise ValueError("the lists have no neighbour other than the point itself, expected at least one")
    return np.ascontiguousarray(ids[:, :columns]), np.ascontiguousarray(values[:, :columns])


def from_arrays(indices: Any, distances: Any, metric: str, include_self: bool) -> tuple[Array, Array]:
    """Turn lists in any order into lists of a graph; see :meth:`tonari.KNNGraph.from_arrays`."""
    ids = host_matrix(indices, "indices", "iu", "expected whole numbers: indices come first, then distances")
    values = host_matrix(distances, "distances", "fiu", "expected numbers")
    return in_order(ids, values, metric, include_self=include_self, same_length=True)
