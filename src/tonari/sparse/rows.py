"""Checked sparse rows, and the ranks of their columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.core.rows.slices import cut, in_room
from tonari.inputs import LARGEST_FLOAT64
from tonari.inputs.arrays.kinds import dtype_name
from tonari.inputs.arrays.rows import LARGEST_WHOLE, too_large
from tonari.sparse import tuning

MOST = 2**31 - 1  # largest number of rows and of columns, so that row and column numbers fit in int32
Int64 = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class SparseRows:
    """Checked sparse rows: the columns of each row ascend without repetition, and values are finite and not zero.

    Attributes
    ----------
    indptr : int64 array of shape (n + 1,)
        Row i has the entries from indptr[i] to indptr[i + 1] of `columns` and `values`.
    columns : int32 array of shape (indptr[n],)
    values : float32 or float64 array of the same shape
    d : int
        Number of columns.
    native : _native.SparseRows
        The same arrays, for kernels.
    copied_bytes : int
        The bytes of those arrays that were copied, and are not the caller's.
    """

    indptr: Int64
    columns: Int32
    values: npt.NDArray[Any]
    d: int
    native: _native.SparseRows
    copied_bytes: int

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def __reduce__(self) -> tuple[Any, ...]:
        return sparse_rows, (self.indptr, self.columns, self.values, self.d, self.nbytes)

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays together."""
        return self.indptr.nbytes + self.columns.nbytes + self.values.nbytes

    @property
    def shape(self) -> tuple[int, int]:
        """The shape (n, d)."""
        return len(self), self.d

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the values, float32 or float64."""
        return self.values.dtype

    def toarray(self) -> npt.NDArray[Any]:
        """Return the rows as a dense array; no other memory grows with the number of entries."""
        out = np.zeros(self.shape, self.dtype)
        for part in row_blocks(self.indptr):
            ends = self.indptr[part.start : part.stop + 1]
            rows, entries = np.repeat(np.arange(part.start, part.stop), np.diff(ends)), slice(ends[0], ends[-1])
            out[rows, self.columns[entries]] = self.values[entries]
        return out

    def take(self, ids: npt.NDArray[np.integer[Any]]) -> SparseRows:
        """Return a copy of the rows at the row numbers `ids`."""
        lengths = np.diff(self.indptr)[ids]
        indptr = _indptr(lengths)
        entries = np.arange(indptr[-1]) + np.repeat(self.indptr[ids] - indptr[:-1], lengths)
        columns, values = self.columns[entries], self.values[entries]
        return sparse_rows(indptr, columns, values, self.d, indptr.nbytes + columns.nbytes + values.nbytes)

    def owned(self) -> SparseRows:
        """Return the rows in arrays that are not the caller's, copied if necessary."""
        return self if self.copied_bytes >= self.nbytes else joined_rows([self])

    def scaled(self, weights: npt.NDArray[np.float64], factors: npt.NDArray[np.float64]) -> SparseRows:
        """Return the rows in float64 with columns multiplied by `factors`, without the columns of weight 0.

        `factors` has a factor for each column of positive weight.
        """
        positive = weights > 0
        places = np.cumsum(positive, dtype=np.int32) - np.int32(1)
        columns, values = np.empty_like(self.columns), np.empty(len(self.columns))
        lengths, kept = np.zeros(len(self), np.int64), 0
        for part in row_blocks(self.indptr):
            ends = self.indptr[part.start : part.stop + 1]
            entries = slice(ends[0], ends[-1])
            places_of = places[self.columns[entries]]
            with np.errstate(over="ignore", under="ignore"):  # infinite values are refused below
                products = self.values[entries] * factors[places_of]
            used = positive[self.columns[entries]] & (products != 0)
            before = np.concatenate([np.zeros(1, np.int64), np.cumsum(used, dtype=np.int64)])
            lengths[part] = np.diff(before[ends - ends[0]])
            end = kept + int(before[-1])
            columns[kept:end], values[kept:end] = places_of[used], products[used]
            kept = end
        indptr, copied = _indptr(lengths), columns.nbytes + values.nbytes
        _check_values(values[:kept], indptr, "rows times weights")
        return sparse_rows(indptr, columns[:kept], values[:kept], len(factors), indptr.nbytes + copied)


def as_sparse_rows(x: Any, name: str, *, sets: bool = False) -> SparseRows:
    """Check a matrix of SciPy in CSR format, and return its rows.

    In each row, entries are sorted by column, several values of the same column are added in their order of storage,
    and zeros are dropped; the matrix itself does not change. Whole numbers become float32.

    Parameters
    ----------
    x : matrix or array of SciPy, or SparseRows, which are returned unchanged
    name : str
        The name of the matrix in messages.
    sets : bool
        Whether rows are sets of columns: values may also be bool, and all become 1.

    Raises
    ------
    TypeError
        The format is not CSR, or the dtype is not float32, float64 or whole numbers.
    ValueError
        The matrix has no columns or too many rows or columns; a value is NaN, infinite, above 1e150 in magnitude, or a
        whole number beyond 2**24; or its arrays are inconsistent.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> rows = as_sparse_rows(csr_array(([1.0, 2.0, 0.0, 3.0], [1, 0, 2, 1], [0, 4])), "points")
    >>> rows.columns.tolist(), rows.values.tolist()
    ([0, 1], [2.0, 4.0])
    """
    if isinstance(x, SparseRows):
        return x
    if getattr(x, "format", None) != "csr":
        raise TypeError(f"{name}: is a sparse {type(x).__name__}, expected compressed rows; use .tocsr()")
    shape = x.shape
    if len(shape) != 2:
        raise ValueError(f"{name}: has shape {shape}, expected (rows, columns); use .reshape(1, -1) for one row")
    if x.data.dtype not in (np.float32, np.float64) and x.data.dtype.kind not in ("iub" if sets else "iu"):
        raise TypeError(
            f"{name}: sparse values are {dtype_name(x.data.dtype)}, expected float32, float64 or whole numbers; use "
            ".astype(numpy.float32)" + (", or metric='jaccard' for sets" if x.data.dtype.kind == "b" else "")
        )
    for number, axis in zip(shape, ("rows", "columns"), strict=True):
        if number > MOST:
            raise ValueError(f"{name}: has {number} {axis}, expected at most {MOST}")
    if not shape[1]:
        raise ValueError(f"{name}: has no columns")
    indptr = np.ascontiguousarray(x.indptr, np.int64)
    _check_indptr(indptr, shape[0], x, name)
    columns, values = x.indices[: indptr[-1]], x.data[: indptr[-1]]
    if values.dtype.kind == "b":
        values = values.astype(np.float32)
    elif values.dtype.kind in "iu" and not sets:
        values = _from_whole(values, columns, indptr, name)
    values = np.ascontiguousarray(values)
    if len(columns) and not 0 <= int(columns.min()) <= int(columns.max()) < shape[1]:
        raise ValueError(f"{name}: has a column beyond its {shape[1]} columns")
    columns = np.ascontiguousarray(columns, np.int32)
    _check_values(values, indptr, name)
    if not (_ascend(columns, indptr) and values.all()):
        indptr, columns, values = _in_order(indptr, columns, values)
        _check_values(values, indptr, name)
    if sets:
        values = np.ones(len(columns), np.float32)
    arrays = ((indptr, x.indptr), (columns, x.indices), (values, x.data))
    copied = sum((new if new.base is None else new.base).nbytes for new, old in arrays if not _of(new, old))
    return sparse_rows(indptr, columns, values, int(shape[1]), copied)


def sparse_rows(indptr: Int64, columns: Int32, values: npt.NDArray[Any], d: int, copied_bytes: int) -> SparseRows:
    """Return SparseRows from arrays whose columns are known to ascend; the compiled module checks this again."""
    return SparseRows(indptr, columns, values, d, _native.SparseRows(indptr, columns, values, d), copied_bytes)


def joined_rows(parts: Sequence[SparseRows]) -> SparseRows:
    """Concatenate rows with the same number of columns and the same dtype, in new arrays."""
    lengths = np.concatenate([np.diff(part.indptr) for part in parts])
    columns, values = (
        np.concatenate([getattr(part, name)[: part.indptr[-1]] for part in parts]) for name in ("columns", "values")
    )
    indptr = _indptr(lengths)
    return sparse_rows(indptr, columns, values, parts[0].d, indptr.nbytes + columns.nbytes + values.nbytes)


def no_sparse_rows(d: int, dtype: npt.DTypeLike) -> SparseRows:
    """Return SparseRows without any row.

    >>> no_sparse_rows(3, np.float32).shape
    (0, 3)
    """
    return sparse_rows(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, dtype), d, 0)


def _indptr(lengths: npt.NDArray[np.integer[Any]]) -> Int64:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])


def _of(new: npt.NDArray[Any], old: npt.NDArray[Any]) -> bool:
    return new is old or np.may_share_memory(new, old)


def _from_whole(
    values: npt.NDArray[Any], columns: npt.NDArray[Any], indptr: Int64, name: str
) -> npt.NDArray[np.float32]:
    """Convert whole numbers to float32; raise ValueError if one exceeds 2**24 in magnitude and may not be exact."""
    if (
        values.dtype.itemsize > 2
        and len(values)
        and not -LARGEST_WHOLE <= values.min() <= values.max() <= LARGEST_WHOLE
    ):
        bad = int(((values > LARGEST_WHOLE) | (values < -LARGEST_WHOLE)).argmax())
        raise too_large(values[bad], dtype_name(values.dtype), name, _row_of(indptr, bad), int(columns[bad]))
    return values.astype(np.float32)


def _row_of(indptr: Int64, entry: int) -> int:
    return int(np.searchsorted(indptr, entry, side="right")) - 1


def _check_indptr(indptr: npt.NDArray[np.int64], n: int, x: Any, name: str) -> None:
    fits = len(indptr) == n + 1 and indptr[0] == 0 and bool((np.diff(indptr) >= 0).all())
    if not fits or indptr[-1] > min(len(x.indices), len(x.data)):
        raise ValueError(f"{name}: its indptr does not divide its values into {n} rows; use x.check_format()")


def _check_values(values: npt.NDArray[Any], indptr: npt.NDArray[np.int64], name: str) -> None:
    if not len(values) or values.dtype.kind != "f":
        return
    low, high = float(values.min()), float(values.max())  # both are NaN if any value is
    if low >= -LARGEST_FLOAT64 and high <= LARGEST_FLOAT64:
        return
    bad = int((~(np.abs(values.astype(np.float64)) <= LARGEST_FLOAT64)).argmax())
    raise ValueError(
        f"{name}: row {_row_of(indptr, bad)} holds {values[bad]}, expected finite values"
        + (f" of at most {LARGEST_FLOAT64:g}; scale the rows down" if np.isfinite(values[bad]) else "; drop such rows")
    )


def _ascend(columns: npt.NDArray[np.int32], indptr: npt.NDArray[np.int64]) -> bool:
    """Return whether the columns of each row ascend without repetition."""
    if len(columns) < 2:
        return True
    steps = columns[1:] > columns[:-1]
    begins = indptr[1:-1]
    steps[begins[(begins > 0) & (begins < len(columns))] - 1] = True
    return bool(steps.all())


def _in_order(indptr: Int64, columns: Int32, values: npt.NDArray[Any]) -> tuple[Int64, Int32, npt.NDArray[Any]]:
    """Sort the entries of each row by column, add values of the same column in their order of storage, and drop zeros.

    Rows are converted in blocks, so that temporary memory does not grow with the number of rows.
    """
    ordered, sums = np.empty_like(columns), np.empty_like(values)
    lengths, kept = np.zeros(len(indptr) - 1, np.int64), 0
    for part in row_blocks(indptr):
        entries = slice(indptr[part.start], indptr[part.stop])
        rows = np.repeat(np.arange(part.stop - part.start), np.diff(indptr[part.start : part.stop + 1]))
        rows, some, added = _summed(rows, columns[entries], values[entries])
        ordered[kept : kept + len(some)], sums[kept : kept + len(some)] = some, added
        lengths[part] = np.bincount(rows, minlength=part.stop - part.start)
        kept += len(some)
    return _indptr(lengths), ordered[:kept], sums[:kept]


def row_blocks(indptr: Int64) -> Iterator[slice]:
    """Cut rows into consecutive blocks of at most ``tuning.ORDERED_ENTRIES`` entries, or of a single longer row."""
    return in_room(np.diff(indptr), tuning.ORDERED_ENTRIES)


def _summed(
    rows: npt.NDArray[Any], columns: Int32, values: npt.NDArray[Any]
) -> tuple[npt.NDArray[Any], Int32, npt.NDArray[Any]]:
    """Add values of the same row and column, and return row, column and value of the nonzero sums, in order."""
    order = np.lexsort((columns, rows))
    rows, columns, values = rows[order], columns[order], values[order]
    first = np.ones(len(columns), np.bool_)
    first[1:] = (columns[1:] != columns[:-1]) | (rows[1:] != rows[:-1])
    sums = np.zeros(int(first.sum()), values.dtype)
    with np.errstate(over="ignore"):  # the caller refuses infinite sums, with their row number
        np.add.at(sums, first.cumsum() - 1, values)
    nonzero = sums != 0
    return rows[first][nonzero], columns[first][nonzero], sums[nonzero]


class Ranking:
    """The ranks of columns, in descending order of the number of points that have them.

    Attributes
    ----------
    counts : int64 array of shape (ranked,)
        The number of points that have the column of each rank, in descending order.
    points : int32 array
        The rank of each entry's column, for all entries of the points.
    table_bytes : int
        The largest size of the tables of columns, while ranks are computed.

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
        self.table_bytes = 24 * len(order)  # while ranks are computed; later the tables are far smaller
        self.points = self.of(points)

    def of(self, rows: SparseRows) -> npt.NDArray[np.int32]:
        """Return the rank of each entry's column, for all entries of some rows; -1 for columns that no point has."""
        if self._used is None:
            return self._ranks[rows.columns]
        if not len(self._used):
            return np.full(len(rows.columns), -1, np.int32)
        ranks = np.empty(len(rows.columns), np.int32)
        for part in cut(len(ranks), tuning.ORDERED_ENTRIES):
            place = np.searchsorted(self._used, rows.columns[part])
            place[place == len(self._used)] = 0
            ranks[part] = np.where(self._used[place] == rows.columns[part], self._ranks[place], np.int32(-1))
        return ranks
