"""Tables of numbers as text (.csv, .tsv), one row per point; values are float64.

The first line names the columns if none of its cells is a number. Empty lines are skipped. A cell that is not a finite
number is refused, with its row (counted from 0, as everywhere), line and column.
"""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import numpy as np

from tonari.io import tuning
from tonari.io._common import Array, FileFormatError, FileInfo, parsing, size_of
from tonari.io.tables.columns import Choice, RowNumbers, listed, place_of
from tonari.io.tables.sequential import Sequential

SEPARATORS = {".csv": ",", ".tsv": "\t"}
DTYPE = np.dtype(np.float64)
# Texts that programs write for a missing value; a first line of only such cells is a row, not column names.
_MISSING = frozenset(("", "na", "n/a", "nan", "null", "none", "-", "?"))

Line = tuple[int, str]  # the number of a line, counted from 1, and its text


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    size = size_of(path)
    with (
        parsing(path, size, "a table of numbers as text", "Save it again as text."),
        open(path, encoding="utf-8-sig") as file,
    ):
        try:
            yield file
        except UnicodeDecodeError as error:
            message = f"{path}: found bytes that are not UTF-8 in line {_undecodable(path)}, expected text in UTF-8. "
            raise FileFormatError(f"{message}Save it again as UTF-8.", path, size, "text in UTF-8") from error


def _undecodable(path: Path) -> int:
    """Return the line number of the first line that is not valid UTF-8."""
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return number
    raise AssertionError("every line is UTF-8")


def _lines(file: TextIO) -> Iterator[Line]:
    return ((number, line) for number, line in enumerate(file, 1) if line.strip())


def _cells(path: Path, number: int, line: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=SEPARATORS[path.suffix.lower()]))
    except csv.Error as error:
        message = f"{path}: line {number}: {error}, expected cells"
        raise FileFormatError(message, path, len(line), "cells") from error


def _is_number(cell: str) -> bool:
    """Return whether numpy.loadtxt accepts a cell; unlike Python's float, it refuses 1_000 and non-ASCII digits."""
    try:
        float(cell)
    except ValueError:
        return False
    return cell.isascii() and "_" not in cell


def _names_columns(cells: Sequence[str]) -> bool:
    missing = all(cell.strip().lower() in _MISSING for cell in cells)
    return not missing and not any(map(_is_number, cells))


def is_blank(path: Path) -> bool:
    """Return whether a regular file has neither a line of numbers nor a line of names."""
    if not path.is_file() or not path.stat().st_size:
        return path.is_file()
    with _opened(path) as file:
        return next(_lines(file), None) is None


def _head(path: Path) -> tuple[list[str], bool, int]:
    """Return the cells of the first line, whether these are column names, and the number of rows in the table."""
    with _opened(path) as file:
        lines = _lines(file)
        number, first = next(lines, (1, ""))
        cells = _cells(path, number, first) if first else []
        named = bool(cells) and _names_columns(cells)
        rows = sum(1 for _ in lines) + (not named and bool(cells))
    if not cells:
        size = path.stat().st_size
        message = f"{path}: found {size} bytes without a line of numbers or names"
        raise FileFormatError(message, path, size, "at least one line")
    return [cell.strip() for cell in cells] if named else cells, named, rows


def table(path: Path, choice: Choice | None = None) -> Sequential:
    """Open the points of a table as a matrix whose rows are parsed when they are read."""
    choice = choice or Choice()
    head, named, rows = _head(path)
    places = choice.places(path, head if named else None, len(head))
    names = [head[place] for place in places] if named else None
    return Sequential((rows, len(places)), DTYPE, _blocks(path, head, named, places, choice), names)


def _blocks(path: Path, head: list[str], named: bool, places: list[int], choice: Choice) -> Iterator[Array]:
    names = [head[place] for place in places] if named else None
    numbers = RowNumbers(path, names, chosen=choice.columns is not None)
    for row, block in _rows(path, named):
        values = _parsed(path, block, row, head, named, places)
        numbers.see(values)
        yield values
    numbers.check()


def _rows(path: Path, named: bool) -> Iterator[tuple[int, list[Line]]]:
    """Yield the lines of the table's rows in blocks, each block with the row number of its first line."""
    with _opened(path) as file:
        lines, row = _lines(file), 0
        if named:
            next(lines)
        while block := list(itertools.islice(lines, tuning.BLOCK_LINES)):
            yield row, block
            row += len(block)


def _parsed(path: Path, block: list[Line], row: int, head: list[str], named: bool, places: list[int]) -> Array:
    chosen = len(places) < len(head) or places != sorted(places)
    if chosen:  # loadtxt does not look at columns that are not chosen, so check that every row has them
        for _ in _split(path, block, row, head):
            pass
    try:
        values: Array = np.loadtxt(
            (line for _, line in block),
            DTYPE,
            comments=None,
            delimiter=SEPARATORS[path.suffix.lower()],
            quotechar='"',
            usecols=places if chosen else None,
            ndmin=2,
        )
    except ValueError as error:
        raise _fault(path, block, row, head, named, places) or _unparsed(path, block, error) from error
    if values.shape != (len(block), len(places)) or not np.isfinite(values).all():
        raise _fault(path, block, row, head, named, places) or _unparsed(path, block, "cells are missing")
    return values


def _unparsed(path: Path, block: list[Line], why: object) -> FileFormatError:
    """Return the error for lines that NumPy refuses although each cell is a number.

    This happens, for example, if a cell has a line break.
    """
    message = f"{path}: lines {block[0][0]} to {block[-1][0]}: {why}, expected a row of numbers in each line"
    return FileFormatError(message, path, len(block), "a row of numbers in each line")


def _split(path: Path, block: Iterable[Line], row: int, head: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the location of each row, for messages, and its cells.

    Raise an error unless it has as many cells as `head`.
    """
    for at, (number, line) in enumerate(block, row):
        cells, where = _cells(path, number, line), f"{path}: row {at} (line {number})"
        if len(cells) != len(head):
            message = f"{where}: found {len(cells)} cells, expected {len(head)} as in the first line"
            raise FileFormatError(message, path, len(cells), f"{len(head)} cells")
        yield where, cells


def _fault(
    path: Path, block: list[Line], row: int, head: list[str], named: bool, places: list[int]
) -> FileFormatError | None:
    """Return the error for the first cell that is not a finite number, or None."""
    for where, cells in _split(path, block, row, head):
        for column in places:
            cell = cells[column]
            if not _is_number(cell) or not math.isfinite(float(cell)):
                name = f" ({head[column]!r})" if named else ""
                fix = f"; drop=[{head[column]!r}] leaves out the column" if named else ""
                message = (
                    f"{where}, column {column}{name}: found {cell[:40]!r}, expected a finite number. "
                    f"Leave out the rows or columns that are not numbers{fix}."
                )
                return FileFormatError(message, path, len(cell), "a finite number")
    return None


def column(path: Path, name: str) -> Array:
    """Read a column with the names of rows: int64 if all cells are integers, else text."""
    head, named, _ = _head(path)
    place = place_of(path, head if named else None, name)
    found = [cells[place].strip() for row, block in _rows(path, named) for _, cells in _split(path, block, row, head)]
    try:
        numbers = np.array([int(cell) for cell in found], np.int64)
    except (ValueError, OverflowError):
        return np.array(found)
    # Only if the integers reproduce the cells exactly: 007 and 7 are different names.
    return numbers if all(map(str.__eq__, map(str, numbers.tolist()), found)) else np.array(found)


def read(path: Path, *, mmap: bool, key: str | None, most: float) -> Array:
    """Read all points of a table into memory."""
    return table(path)[:]


def write(path: Path, array: Array) -> None:
    """Raise an error: points that are written as text would lose their dtype."""
    raise ValueError(f"{path}: points are not written as text; name a .npy, .npz, .fbin, .hdf5 or .parquet file")


def describe(path: Path, *, key: str | None, choice: Choice | None = None) -> FileInfo:
    """Describe the points of a table: its rows are counted, and the first line gives the number of columns."""
    head, named, rows = _head(path)
    places = (choice or Choice()).places(path, head if named else None, len(head))
    extra = {"header": "1 line" if named else "none"}
    if named:
        extra["names"] = listed([head[place] for place in places])
    return FileInfo(path, path.suffix.lower()[1:], rows, len(places), str(DTYPE), path.stat().st_size, extra)
