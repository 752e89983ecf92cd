"""Values that no row may hold: NaN, infinity, float64 beyond 1e150, and for chi2 whatever is negative.

On the CPU the values are looked at before any work. On a GPU that would be a pass of its own and a wait for its end, so
the kernels that pack the rows note that there is such a value, and the search is refused when it would return. Both
ways lead to the same words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import _native
from tonari.inputs.bfloat16 import as_floats, held
from tonari.inputs.kinds import kind_of

# float64 values up to here have squared differences whose sum over any row that fits in memory is finite.
LARGEST_FLOAT64 = 1e150

NO_ROW = 1 << 62  # a flag where nothing was noted
_LOOKED_AT = 1 << 24  # values at once


def check_finite(rows: npt.NDArray[Any], name: str) -> None:
    """Refuse NaN, infinity and float64 values beyond 1e150."""
    row = _native.first_nonfinite_row(rows)
    if row >= 0:
        raise _NOT_FINITE.error(rows[row], row, name)
    if rows.dtype == np.float64 and max(rows.max(), -rows.min()) > LARGEST_FLOAT64:
        row = int(((rows.min(axis=1) < -LARGEST_FLOAT64) | (rows.max(axis=1) > LARGEST_FLOAT64)).argmax())
        raise _OVERFLOWING.error(rows[row], row, name)


def check_nonnegative(x: npt.NDArray[Any], name: str) -> None:
    """Refuse rows with a negative value, which chi2 has no meaning for. x is what :func:`as_rows` gave.

    >>> import numpy as np
    >>> from tonari.inputs import check_nonnegative
    >>> check_nonnegative(np.array([[0.5, 1.0], [2.0, -1.0]]), "points")
    Traceback (most recent call last):
    ValueError: points: row 1 has a negative value (-1.0 in column 1); chi2 compares counts or histograms, which are \
at least 0
    """
    row = _native.first_negative_row(x)
    if row >= 0:
        raise _NEGATIVE.error(x[row], row, name)


def check_values(rows: Any, name: str, *, first: int, nonnegative: bool) -> None:
    """Refuse rows with any value that must not be, row by row: to tell which of a part of the rows it was.

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


def check_flags(flags: Any, rows: Any, name: str, *, first: int = 0) -> None:
    """Refuse rows in which kernels noted a value that must not be; waits for those kernels.

    Which row is the first is looked up here: kernels see batches and samples of the rows, and number what they see.

    Parameters
    ----------
    flags : int64 tensor of shape (3,), or three ints
        2**62 where no value is not finite, none beyond 1e150, none negative; less where one is.
    rows : array or tensor of shape (n, d)
        All rows that the kernels saw.
    name : str
        What messages call them.
    first : int
        Number of ``rows[0]`` among all rows of that name.

    Raises
    ------
    ValueError
        What :func:`as_rows` and :func:`check_nonnegative` say of such rows.

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
                raise AssertionError(f"{name}: {kind.what} was noted, but no row has it")
            raise error


@dataclass(frozen=True)
class _Refused:
    """One kind of value that no row may hold: how to tell it, and what is said of it."""

    is_bad: Callable[[npt.NDArray[Any]], npt.NDArray[np.bool_]]
    what: str
    fix: str

    def error(self, values: npt.NDArray[Any], row: int, name: str) -> ValueError:
        values = as_floats(values)
        column = int(self.is_bad(values).argmax())
        return ValueError(f"{name}: row {row} has {self.what} ({values[column]} in column {column}); {self.fix}")

    def first_error(self, rows: Any, name: str, first: int) -> ValueError | None:
        step = max(1, _LOOKED_AT // rows.shape[1])
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
_OVERFLOWING = _Refused(
    lambda values: np.abs(values, dtype=np.float64) > LARGEST_FLOAT64,
    "a value whose square overflows float64",
    f"scale the data to within {LARGEST_FLOAT64:.0e}",
)
_NEGATIVE = _Refused(
    lambda values: values < 0, "a negative value", "chi2 compares counts or histograms, which are at least 0"
)
