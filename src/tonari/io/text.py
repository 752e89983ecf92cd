"""Tables of numbers as text (.csv, .tsv), one row per point; values are float64.

The first line may name the columns: it does if one of its cells is not a number. Empty lines are skipped. A cell
that is not a finite number is refused, with its row (counted from 0, as everywhere), line and column.
"""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import numpy as np

from tonari.io._common import Array, FileFormatError, FileInfo, parsing, size_of
from tonari.io._sequential import Sequential

SEPARATORS = {".csv": ",", ".tsv": "\t"}
BLOCK_LINES = 1 << 14
DTYPE = np.dtype(np.float64)

Line = tuple[int, str]  # its number, from 1, and its text


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    size = size_of(path)
    with (
        parsing(path, size, "a table of numbers in UTF-8", "Save it again as UTF-8."),
        open(path, encoding="utf-8-sig") as file,
    ):
        yield file


def _lines(file: TextIO) -> Iterator[Line]:
    return ((number, line) for number, line in enumerate(file, 1) if line.strip())


def _cells(path: Path, line: str) -> list[str]:
    return next(csv.reader([line], delimiter=SEPARATORS[path.suffix.lower()]))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _head(path: Path) -> tuple[list[str], bool, int]:
    """Return the cells of the first line, whether they are names, and the number of rows."""
    with _opened(path) as file:
        lines = _lines(file)
        first = next(lines, (1, ""))[1]
        cells = _cells(path, first) if first else []
        # An empty cell and "nan" are missing values, not names.
        named = any(cell.strip() and not _is_number(cell) for cell in cells)
        rows = sum(1 for _ in lines) + (not named and bool(cells))
    if not rows:
        size = path.stat().st_size
        raise FileFormatError(f"{path}: found {size} bytes without a row of numbers", path, size, "at least one row")
    return cells, named, rows


def table(path: Path) -> Sequential:
    """Open the table; its rows are parsed as they are asked for."""
    cells, named, rows = _head(path)
    return Sequential((rows, len(cells)), DTYPE, _blocks(path, cells, named))


def _blocks(path: Path, head: list[str], named: bool) -> Iterator[Array]:
    with _opened(path) as file:
        lines, row = _lines(file), 0
        if named:
            next(lines)
        while block := list(itertools.islice(lines, BLOCK_LINES)):
            yield _parsed(path, block, row, head, named)
            row += len(block)


def _parsed(path: Path, block: list[Line], row: int, head: list[str], named: bool) -> Array:
    try:
        values: Array = np.loadtxt(
            (line for _, line in block),
            DTYPE,
            comments=None,
            delimiter=SEPARATORS[path.suffix.lower()],
            quotechar='"',
            ndmin=2,
        )
    except ValueError as error:
        raise _fault(path, block, row, head, named) or error from error
    if values.shape != (len(block), len(head)) or not np.isfinite(values).all():
        fault = _fault(path, block, row, head, named)
        if fault:
            raise fault
    return values


def _fault(path: Path, block: list[Line], row: int, head: list[str], named: bool) -> FileFormatError | None:
    """Return the error for the first cell that cannot be used."""
    for place, (number, line) in enumerate(block, row):
        cells, where = _cells(path, line), f"{path}: row {place} (line {number})"
        if len(cells) != len(head):
            message = f"{where}: found {len(cells)} cells, expected {len(head)} as in the first line"
            return FileFormatError(message, path, len(cells), f"{len(head)} cells")
        for column, cell in enumerate(cells):
            if not _is_number(cell) or not math.isfinite(float(cell)):
                name = f" ({head[column]!r})" if named else ""
                message = (
                    f"{where}, column {column}{name}: found {cell[:40]!r}, expected a finite number. "
                    "Leave out the rows or columns that are not numbers."
                )
                return FileFormatError(message, path, len(cell), "a finite number")
    return None


def read(path: Path, *, mmap: bool, key: str | None, most: float) -> Array:
    """Parse the whole table."""
    return table(path)[:]


def write(path: Path, array: Array) -> None:
    """Refuse: points as text lose their dtype."""
    raise ValueError(f"{path}: points are not written as text; name a .npy, .npz, .fbin, .hdf5 or .parquet file")


def describe(path: Path, *, key: str | None) -> FileInfo:
    """Count the rows; columns are those of the first line."""
    cells, named, rows = _head(path)
    extra = {"header": "1 line" if named else "none"}
    return FileInfo(path, path.suffix.lower()[1:], rows, len(cells), str(DTYPE), path.stat().st_size, extra)
