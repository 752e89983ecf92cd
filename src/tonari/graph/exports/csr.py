"""Export a graph as a SciPy sparse matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.graph.exports.common import HasLists, with_self
from tonari.graph.lists import Lists

if TYPE_CHECKING:
    import scipy.sparse


def to_csr(
    graph: HasLists,
    *,
    order: Literal["distance", "index"] = "distance",
    include_self: bool | None = None,
    symmetric: Literal["union", "mutual"] | None = None,
    dtype: npt.DTypeLike | None = None,
) -> scipy.sparse.csr_matrix:
    """Export the graph as a SciPy matrix whose entry (i, j) is the distance from i to its neighbour j.

    Distances of 0 are stored, missing neighbours are not. The matrix shares no memory with the graph; a graph on
    CUDA is copied to host memory.

    Parameters
    ----------
    order : "distance" or "index"
        The order of the entries within each row, also of symmetric matrices. "distance": the point itself, then nearest
        first, ties by column number (for scikit-learn, scanpy, UMAP). "index": by column number (canonical CSR).
    include_self : bool, optional
        True: every row contains its own point, first if the order is by distance. If the graph lacks it, it is
        added at distance 0, and rows have k + 1 entries. False: no row contains its own point. None: as in the
        graph.
    symmetric : "union" or "mutual", optional
        "union": (i, j) and (j, i) are stored if i or j lists the other (the symmetric k-NN graph); rows have at
        least k entries. "mutual": they are stored if each lists the other (the mutual k-NN graph); rows have at
        most k entries, possibly none. If the two directions have different distances, as in a graph from another
        program, the nearer one is stored for both. None: row i has the neighbours of i only.
    dtype : float32 or float64, optional
        Dtype of the distances in the matrix. Default: that of the graph.

    Returns
    -------
    scipy.sparse.csr_matrix of shape (n, n)

    Raises
    ------
    ImportError
        SciPy is not installed.
    TypeError
        include_self is not True, False or None, or dtype is not float32 or float64.
    ValueError
        The order or the kind of symmetry is unknown; or include_self is True for a graph of similarities without
        self, in which the similarity of a point to itself is unknown.

    Notes
    -----
    In SciPy 1.17 and later, ``.astype`` returns a matrix whose rows are sorted by column number, and ``.sqrt()``,
    ``.power(2)``, ``abs`` and negation sort the rows of the matrix itself; ``.copy()`` and ``* 1.0`` keep the
    order. Readers such as scanpy, which assume that the nearest entries come first, then give wrong results. Pass
    `dtype` here instead of calling ``.astype``, and change values in place: ``np.sqrt(matrix.data,
    out=matrix.data)``.

    Examples
    --------
    >>> import numpy as np, tonari
    >>> graph = tonari.knn_graph(np.array([[0.0], [1.0], [3.0]], dtype=np.float32), k=1)
    >>> graph.to_csr(include_self=True).indices  # point 0: itself, 1; point 1: itself, 0; point 2: itself, 1
    array([0, 1, 1, 0, 2, 1], dtype=int32)
    >>> graph.to_csr(symmetric="union").toarray().tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 2.0], [0.0, 2.0, 0.0]]
    >>> graph.to_csr(symmetric="mutual", dtype="float64").toarray().tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    return matrix_of(graph.lists, order=order, include_self=include_self, symmetric=symmetric, dtype=dtype)


def matrix_of(
    lists: Lists,
    *,
    order: str = "distance",
    include_self: bool | None = False,
    symmetric: str | None = None,
    dtype: npt.DTypeLike | None = None,
) -> scipy.sparse.csr_matrix:
    """Return lists as a SciPy matrix; see :func:`to_csr`."""
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
    # Even fewer than 2**31 points can have 2**31 entries or more; SciPy narrows index arrays that fit in 32 bits.
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
    """Return `dtype` as a NumPy dtype; raise TypeError unless it is float32 or float64."""
    try:
        value = np.dtype(dtype)
    except TypeError as error:
        raise TypeError(f"dtype={dtype!r}: expected float32 or float64") from error
    if value not in (np.float32, np.float64):
        raise TypeError(f"dtype={value}: expected float32 or float64")
    return value


def _both_ways(matrix: scipy.sparse.csr_matrix, *, mutual: bool, descending: bool) -> scipy.sparse.csr_matrix:
    """Return the union or the intersection of the entries of a matrix and its transpose, with each row in column order.

    SciPy's own maximum and minimum would drop entries of 0.
    """
    n = matrix.shape[0]
    ways = matrix, matrix.T.tocsr()
    keys = np.concatenate([np.repeat(np.arange(n) * n, np.diff(way.indptr)) + way.indices for way in ways])
    order = np.argsort(keys, kind="stable")  # a stable sort merges the keys of both matrices, which are sorted
    keys, values = keys[order], np.concatenate([way.data for way in ways])[order]
    first = np.append(True, keys[1:] != keys[:-1])
    twice = np.flatnonzero(~first)
    nearer = np.maximum if descending else np.minimum
    values[twice - 1] = nearer(values[twice - 1], values[twice])
    places = twice - 1 if mutual else np.flatnonzero(first)
    rows, columns = np.divmod(keys[places], n)
    return type(matrix)((values[places], columns, np.searchsorted(rows, np.arange(n + 1))), shape=(n, n))


def _nearest_first(matrix: scipy.sparse.csr_matrix, *, descending: bool) -> scipy.sparse.csr_matrix:
    """Order the entries of each row, which are sorted by column number: self first, then by (distance, column)."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    keys = np.empty(len(rows), np.complex128)  # NumPy sorts complex numbers by real part, then by imaginary part
    keys.real = 2 * rows + (matrix.indices != rows)
    keys.imag = -matrix.data if descending else matrix.data
    order = np.argsort(keys, kind="stable")  # ten times as fast as lexsort, since the rows are already sorted
    return type(matrix)((matrix.data[order], matrix.indices[order], matrix.indptr), shape=matrix.shape)
