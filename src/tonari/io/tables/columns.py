"""The choice of the columns of a table that are coordinates or names of rows.

Programs often add row numbers to tables: pandas writes its index as a first column without a name, reads it back as
"Unnamed: 0", and stores it in Parquet files as "__index_level_0__". If such a column were used as a coordinate, it
would dominate the distances. It is therefore refused, unless the caller lists the columns to use.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tonari.io._common import Array, FileFormatError

_OF_PANDAS = re.compile(r"Unnamed: \d+|__index_level_\d+__")
_LISTED = 12  # maximum number of column names in an error message


@dataclass(frozen=True)
class Choice:
    """The caller's choice of columns of a table.

    Attributes
    ----------
    columns : tuple of str, optional
        The columns that are coordinates, in their order. None: all columns except `drop`.
    drop : tuple of str
        The columns that are left out; empty if `columns` is set.
    """

    columns: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.columns is not None or bool(self.drop)

    def places(self, path: Path, names: Sequence[str] | None, width: int) -> list[int]:
        """Return the positions of the coordinates among the `width` columns of a table.

        Raises
        ------
        ValueError
            A name is missing from the table or occurs twice, or no column is left.
        tonari.io.FileFormatError
            The caller did not choose columns, and a column has no name, or the name of a saved row index (such as
            ``Unnamed: 0``), so it may not be a coordinate.
        """
        if self.columns is not None:
            return [place_of(path, names, name) for name in self.columns]
        dropped = {place_of(path, names, name) for name in self.drop}
        places = [place for place in range(width) if place not in dropped]
        if not places:
            raise ValueError(f"{path}: drop= leaves out all {width} columns, expected one at least to be left")
        for place in places if names is not None else ():
            name = (names or ())[place].strip()
            if not name or _OF_PANDAS.fullmatch(name):
                raise _no_coordinate(path, (names or ())[place], place, "programs give row numbers such a name")
        return places


def choice(columns: Sequence[str] | None, drop: Sequence[str] | None) -> Choice:
    """Check the arguments `columns` and `drop`, which exclude each other, and return them as a Choice.

    Examples
    --------
    >>> from tonari.io.tables.columns import choice
    >>> choice(["x", "y"], None).columns
    ('x', 'y')
    """
    for argument, given in (("columns", columns), ("drop", drop)):
        if isinstance(given, str) or not all(isinstance(name, str) for name in given or ()):
            raise TypeError(f"{argument}={given!r}: expected a list of names of columns, such as ['x', 'y']")
    if columns is not None and drop is not None:
        raise ValueError("columns= and drop= exclude each other; leave one out")
    if columns is not None and not columns:
        raise ValueError("columns=[]: expected one name of a column at least")
    if columns is not None and len(set(columns)) < len(columns):
        raise ValueError(f"columns={list(columns)!r}: expected each column once")
    return Choice(None if columns is None else tuple(columns), tuple(drop or ()))


def place_of(path: Path, names: Sequence[str] | None, name: str) -> int:
    """Return the position of the column with this name; raise an error unless exactly one column has it."""
    if names is None:
        raise ValueError(
            f"{path}: there is no column {name!r}: the first line holds numbers, not names. Write a line of names "
            "before it"
        )
    places = [place for place, known in enumerate(names) if known == name]
    if len(places) == 1:
        return places[0]
    fault = f"has {len(places)} columns {name!r}" if places else f"there is no column {name!r}"
    raise ValueError(f"{path}: {fault}; its columns are {listed(names)}")


def listed(names: Sequence[str]) -> str:
    """Return names as text for a message; of many names, only the first ones.

    >>> listed(["x", "y"])
    'x, y'
    """
    more = f", ... ({len(names)} columns)" if len(names) > _LISTED else ""
    return ", ".join(name or "''" for name in names[:_LISTED]) + more


class RowNumbers:
    """Find columns of row numbers (the values 0, 1, 2, ...) in tables whose columns have names.

    Parameters
    ----------
    path : Path
    names : sequence of str
        Names of the columns.
    chosen : bool
        Whether the caller listed the columns to use; then no column is refused.
    """

    def __init__(self, path: Path, names: Sequence[str] | None, *, chosen: bool) -> None:
        self._path, self._names, self._seen = path, names, 0
        # A single column, and columns without names, are accepted: they are more likely to be coordinates.
        watched = names is not None and len(names) > 1 and not chosen
        self._left = list(range(len(names or ()))) if watched else []

    def see(self, block: Array) -> None:
        """Compare the columns of the next block of rows with the row numbers."""
        if self._left:
            numbers = np.arange(self._seen, self._seen + len(block))
            self._left = [place for place in self._left if np.array_equal(block[:, place], numbers)]
        self._seen += len(block)

    def check(self) -> None:
        """Raise an error if all values of a column were row numbers, unless the table has only one row."""
        if self._left and self._seen > 1:
            place = self._left[0]
            why = f"its values are 0 to {self._seen - 1}"
            raise _no_coordinate(self._path, (self._names or ())[place], place, why)


def _no_coordinate(path: Path, name: str, place: int, why: str) -> FileFormatError:
    has = f"is called {name!r}" if name.strip() else "has no name"
    message = f"{path}: column {place} {has}: found row numbers, expected a coordinate ({why}). "
    fix = f"drop=[{name!r}] leaves it out; if it is one, name all coordinates by columns="
    return FileFormatError(message + fix, path, path.stat().st_size, "columns of coordinates")
