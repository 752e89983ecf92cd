"""Export a graph as a SciPy sparse matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.graph.exports.common import with_self
from tonari.graph.lists import Lists

if TYPE_CHECKING:
    import scipy.sparse


def to_csr(
    lists: Lists, *, order: str, include_self: bool | None, symmetric: str | None, dtype: npt.DTypeLike | None
) -> scipy.sparse.csr_matrix:
    """Export lists; see :meth:`tonari.KNNGraph.to_csr`."""
    try:
        from scipy.sparse import csr_matrix
    except ImportError as error:
        raise ImportError("to_csr needs SciPy: pip install 'tonari[sparse]'") from error
    if order not in ("distance", "index"):
        raise ValueError(f'order={order!r}: expected "distance" or "index"')
    if symmetric not in (None, "union", "mutual"):
        raise ValueError(f'symmetric={symmetric!r}: expected "union", "mutual" or None')
    own = lists.include_self if include_self is None else inputs.check_flag(include_self, "include_self")
    value = None if dtype is None else _value_dtype(dtype)
    distances, indices = with_self(lists, own)
    present = indices >= 0
    # Fewer than 2**31 points can still have more entries than that; SciPy narrows index arrays that fit in 32 bits.
    ends = np.cumsum(present.sum(axis=1, dtype=np.int64))
    entries = distances[present].astype(value or distances.dtype, copy=False), indices[present]
    matrix = csr_matrix((*entries, np.concatenate([[0], ends])), shape=(lists.n, lists.n))
    if order == "index" or symmetric is not None:
        matrix.sort_indices()
    if symmetric is None:
        return matrix
    descending = lists.measure.descending
    both = _both_ways(matrix, mutual=symmetric == "mutual", descending=descending)
    return both if order == "index" else _nearest_first(both, descending=descending)


def _value_dtype(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """Return the dtype; raise TypeError unless it is float32 or float64."""
    try:
        value = np.dtype(dtype)
    except TypeError as error:
        raise TypeError(f"dtype={dtype!r}: expected float32 or float64") from error
    if value not in (np.float32, np.float64):
        raise TypeError(f"dtype={value}: expected float32 or float64")
    return value


def _both_ways(matrix: scipy.sparse.csr_matrix, *, mutual: bool, descending: bool) -> scipy.sparse.csr_matrix:
    """Return the union of the entries of a matrix and its transpose, or their intersection; rows ascend by column.

    SciPy's own maximum and minimum would drop entries of 0.
    """
    n = matrix.shape[0]
    ways = matrix, matrix.T.tocsr()
    keys = np.concatenate([np.repeat(np.arange(n) * n, np.diff(way.indptr)) + way.indices for way in ways])
    order = np.argsort(keys, kind="stable")  # a stable sort merges the two sorted runs
    keys, values = keys[order], np.concatenate([way.data for way in ways])[order]
    first = np.append(True, keys[1:] != keys[:-1])
    twice = np.flatnonzero(~first)
    nearer = np.maximum if descending else np.minimum
    values[twice - 1] = nearer(values[twice - 1], values[twice])
    kept = twice - 1 if mutual else np.flatnonzero(first)
    rows, columns = np.divmod(keys[kept], n)
    return type(matrix)((values[kept], columns, np.searchsorted(rows, np.arange(n + 1))), shape=(n, n))


def _nearest_first(matrix: scipy.sparse.csr_matrix, *, descending: bool) -> scipy.sparse.csr_matrix:
    """Order the entries of each row, which are sorted by column number: self first, then by (distance, column)."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    keys = np.empty(len(rows), np.complex128)  # NumPy orders them by real, then by imaginary part
    keys.real = 2 * rows + (matrix.indices != rows)
    keys.imag = -matrix.data if descending else matrix.data
    order = np.argsort(keys, kind="stable")  # ten times as fast as lexsort, since rows are already in order
    return type(matrix)((matrix.data[order], matrix.indices[order], matrix.indptr), shape=matrix.shape)
