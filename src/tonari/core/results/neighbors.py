"""Neighbour lists, the result of every search for the k nearest points."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

_INT32, _INT64 = np.dtype(np.int32), np.dtype(np.int64)
_FLOAT32, _FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
_VALUES = {"float32": _FLOAT32, "float64": _FLOAT64}


class Neighbors(NamedTuple):
    """The k nearest points of each of m queries.

    The arrays belong to the same library as the queries (NumPy, torch, CuPy or JAX), and are on the same device.

    Attributes
    ----------
    distances : float32 or float64 of shape (m, k)
        Ascending in each row (``inner_product``: similarities, descending). ``inf`` (``-inf``) where missing.
    indices : int32 of shape (m, k), or int64 for 2**31 points or more
        Row numbers of the points. Points at equal distances are in ascending order of index, and no point appears twice
        in a row. A missing entry has index -1; missing entries come last.

    Examples
    --------
    >>> import numpy as np
    >>> from tonari.core.results.neighbors import Neighbors
    >>> found = Neighbors(np.array([[0.5, 2.0]], np.float32), np.array([[7, 3]], np.int32))
    >>> found.indices[:, 0]
    array([7], dtype=int32)
    """

    distances: Any
    indices: Any

    @classmethod
    def empty(cls, m: int, k: int, n: int, *dtypes: Any) -> Neighbors:
        """Allocate arrays for the k nearest of n points to each of m queries, without initial values.

        Parameters
        ----------
        m, k, n : int
        *dtypes : NumPy dtypes or their names
            The dtypes of points and queries.

        Examples
        --------
        >>> found = Neighbors.empty(2, 5, 100, "uint8", "float64")
        >>> found.distances.shape, found.distances.dtype, found.indices.dtype
        ((2, 5), dtype('float64'), dtype('int32'))
        """
        shape = m, k
        return cls(np.empty(shape, _VALUES[value_dtype(*dtypes)]), np.empty(shape, index_dtype(n)))


def value_dtype(*dtypes: Any) -> str:
    """Return the dtype of distances, given the dtypes of points and queries: float64 if one is float64, else float32.

    >>> value_dtype("uint8", np.dtype("float64")), value_dtype("float16")
    ('float64', 'float32')
    """
    for dtype in dtypes:  # to compare a dtype with a name takes ten times as long as with a dtype
        if dtype == ("float64" if type(dtype) is str else _FLOAT64):
            return "float64"
    return "float32"


def index_dtype(n: int) -> np.dtype[Any]:
    """Return the dtype of indices into n points: int32, or int64 for 2**31 points or more.

    >>> from tonari.core.results.neighbors import index_dtype
    >>> index_dtype(10), index_dtype(2**31)
    (dtype('int32'), dtype('int64'))
    """
    return _INT32 if n < 2**31 else _INT64


def no_neighbors(k: int, n: int, value: npt.DTypeLike) -> Neighbors:
    """Return the result of a search with no queries: arrays of shape (0, k).

    The number of points, `n`, determines the dtype of indices; `value` is the dtype of distances.

    >>> no_neighbors(3, 10, "float32").indices.shape
    (0, 3)
    """
    return Neighbors(np.zeros((0, k), value), np.zeros((0, k), index_dtype(n)))


def first_repeated_row(indices: npt.NDArray[Any]) -> int:
    """Return the first row of an (m, k) index array that repeats an index other than -1; -1 if there is none.

    >>> import numpy as np
    >>> from tonari.core.results.neighbors import first_repeated_row
    >>> first_repeated_row(np.array([[4, -1, -1], [2, 0, 2]]))
    1
    """
    ids = np.sort(indices, axis=1)
    repeated = ((ids[:, 1:] == ids[:, :-1]) & (ids[:, 1:] >= 0)).any(axis=1)
    return int(repeated.argmax()) if repeated.any() else -1
