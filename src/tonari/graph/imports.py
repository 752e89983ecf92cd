"""Graphs from the results of other libraries: the import methods of KNNGraph, and the lists that they make.

Given lists may be in any order, and may contain the point itself in any column.
"""

from __future__ import annotations

from typing import Any, TypeVar

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


Graph = TypeVar("Graph", bound="MadeFrom")
_METHOD = "imported"


class MadeFrom:
    """Imports from other libraries; the constructor of KNNGraph checks the lists."""

    @classmethod
    def from_arrays(
        cls: type[Graph], indices: Any, distances: Any, *, metric: str = "euclidean", include_self: bool = False
    ) -> Graph:
        """Make a graph from lists in any order, such as those of pynndescent, UMAP or cuML.

        Parameters
        ----------
        indices : integers of shape (n, k)
            -1 where a neighbour is missing.
        distances : numbers of shape (n, k)
            Distances; not squared for "euclidean". float16 becomes float32, and whole numbers become float64.
        metric : str
            The metric of the distances. They are not recomputed.
        include_self : bool
            True: each list must contain its own point. The point moves to column 0, and its distance is set to the
        metric's distance of a point from itself. False: each list's own point is removed from whichever column it
        is in. If at least one list contained its own point, the graph has one column less. A list that did not
        contain it, which happens among duplicates, then loses its last neighbour.

        Returns
        -------
        KNNGraph
            In host memory, with ``method="imported"``. Lists are sorted by (distance, index).

        Raises
        ------
        TypeError
            `indices` are not whole numbers; the arguments may be in the wrong order.
        ValueError
            A row lists a point twice, has an index that is out of range, or has a distance that is NaN or negative; or
            include_self is True and a row lacks its own point. The message names the row.

        Examples
        --------
        >>> import numpy as np, tonari
        >>> indices, distances = np.array([[0, 1], [1, 0], [1, 2]]), np.array([[0.0, 1.0], [0.0, 1.0], [2.0, 0.0]])
        >>> tonari.KNNGraph.from_arrays(indices, distances).indices.ravel().tolist()
        [1, 0, 1]
        """
        return cls._made(metric, include_self, from_arrays(indices, distances, metric, include_self))

    @classmethod
    def from_csr(cls: type[Graph], matrix: Any, *, metric: str = "euclidean", include_self: bool = False) -> Graph:
        """Make a graph from a sparse matrix whose stored entry (i, j) is the distance from i to its neighbour j.

        Such matrices are returned by scikit-learn's ``kneighbors_graph(mode="distance")`` and transformers of
        neighbours, and stored in ``adata.obsp["distances"]``.

        Parameters
        ----------
        matrix : SciPy sparse matrix or array of shape (n, n)
            Stored zeros are neighbours at distance 0. Rows may differ in length; the graph has as many columns as the
            longest row has entries, not counting the point itself.
        metric, include_self
            As for :meth:`from_arrays`.

        Returns
        -------
        KNNGraph
            As for :meth:`from_arrays`; missing neighbours are -1, at the end.

        Raises
        ------
        TypeError
            The matrix is not sparse, or does not contain numbers.
        ValueError
            The matrix is empty or not square; or as for :meth:`from_arrays`.

        Examples
        --------
        >>> import numpy as np, tonari
        >>> graph = tonari.knn_graph(np.array([[0.0], [1.0], [3.0]], dtype=np.float32), k=1)
        >>> tonari.KNNGraph.from_csr(graph.to_csr(include_self=True)).indices.ravel().tolist()
        [1, 0, 1]
        """
        return cls._made(metric, include_self, from_csr(matrix, metric, include_self))

    @classmethod
    def from_faiss(
        cls: type[Graph], distances: Any, indices: Any, *, metric: str = "euclidean", include_self: bool = False
    ) -> Graph:
        """Make a graph from the result of a faiss search: ``KNNGraph.from_faiss(*index.search(x, k + 1))``.

        The queries of that search must be the points of the index.

        Parameters
        ----------
        distances : float32 of shape (n, k + 1)
            For ``faiss.METRIC_L2`` these are **squared** distances: "euclidean" takes their square roots, "sqeuclidean"
            keeps them. Values that are negative by rounding become 0.
        indices : int64 of shape (n, k + 1)
            -1 where a neighbour is missing.
        metric : str
            "euclidean" or "sqeuclidean" (METRIC_L2), "inner_product", "l1", "linf" or "canberra".
        include_self : bool
            As for :meth:`from_arrays`.

        Returns
        -------
        KNNGraph
            A graph of k columns, as for :meth:`from_arrays`; the point itself is found by its row number and removed.

        Raises
        ------
        TypeError
            The arguments are in the wrong order: indices first.
        ValueError
            faiss has no such metric; or as for :meth:`from_arrays`.

        Examples
        --------
        >>> import numpy as np, tonari
        >>> D, I = np.array([[0, 4], [0, 4]], np.float32), np.array([[0, 1], [1, 0]])
        >>> tonari.KNNGraph.from_faiss(D, I).distances.ravel().tolist()
        [2.0, 2.0]
        """
        return cls._made(metric, include_self, from_faiss(distances, indices, metric, include_self))

    @classmethod
    def _made(cls: type[Graph], metric: str, include_self: bool, lists: tuple[Any, Any]) -> Graph:
        return cls(*lists, metric, _METHOD, include_self=include_self)  # type: ignore[call-arg]
