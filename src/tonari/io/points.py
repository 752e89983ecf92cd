"""Points in files of any format, including tables with named columns: text, Parquet and Arrow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tonari.io._common import Array, DType, FileInfo, check_expansion
from tonari.io._formats import TABLES, format_of
from tonari.io.formats import vecs
from tonari.io.tables import arrow, text
from tonari.io.tables.columns import Choice
from tonari.io.tables.sequential import Sequential


def is_table(path: Path, choice: Choice | None = None) -> bool:
    """Return whether the suffix names a table; raise an error if it does not, but columns have been chosen."""
    found = path.suffix.lower() in TABLES
    if choice and not found:
        what = "columns=" if choice.columns is not None else "drop="
        raise ValueError(
            f"{path}: {what} is for tables ({' '.join(TABLES)}), whose columns have names; slice the array, as in "
            "points[:, 1:]"
        )
    return found


def table(path: Path, key: str | None, choice: Choice | None) -> Sequential:
    """Open the points in a table, whose rows are parsed when they are read."""
    return text.table(path, choice) if path.suffix.lower() in text.SEPARATORS else arrow.table(path, key, choice)


def read_points(
    path: Path, *, mmap: bool, key: str | None, most: float, choice: Choice
) -> tuple[Array, Sequence[str] | None]:
    """Open the points in a file of any format.

    Return them and the names of their columns, or None for columns without names.
    """
    form = format_of(path, key)
    if not is_table(path, choice):
        return form.family.read(path, mmap=mmap, key=key, most=most), None
    rows = table(path, key, choice)
    check_expansion(path, path.stat().st_size, math.prod(rows.shape) * rows.itemsize, most)
    return rows[:], rows.names if rows.names is None or len(rows.names) == rows.shape[1] else None


def dtype_without_rows(path: Path) -> DType | None:
    """Return the dtype of a file that has neither rows nor a number of columns; return None for any other file.

    .fvecs, .bvecs and .ivecs files store the number of columns only at the beginning of each row, and text files only
    as the number of cells of their first line.
    """
    suffix = path.suffix.lower()
    if suffix in vecs.DTYPES:
        return vecs.DTYPES[suffix] if path.is_file() and not path.stat().st_size else None
    return text.DTYPE if suffix in text.SEPARATORS and text.is_blank(path) else None


def no_rows(path: Path, columns: int) -> Array | None:
    """Return an array of shape (0, columns) for a file of queries without rows; return None for any other file.

    The file must be of a format that stores the number of columns only in its rows.
    """
    dtype = dtype_without_rows(path)
    if dtype is None:
        return None
    # float32 from the beginning, because a search would convert int32 rows to float32
    return np.empty((0, columns), np.float32 if dtype == np.int32 else dtype)


def read_column(path: Path, name: str) -> Array:
    """Read the column of a table that contains the names of its rows."""
    is_table(path, Choice(columns=(name,)))
    return text.column(path, name) if path.suffix.lower() in text.SEPARATORS else arrow.column(path, name)


def describe(path: Path, *, key: str | None, choice: Choice) -> FileInfo:
    """Describe the points in a file of any format: shape, dtype and size."""
    form = format_of(path, key)
    if not is_table(path, choice):
        return form.family.describe(path, key=key)
    if path.suffix.lower() in text.SEPARATORS:
        return text.describe(path, key=key, choice=choice)
    return arrow.describe(path, key=key, choice=choice)
