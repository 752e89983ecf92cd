"""The bytes of the copies that checks of rows make, computed before anything is copied, and the memory they leave."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tonari.core.errors import BudgetExceeded
from tonari.inputs.arrays.kinds import kind_of, name_of_dtype
from tonari.inputs.arrays.rows import WHOLE_NAMES

_LIST_NUMBER = 8 + 4  # bytes of a number of a list: as NumPy reads it, and as float32 if it is a whole number
_FLOAT32 = 4


def copied_bytes(x: Any, *, bits: bool = False) -> int:
    """Return the bytes that :func:`tonari.inputs.as_rows` or its counterparts allocate for an array; 0 without a copy.

    Parameters
    ----------
    x : array, table or list
        As the caller passed it. For sparse rows the result is 0, since their plan counts copies.
    bits : bool
        Whether rows are compared by their bits, so that bools are packed.

    Examples
    --------
    >>> copied_bytes(np.zeros((5, 4), np.float32)), copied_bytes(np.zeros((5, 4), np.int64))
    (0, 80)
    >>> copied_bytes(np.zeros((5, 4), order="F")), copied_bytes(np.zeros((5, 12), bool), bits=True)
    (160, 10)
    """
    if hasattr(x, "tocsr"):
        return 0
    if isinstance(x, list | tuple):
        return _LIST_NUMBER * len(x) * _length(x[0]) if len(x) else 0
    shape = tuple(getattr(x, "shape", ()))
    if len(shape) != 2 or 0 in shape:  # queries without rows, or refused later
        return 0
    numbers = int(math.prod(shape))
    if hasattr(x, "columns"):
        return _of_table(x, numbers)
    if not hasattr(x, "dtype"):
        return 0
    dtype = name_of_dtype(x)
    if dtype == "bool":
        packed = shape[0] * -(-shape[1] // 8) if bits else 0
        return packed if _is_plain(x) else 2 * packed
    if dtype in WHOLE_NAMES:
        return _FLOAT32 * numbers
    return 0 if _is_plain(x) else int(x.dtype.itemsize) * numbers


def _length(row: Any) -> int:
    return len(row) if hasattr(row, "__len__") else 1


def _is_plain(x: Any) -> bool:
    """Return whether rows are read without a copy: contiguous, aligned and in native byte order."""
    if kind_of(x) == "torch":
        return bool((x.stride(1) == 1 if x.is_cuda else x.is_contiguous()) and not x.is_neg())
    flags = getattr(x, "flags", None)
    if not isinstance(x, np.ndarray):
        return flags is None or bool(flags.c_contiguous)
    return bool(x.flags.c_contiguous and x.flags.aligned and x.dtype.isnative)


def _of_table(table: Any, numbers: int) -> int:
    """Return the bytes of a DataFrame as rows: it stores columns, and columns of several dtypes are converted first."""
    kinds = {str(dtype).lower() for dtype in table.dtypes}
    if len(kinds) != 1:
        return 2 * 8 * numbers
    (kind,) = kinds
    if kind in WHOLE_NAMES:
        return (np.dtype(kind).itemsize + _FLOAT32) * numbers
    return (4 if kind == "float32" else 8) * numbers


@contextlib.contextmanager
def after_copies(
    copied: int, memory: int | None, what: str = "copies of rows", least: Callable[[], int] = lambda: 0
) -> Iterator[int | None]:
    """Yield the memory that copies leave to a search, and restate its refusals in terms of the whole budget.

    Parameters
    ----------
    copied : int
        The bytes of the copies.
    memory : int, optional
        The budget in bytes.
    what : str
        The copies, for the message.
    least : callable() -> int
        Returns the bytes that the search needs at least; only called if the copies leave nothing.

    Raises
    ------
    BudgetExceeded
        The copies leave no memory, or the search needs more than they leave.

    Examples
    --------
    >>> with after_copies(600, 1000) as left:
    ...     left
    400
    """
    if memory is None or not copied:
        yield memory
        return
    if copied >= memory:
        raise _refusal(copied, memory, what, least())
    try:
        yield memory - copied
    except BudgetExceeded as error:
        if error.least is None:
            raise
        raise _refusal(copied, memory, what, error.least) from error


def _refusal(copied: int, memory: int, what: str, least: int) -> BudgetExceeded:
    enough = copied + max(1, least)
    return BudgetExceeded(
        f"a memory budget of {memory} bytes: {what} take {copied}, and the search needs {enough - copied} more: allow "
        f"at least {enough}",
        least=enough,
    )
