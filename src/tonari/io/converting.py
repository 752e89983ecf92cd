"""Conversion of points from one file format to another, block by block; values change only if requested."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tonari.io._common import Array, DType, check_matrix, expansion, pieces
from tonari.io._formats import format_of
from tonari.io.points import is_table, table
from tonari.io.tables.columns import Choice
from tonari.io.tables.sequential import Sequential


def open_rows(path: Path, key: str | None = None, choice: Choice | None = None) -> Any:
    """Open a file of points in any format, for reading in consecutive slices from the first row to the last.

    Files are read slice by slice, except .npz and HDF5 files, which are loaded into memory.
    """
    form = format_of(path, key)
    if is_table(path, choice):
        return table(path, key, choice)
    return form.family.read(path, mmap=True, key=key, most=expansion(None))


def convert(
    source: Path,
    target: Path,
    *,
    key: str | None,
    dtype: DType | None,
    done: Callable[[int, int], None],
    choice: Choice | None = None,
) -> tuple[int, int, DType, Sequence[str] | None]:
    """Copy points to a file of another format, atomically; an existing file is replaced.

    Parameters
    ----------
    source, target : Path
        Their suffixes name the formats.
    key : str, optional
        Name of the array in `source`.
    dtype : dtype, optional
        The dtype of `target`, to which values are rounded. Default: the dtype that the suffix implies, else the dtype
        of `source`; a value that would change is then refused.
    done : callable(rows, total)
        Called after each block.
    choice : Choice, optional
        The columns of a table to copy.

    Returns
    -------
    rows, columns, dtype, and the names of the columns; None if columns have no names

    Raises
    ------
    ValueError
        A value would change although `dtype` is not given, is too large for `dtype`, or is a fraction or NaN for an
        integer type; `dtype` is not that of the suffix; or `source` has no rows.
    """
    form = format_of(target)
    if dtype is not None and form.dtype is not None and dtype != form.dtype:
        raise ValueError(f"{target}: a {target.suffix} file holds {form.dtype}, not {dtype}; name another suffix")
    rows = open_rows(source, key, choice)
    check_matrix(f"{source}", rows.shape, rows.dtype)
    wanted = dtype or form.dtype or rows.dtype
    blocks = _converted(rows, wanted, source, dtype is not None, done)
    n, d = rows.shape
    # All writers slice their array once, from the first row to the last, so that a Sequential is enough.
    form.family.write(target, Sequential((n, d), wanted, blocks))  # type: ignore[arg-type]
    return n, d, wanted, getattr(rows, "names", None)


def _converted(
    rows: Any, dtype: DType, source: Path, rounded: bool, done: Callable[[int, int], None]
) -> Iterator[Array]:
    for start, block in pieces(rows):
        with np.errstate(over="ignore", invalid="ignore"):
            converted = block.astype(dtype, copy=False)
        _check(block, converted, start, source, rounded)
        yield converted
        done(start + len(block), len(rows))


def _check(block: Array, given: Array, start: int, source: Path, rounded: bool) -> None:
    """Raise ValueError for the first value that the conversion changed; where it rounds, that it made infinite."""
    if np.can_cast(block.dtype, given.dtype, "safe"):
        return
    if rounded and given.dtype.kind == "f":
        changed = np.isinf(given) & np.isfinite(block)
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            changed = given.astype(block.dtype) != block
        if block.dtype.kind == "f" and given.dtype.kind == "f":
            changed &= ~np.isnan(block)
        # values out of range wrap around, and could wrap back to the same value
        elif given.dtype.kind in "iu" and block.dtype.kind in "iuf":
            # The upper bound is exclusive: in float64, the largest uint64 rounds to 2**64, which is out of range.
            limits = np.iinfo(given.dtype)
            changed |= ~((block >= float(limits.min)) & (block < float(limits.max) + (limits.bits <= 32)))
    wrong = np.argwhere(changed)
    if len(wrong):
        row, column = map(int, wrong[0])
        value = block[row, column]
        fix = "" if rounded or given.dtype.kind in "iu" else f"; --dtype {given.dtype} rounds"
        raise ValueError(f"{source}: row {start + row}, column {column}: {value} is not a value of {given.dtype}{fix}")
