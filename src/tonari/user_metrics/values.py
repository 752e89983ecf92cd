"""The caller's own distances, computed or read for a block of queries and a block of points."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Function = Callable[[Array, Array], Any]
# A function of two int64 arrays, of queries and of points, that are broadcast together: it returns which pairs are
# allowed.
Allowed = Callable[[npt.NDArray[np.int64], npt.NDArray[np.int64]], npt.NDArray[np.bool_]]


class Values(Protocol):
    """The interface of the caller's own distances of m queries to n points.

    Attributes
    ----------
    m, n : int
        The number of queries and of points.
    width : int
        The number of values that are read for each point to get a distance.
    dtype : str
        The dtype of returned distances, "float32" or "float64".
    name : str
        The name of the metric in graphs and messages.
    """

    @property
    def m(self) -> int:
        """The number of queries."""

    @property
    def n(self) -> int:
        """The number of points."""

    @property
    def width(self) -> int:
        """The number of values that are read for each point to get a distance."""

    @property
    def dtype(self) -> str:
        """The dtype of returned distances."""

    @property
    def name(self) -> str:
        """The name of the metric in graphs and messages."""

    def block(self, rows: slice, columns: slice) -> Array:
        """Return the distances of a slice of the queries to a slice of the points, not checked for NaN."""

    def listed(self, ids: npt.NDArray[np.int64]) -> Array:
        """Return the distance of query i to each point ``ids[i, j]``, for ids of shape (m, k)."""

    def some(self, rows: npt.NDArray[np.int64]) -> Values:
        """Return the distances of the queries `rows` only, with the same interface."""


@dataclass(frozen=True)
class FunctionValues:
    """Distances computed by a function of one query and a block of points, in float64.

    Attributes
    ----------
    function : callable(row of shape (d,), rows of shape (c, d)) -> distances of shape (c,)
    queries, points : arrays of shape (m, d) and (n, d)
    name : str
    """

    function: Function
    queries: Array
    points: Array
    name: str

    dtype = "float64"

    @property
    def m(self) -> int:
        return len(self.queries)

    @property
    def n(self) -> int:
        return len(self.points)

    @property
    def width(self) -> int:
        return int(self.points.shape[1])

    def block(self, rows: slice, columns: slice) -> Array:
        points = _read_only(self.points[columns])
        found = np.empty((rows.stop - rows.start, len(points)))
        for row, query in zip(found, _read_only(self.queries[rows]), strict=True):
            row[:] = self._checked(self.function(query, points), len(points))
        return found

    def listed(self, ids: npt.NDArray[np.int64]) -> Array:
        found = np.empty(ids.shape)
        for row, query, near in zip(found, _read_only(self.queries), ids, strict=True):
            row[:] = self._checked(self.function(query, _read_only(self.points[near])), len(near))
        return found

    def some(self, rows: npt.NDArray[np.int64]) -> FunctionValues:
        return dataclasses.replace(self, queries=self.queries[rows])

    def _checked(self, given: Any, count: int) -> Array:
        found = np.asarray(given)
        if found.shape != (count,):
            raise ValueError(
                f"metric={self.name!r}: returned the shape {found.shape} for a row of {self.width} numbers and a block "
                f"of {count} rows, expected ({count},), a distance for each row of the block; for a function f of two "
                "rows pass lambda a, B: numpy.array([f(a, b) for b in B])"
            )
        if found.dtype.kind not in "iuf":
            raise TypeError(f"metric={self.name!r}: returned {found.dtype}, expected real numbers")
        return found


@dataclass(frozen=True)
class MatrixValues:
    """Distances read from a matrix, which may be a memory map; row i has the distances of query i.

    Attributes
    ----------
    matrix : array of shape (m, n)
    """

    matrix: Array

    name = "precomputed"
    width = 1

    @property
    def m(self) -> int:
        return len(self.matrix)

    @property
    def n(self) -> int:
        return int(self.matrix.shape[1])

    @property
    def dtype(self) -> str:
        return "float32" if self.matrix.dtype.kind == "f" and self.matrix.dtype.itemsize <= 4 else "float64"

    def block(self, rows: slice, columns: slice) -> Array:
        return np.array(self.matrix[rows, columns], self.dtype, order="C")

    def listed(self, ids: npt.NDArray[np.int64]) -> Array:
        return np.array(self.matrix[np.arange(self.m)[:, None], ids], self.dtype)

    def some(self, rows: npt.NDArray[np.int64]) -> MatrixValues:
        return MatrixValues(self.matrix[rows])


def strip(values: Values, rows: slice, columns: slice, step: int, *, own: bool) -> Array:
    """Return the distances of a slice of the queries to a slice of the points; raise ValueError for NaN or -inf.

    Parameters
    ----------
    step : int
        The number of points in each call of :meth:`Values.block`.
    own : bool
        Whether the queries are the points. The distance of a row to itself may then have any value.
    """
    parts = [
        values.block(rows, slice(begin, min(begin + step, columns.stop)))
        for begin in range(columns.start, columns.stop, step)
    ]
    found = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
    bad = np.isnan(found) | (found == -np.inf)
    if own:
        bad[_own(rows, columns)] = False
    if bad.any():
        at, column = (int(each) for each in np.argwhere(bad)[0])
        raise ValueError(
            f"metric={values.name!r}: the distance of query {rows.start + at} and point {columns.start + column} is "
            f"{found[at, column]}, expected a number, or inf; give pairs without a distance inf"
        )
    return found


def forbid(found: Array, allowed: Allowed, rows: npt.NDArray[np.int64], columns: npt.NDArray[np.int64]) -> Array:
    """Replace the distances of pairs that are not allowed by NaN, in place, and return the array."""
    found[~allowed(rows[:, None], columns[None])] = np.nan
    return found


def without_own(found: Array, rows: slice, columns: slice) -> Array:
    """Replace the distance of each row to itself by NaN, in place, and return the array."""
    found[_own(rows, columns)] = np.nan
    return found


def own_values(found: Array, rows: slice, columns: slice) -> Array:
    """Return a copy of the distances of rows to themselves."""
    return np.array(found[_own(rows, columns)])


def _own(rows: slice, columns: slice) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return index arrays that select the entries of a block in which a row meets itself."""
    every = np.arange(rows.start, rows.stop)
    return every - rows.start, every - columns.start


def _read_only(rows: Array) -> Array:
    view = rows.view()
    view.flags.writeable = False
    return view
