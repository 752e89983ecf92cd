"""Values that no row may hold: NaN, infinity, float64 beyond 1e150, and for chi2 whatever is negative.

On the CPU the values are looked at before any work. On a GPU that would be a pass of its own and a wait for its end, so
the kernels that pack the rows note the first row of each kind, and the search is refused when it would return. Both
ways lead to the same words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import _native
from tonari.arrays.kinds import kind_of

# float64 values up to here have squared differences whose sum over any row that fits in memory is finite.
LARGEST_FLOAT64 = 1e150

NO_ROW = 1 << 62  # a flag of which no row took note


def check_finite(rows: npt.NDArray[Any], name: str) -> None:
    """Refuse NaN, infinity and float64 values beyond 1e150."""
    row = _native.first_nonfinite_row(rows)
    if row >= 0:
        raise _not_finite(rows[row], row, name)
    if rows.dtype == np.float64 and max(rows.max(), -rows.min()) > LARGEST_FLOAT64:
        row = int(((rows.min(axis=1) < -LARGEST_FLOAT64) | (rows.max(axis=1) > LARGEST_FLOAT64)).argmax())
        raise _overflows(rows[row], row, name)


def check_nonnegative(x: npt.NDArray[Any], name: str) -> None:
    """Refuse rows with a negative value, which chi2 has no meaning for. x is what :func:`as_rows` gave.

    >>> import numpy as np
    >>> from tonari.arrays import check_nonnegative
    >>> check_nonnegative(np.array([[0.5, 1.0], [2.0, -1.0]]), "points")
    Traceback (most recent call last):
    ValueError: points: row 1 has a negative value (-1.0 in column 1); chi2 compares counts or histograms, which are \
at least 0
    """
    row = _native.first_negative_row(x)
    if row >= 0:
        raise _negative(x[row], row, name)


def check_flags(flags: Any, rows: Any, name: str, *, first: int = 0) -> None:
    """Refuse rows of which kernels took note; waits for those kernels.

    Parameters
    ----------
    flags : int64 tensor of shape (3,), or three ints
        First row with a value that is not finite, first with one beyond 1e150, first with a negative one; 2**62 where
        there is none.
    rows : array or tensor of shape (n, d)
        The rows that the flags count in.
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
    >>> from tonari.arrays import check_flags
    >>> check_flags([2**62, 2**62, 2**62], np.ones((2, 1)), "points")
    >>> check_flags([1, 2**62, 2**62], np.array([[0.0], [np.nan]]), "points", first=100)
    Traceback (most recent call last):
    ValueError: points: row 101 has a value that is not finite (nan in column 0); drop such rows or fill them first
    """
    noted: Sequence[int] = flags.tolist() if kind_of(flags) == "torch" else flags
    for row, refusal in zip(noted, (_not_finite, _overflows, _negative), strict=True):
        if row < NO_ROW:
            values = rows[row].cpu().numpy() if kind_of(rows) == "torch" else rows[row]
            raise refusal(values, first + row, name)


def _not_finite(values: npt.NDArray[Any], row: int, name: str) -> ValueError:
    column = int((~np.isfinite(values)).argmax())
    return ValueError(
        f"{name}: row {row} has a value that is not finite ({values[column]} in column {column}); "
        "drop such rows or fill them first"
    )


def _overflows(values: npt.NDArray[Any], row: int, name: str) -> ValueError:
    column = int((np.abs(values) > LARGEST_FLOAT64).argmax())
    return ValueError(
        f"{name}: row {row} has a value whose square overflows float64 ({values[column]} in column {column}); "
        f"scale the data to within {LARGEST_FLOAT64:.0e}"
    )


def _negative(values: npt.NDArray[Any], row: int, name: str) -> ValueError:
    column = int((values < 0).argmax())
    return ValueError(
        f"{name}: row {row} has a negative value ({values[column]} in column {column}); "
        "chi2 compares counts or histograms, which are at least 0"
    )
