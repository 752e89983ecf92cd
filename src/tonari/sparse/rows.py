"""Checked sparse rows, and the ranks of their columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.inputs import LARGEST_FLOAT64
from tonari.inputs.arrays.kinds import dtype_name
from tonari.sparse import tuning

MOST = 2**31 - 1  # rows and columns: numbers of both are int32


@dataclass(frozen=True, eq=False)
class SparseRows:
    """Sparse rows with ascending columns, without repeated columns, zeros, NaN and infinity.

    Attributes
    ----------
    indptr : int64 array of shape (n + 1,)
    columns : int32 array of shape (indptr[n],)
    values : float32 or float64 array of the same shape
    d : int
        Number of columns.
    native : _native.SparseRows
        The same arrays, for kernels.
    copied : bool
        Whether an array is a copy of the caller's.
    """

    indptr: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int32]
    values: npt.NDArray[Any]
    d: int
    native: _native.SparseRows
    copied_bytes: int

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def shape(self) -> tuple[int, int]:
        """(n, d)"""
        return len(self), self.d

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64."""
        return self.values.dtype

    def toarray(self) -> npt.NDArray[Any]:
        """Return the rows as a dense array."""
        out = np.zeros(self.shape, self.dtype)
        out[np.repeat(np.arange(len(self)), np.diff(self.indptr)), self.columns] = self.values
        return out

    def astype(self, dtype: npt.DTypeLike) -> SparseRows:
        """Return the rows with values of another dtype."""
        if self.dtype == dtype:
            return self
        values = self.values.astype(dtype)
        return _made(self.indptr, self.columns, values, self.d, self.copied_bytes + values.nbytes)


def as_sparse_rows(x: Any, name: str) -> SparseRows:
    """Check a matrix of compressed rows of SciPy, and return its rows.

    Columns are sorted, values of the same column are summed in their order of storage, and zeros are dropped; the
    matrix itself does not change.

    Raises
    ------
    TypeError
        Another format, or another dtype than float32 and float64.
    ValueError
        Too many rows or columns, no columns, NaN, infinity or a magnitude above 1e150, or arrays that do not form a
        matrix.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> rows = as_sparse_rows(csr_array(([1.0, 2.0, 0.0, 3.0], [1, 0, 2, 1], [0, 4])), "points")
    >>> rows.columns.tolist(), rows.values.tolist()
    ([0, 1], [2.0, 4.0])
    """
    if getattr(x, "format", None) != "csr":
        raise TypeError(f"{name}: is a sparse {type(x).__name__}, expected compressed rows; use .tocsr()")
    shape = x.shape
    if len(shape) != 2:
        raise ValueError(f"{name}: has shape {shape}, expected (rows, columns); use .reshape(1, -1) for one row")
    if x.data.dtype not in (np.float32, np.float64):
        raise TypeError(
            f"{name}: sparse values are {dtype_name(x.data.dtype)}, expected float32 or float64; use "
            ".astype(numpy.float32)"
        )
    for number, axis in zip(shape, ("rows", "columns"), strict=True):
        if number > MOST:
            raise ValueError(f"{name}: has {number} {axis}, expected at most {MOST}")
    if not shape[1]:
        raise ValueError(f"{name}: has no columns")
    indptr = np.ascontiguousarray(x.indptr, np.int64)
    _check_indptr(indptr, shape[0], x, name)
    columns, values = x.indices[: indptr[-1]], np.ascontiguousarray(x.data[: indptr[-1]])
    if len(columns) and not 0 <= int(columns.min()) <= int(columns.max()) < shape[1]:
        raise ValueError(f"{name}: has a column beyond its {shape[1]} columns")
    columns = np.ascontiguousarray(columns, np.int32)
    _check_values(values, indptr, name)
    if not _ascend(columns, indptr):
        indptr, columns, values = _summed(indptr, columns, values)
        _check_values(values, indptr, name)
    if not values.all():
        nonzero = values != 0
        indptr = np.concatenate([np.zeros(1, np.int64), nonzero.cumsum()])[indptr]
        columns, values = columns[nonzero], values[nonzero]
    copies = [
        new.nbytes for new, old in ((indptr, x.indptr), (columns, x.indices), (values, x.data)) if not _of(new, old)
    ]
    return _made(indptr, columns, values, int(shape[1]), sum(copies))


def _made(
    indptr: npt.NDArray[np.int64], columns: npt.NDArray[np.int32], values: npt.NDArray[Any], d: int, copied: int
) -> SparseRows:
    return SparseRows(indptr, columns, values, d, _native.SparseRows(indptr, columns, values, d), copied)


def _of(new: npt.NDArray[Any], old: npt.NDArray[Any]) -> bool:
    return new is old or np.may_share_memory(new, old)


def _check_indptr(indptr: npt.NDArray[np.int64], n: int, x: Any, name: str) -> None:
    fits = len(indptr) == n + 1 and indptr[0] == 0 and bool((np.diff(indptr) >= 0).all())
    if not fits or indptr[-1] > min(len(x.indices), len(x.data)):
        raise ValueError(f"{name}: its indptr does not divide its values into {n} rows; use x.check_format()")


def _check_values(values: npt.NDArray[Any], indptr: npt.NDArray[np.int64], name: str) -> None:
    if not len(values):
        return
    low, high = float(values.min()), float(values.max())  # NaN if there is one
    if low >= -LARGEST_FLOAT64 and high <= LARGEST_FLOAT64:
        return
    bad = int((~(np.abs(values.astype(np.float64)) <= LARGEST_FLOAT64)).argmax())
    row = int(np.searchsorted(indptr, bad, side="right")) - 1
    raise ValueError(
        f"{name}: row {row} holds {values[bad]}, expected finite values"
        + (f" of at most {LARGEST_FLOAT64:g}; scale the rows down" if np.isfinite(values[bad]) else "; drop such rows")
    )


def _ascend(columns: npt.NDArray[np.int32], indptr: npt.NDArray[np.int64]) -> bool:
    """Whether the columns of each row ascend, each once."""
    if len(columns) < 2:
        return True
    steps = columns[1:] > columns[:-1]
    begins = indptr[1:-1]
    steps[begins[(begins > 0) & (begins < len(columns))] - 1] = True
    return bool(steps.all())


def _summed(
    indptr: npt.NDArray[np.int64], columns: npt.NDArray[np.int32], values: npt.NDArray[Any]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[Any]]:
    """Sort the columns of each row, and add values of the same column in their order of storage."""
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    order = np.lexsort((columns, rows))
    rows, columns, values = rows[order], columns[order], values[order]
    first = np.ones(len(columns), np.bool_)
    first[1:] = (columns[1:] != columns[:-1]) | (rows[1:] != rows[:-1])
    sums = np.zeros(int(first.sum()), values.dtype)
    with np.errstate(over="ignore"):  # an infinite sum is refused by its row
        np.add.at(sums, first.cumsum() - 1, values)
    counts = np.bincount(rows[first], minlength=len(indptr) - 1)
    return np.concatenate([np.zeros(1, np.int64), counts.cumsum()]), columns[first], sums


class Ranking:
    """The columns of points in descending order of the number of points that have them.

    Attributes
    ----------
    counts : int64 array of shape (ranked,)
        The number of points that have the column of each rank, in descending order.
    points : int32 array
        The rank of each entry of the points.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> rows = as_sparse_rows(csr_array([[0.0, 1.0], [1.0, 1.0]]), "points")
    >>> Ranking(rows).points.tolist()
    [0, 1, 0]
    """

    def __init__(self, points: SparseRows) -> None:
        table = points.d <= max(tuning.LEAST_TABLE, tuning.DENSE_TABLE * len(points.columns))
        if table:
            counts, used = np.bincount(points.columns, minlength=points.d), None
        else:
            used, counts = np.unique(points.columns, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        counts = counts[order]
        ranked = int(np.count_nonzero(counts))
        self.counts = counts[:ranked].astype(np.int64)
        self._used = used
        self._ranks = np.full(points.d if used is None else len(used), -1, np.int32)
        self._ranks[order[:ranked]] = np.arange(ranked, dtype=np.int32)
        self.points = self.of(points)

    def of(self, rows: SparseRows) -> npt.NDArray[np.int32]:
        """Return the rank of each entry of rows, -1 for columns that no point has."""
        if self._used is None:
            return self._ranks[rows.columns]
        if not len(self._used):
            return np.full(len(rows.columns), -1, np.int32)
        place = np.searchsorted(self._used, rows.columns)
        place[place == len(self._used)] = 0
        return np.where(self._used[place] == rows.columns, self._ranks[place], np.int32(-1)).astype(np.int32)
