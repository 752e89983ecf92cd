"""Checks for refused values: NaN, infinity, float64 beyond 1e150, and negative values for some metrics.

On the CPU, values are checked before any work. On a GPU, this would need a separate pass and a wait for the device.
There, the kernels that pack the rows flag refused values, and the search raises the error when it ends, with the same
message.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.core.process.workers import Workers, default_threads
from tonari.core.rows.slices import cut
from tonari.inputs import tuning
from tonari.inputs.arrays.bfloat16 import as_floats, held
from tonari.inputs.arrays.kinds import kind_of

# The largest accepted float64 value: the sum of squared differences over the columns of any row that fits in memory is
# then finite.
LARGEST_FLOAT64 = 1e150

NO_ROW = 1 << 62  # value of a flag if no row is refused; otherwise a flag is the row number of the first refused row

T = TypeVar("T")


def check_finite(rows: npt.NDArray[Any], name: str, threads: int | None = None) -> None:
    """Raise ValueError for the first row with NaN, infinity or a float64 value beyond 1e150.

    `threads` is the number of threads; by default, it depends on the amount of work.
    """
    few = rows.nbytes <= tuning.CHECKED_BYTES
    if few and rows.itemsize == 8 and np.vdot(rows, rows) <= LARGEST_FLOAT64**2:
        return  # A refused value would make the sum of squares NaN, infinite or too large, so all values are accepted.
    find = _native.first_nonfinite_row
    row = find(rows, 0, len(rows)) if few else _first_row(find, rows, threads)
    if row >= 0:
        raise _NOT_FINITE.error(rows[row], row, name)
    if rows.itemsize != 8:
        return
    if _overflows(rows, threads):
        row = int(((rows.min(axis=1) < -LARGEST_FLOAT64) | (rows.max(axis=1) > LARGEST_FLOAT64)).argmax())
        raise _OVERFLOWING.error(rows[row], row, name)


def _overflows(rows: npt.NDArray[Any], threads: int | None) -> bool:
    def look(rows: npt.NDArray[Any]) -> bool:
        return bool(max(rows.max(), -rows.min()) > LARGEST_FLOAT64)

    return rows.itemsize == 8 and len(rows) > 0 and any(_by_parts(lambda part: look(rows[part]), rows, threads))


def _first_row(find: Callable[[npt.NDArray[Any], int, int], int], rows: npt.NDArray[Any], threads: int | None) -> int:
    """Search the rows in parts by ``find(rows, begin, end)``; return the smallest row number found, or -1."""
    found = _by_parts(lambda part: find(rows, part.start, part.stop), rows, threads)
    return min((row for row in found if row >= 0), default=-1)


def _by_parts(look: Callable[[slice], T], rows: npt.NDArray[Any], threads: int | None) -> list[T]:
    """Apply a function to slices that together cover all rows, on several threads if there are many rows."""
    if rows.nbytes <= tuning.CHECKED_BYTES:
        return [look(slice(0, len(rows)))]
    parts = cut(len(rows), max(1, tuning.CHECKED_BYTES * len(rows) // rows.nbytes))
    return Workers(threads or default_threads(tuning.BYTE_SECONDS * rows.nbytes)).map(look, parts)


def check_gaps(rows: npt.NDArray[Any], name: str) -> None:
    """Raise ValueError for infinity or a value beyond 1e150 in rows that may have missing values (NaN).

    >>> check_gaps(np.array([[0.0, np.nan], [np.inf, 1.0]]), "points")
    Traceback (most recent call last):
    ValueError: points: row 1 has an infinite value (inf in column 0); use NaN for a missing value
    """
    if rows.dtype.kind in "iu":
        return
    for kind in (_INFINITE, _OVERFLOWING) if rows.dtype == np.float64 else (_INFINITE,):
        error = kind.first_error(rows, name, 0)
        if error is not None:
            raise error


def check_nonnegative(x: npt.NDArray[Any], name: str, threads: int | None = None) -> None:
    """Raise ValueError if a result of :func:`as_rows` has a negative value, for which some metrics are not defined.

    >>> import numpy as np
    >>> from tonari.inputs import check_nonnegative
    >>> check_nonnegative(np.array([[0.5, 1.0], [2.0, -1.0]]), "points")
    Traceback (most recent call last):
    ValueError: points: row 1 has a negative value (-1.0 in column 1); the metric compares counts or histograms, which \
are at least 0
    """
    row = _first_row(_native.first_negative_row, x, threads)
    if row >= 0:
        raise _NEGATIVE.error(x[row], row, name)


def check_values(rows: Any, name: str, *, first: int, nonnegative: bool) -> None:
    """Raise ValueError for the first row with NaN, infinity, a value beyond 1e150 or, if `nonnegative`, below 0.

    The message numbers the rows from `first`.

    >>> import numpy as np
    >>> from tonari.inputs import check_values
    >>> check_values(np.array([[0.0], [np.nan]]), "queries", first=100, nonnegative=False)
    Traceback (most recent call last):
    ValueError: queries: row 101 has a value that is not finite (nan in column 0); drop such rows or fill them first
    """
    for kind in (_NOT_FINITE, _OVERFLOWING, _NEGATIVE) if nonnegative else (_NOT_FINITE, _OVERFLOWING):
        error = kind.first_error(rows, name, first)
        if error is not None:
            raise error


def check_held_values(rows: npt.NDArray[Any], name: str, *, first: int, nonnegative: bool) -> None:
    """Check a result of :func:`as_rows` like :func:`check_values`, but fast and without temporary memory."""
    bad = _native.first_nonfinite_row(rows) >= 0 or _overflows(rows, 1)
    if bad or (nonnegative and _native.first_negative_row(rows) >= 0):
        check_values(rows, name, first=first, nonnegative=nonnegative)


def check_flags(flags: Any, rows: Any, name: str, *, first: int = 0) -> None:
    """Raise ValueError if kernels have flagged a refused value in rows on CUDA; the host waits for the kernels.

    The row numbers that kernels see are those within a batch or a sample, so all rows are searched for the first
    refused row.

    Parameters
    ----------
    flags : int64 tensor of shape (3,), or three ints
        A flag for values that are not finite, one for values beyond 1e150, and one for negative values. A flag is less
        than 2**62 if there is such a value, else 2**62.
    rows : array or tensor of shape (n, d)
        All rows that the kernels read.
    name : str
        The name of the rows in messages.
    first : int
        The number of ``rows[0]`` among all rows of the caller's array.

    Raises
    ------
    ValueError
        A row was flagged; the message is that of :func:`as_rows` or :func:`check_nonnegative`.

    Examples
    --------
    >>> import numpy as np
    >>> from tonari.inputs import check_flags
    >>> check_flags([2**62, 2**62, 2**62], np.ones((2, 1)), "points")
    >>> check_flags([0, 2**62, 2**62], np.array([[0.0], [np.nan]]), "points", first=100)
    Traceback (most recent call last):
    ValueError: points: row 101 has a value that is not finite (nan in column 0); drop such rows or fill them first
    """
    noted: Sequence[int] = flags.tolist() if kind_of(flags) == "torch" else flags
    for flag, kind in zip(noted, (_NOT_FINITE, _OVERFLOWING, _NEGATIVE), strict=True):
        if flag < NO_ROW:
            error = kind.first_error(rows, name, first)
            if error is None:
                raise AssertionError(f"{name}: {kind.what} was flagged, but no row has it")
            raise error


@dataclass(frozen=True)
class _Refused:
    """A kind of refused value: a test for it, with a description and a fix for messages."""

    is_bad: Callable[[npt.NDArray[Any]], npt.NDArray[np.bool_]]
    what: str
    fix: str

    def error(self, values: npt.NDArray[Any], row: int, name: str) -> ValueError:
        values = as_floats(values)
        column = int(self.is_bad(values).argmax())
        return ValueError(f"{name}: row {row} has {self.what} ({values[column]} in column {column}); {self.fix}")

    def first_error(self, rows: Any, name: str, first: int) -> ValueError | None:
        step = max(1, tuning.CHECKED_VALUES // rows.shape[1])
        for begin in range(0, len(rows), step):
            part = rows[begin : begin + step]
            values = as_floats(held(part.cpu() if kind_of(part) == "torch" else part))
            bad = self.is_bad(values).any(axis=1)
            if bad.any():
                row = int(bad.argmax())
                return self.error(values[row], first + begin + row, name)
        return None


_NOT_FINITE = _Refused(
    lambda values: ~np.isfinite(values), "a value that is not finite", "drop such rows or fill them first"
)
_INFINITE = _Refused(np.isinf, "an infinite value", "use NaN for a missing value")
_OVERFLOWING = _Refused(
    lambda values: np.abs(values, dtype=np.float64) > LARGEST_FLOAT64,
    "a value whose square overflows float64",
    f"scale the data to within {LARGEST_FLOAT64:.0e}",
)
_NEGATIVE = _Refused(
    lambda values: values < 0, "a negative value", "the metric compares counts or histograms, which are at least 0"
)
