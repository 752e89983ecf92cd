"""Input of points: the choice of table columns, the names of rows, and the printed description of each input."""

from __future__ import annotations

import csv
import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import click
import numpy as np

from tonari import io
from tonari.io._common import Array, expansion
from tonari.io._formats import format_of
from tonari.io.formats.sparse_npz import is_sparse
from tonari.io.formats.sparse_npz import read as read_sparse
from tonari.io.points import dtype_without_rows, is_table, no_rows, read_column, read_points
from tonari.io.tables.columns import Choice, choice, listed
from tonari.metrics import METRICS, get_metric


def _number(context: click.Context, parameter: click.Parameter, value: float | None) -> float | None:
    if value is not None and math.isnan(value):
        raise click.BadParameter("is not a number", context, parameter)
    return value


radius_option = click.option(
    "--radius",
    metavar="R",
    type=click.FloatRange(min=0),
    callback=_number,
    help="Find all points within this distance; squared for sqeuclidean.",
)
min_similarity_option = click.option(
    "--min-similarity",
    metavar="S",
    type=float,
    callback=_number,
    help="Find all points with at least this similarity, for inner_product, cosine and correlation.",
)


def check_radius(context: click.Context, metric: str, radius: float | None, min_similarity: float | None) -> bool:
    """Return whether --radius or --min-similarity is set; raise a usage error if it does not apply to the metric."""
    record = get_metric(metric)
    if radius is not None and min_similarity is not None:
        raise click.UsageError("--radius and --min-similarity exclude each other; leave one out", context)
    if radius is not None and record.descending:
        raise click.UsageError(f"--radius: {metric} has similarities; use --min-similarity", context)
    if min_similarity is not None:
        if not (record.descending or record.angular):
            similar = [name for name, one in METRICS.items() if one.descending or one.angular]
            others = f"{', '.join(similar[:-1])} or {similar[-1]}"
            message = f"--min-similarity: {metric} has distances; use --radius, or --metric {others}"
            raise click.UsageError(message, context)
        if not math.isfinite(min_similarity):
            raise click.UsageError("--min-similarity: is infinite; expected a finite number", context)
    return radius is not None or min_similarity is not None


Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def _names(context: click.Context, parameter: click.Parameter, given: str | None) -> list[str] | None:
    """Split a list of names at commas; a name in quotation marks may contain commas."""
    return None if given is None else next(csv.reader([given])) or [""]


def column_options(command: Decorated) -> Decorated:
    """Declare --columns and --drop."""
    drop = click.option(
        "--drop",
        metavar="NAMES",
        callback=_names,
        help="Columns of a table (.csv, .tsv, .parquet, .arrow) to leave out, such as id,label.",
    )
    columns = click.option(
        "--columns",
        metavar="NAMES",
        callback=_names,
        help="Columns of a table that are the coordinates, such as x,y; default: all.",
    )
    return columns(drop(command))


def inputs_option(command: Callable[..., None]) -> Callable[..., None]:
    """Declare --columns and --drop; pass these options, and --id if the command has it, as the Inputs object `read`."""

    @functools.wraps(command)
    def with_inputs(
        *given: Any, columns: list[str] | None, drop: list[str] | None, ids: str | None = None, **options: Any
    ) -> None:
        command(*given, read=Inputs(columns, drop, ids), **options)

    return column_options(with_inputs)


id_option = click.option(
    "--id",
    "ids",
    metavar="NAME",
    help="Column of a table with the names of rows. It is not a coordinate, and its values replace the row "
    "numbers in OUT.",
)


# suffixes of output formats that can store a column of names
_NAMED = (".csv", ".tsv", ".parquet", ".arrow")


def check_named(context: click.Context, output: Path, read: Inputs) -> None:
    """Raise a usage error for --id if the output can store only row numbers."""
    if read.ids is not None and output.suffix.lower() not in _NAMED:
        message = f"{output}: a {output.suffix} file holds row numbers, not names; name one of {' '.join(_NAMED)}"
        raise click.BadParameter(message, context, param_hint="'--id'")


@dataclass
class Inputs:
    """A reader of a command's input files; it applies the options about columns, and records descriptions of the files.

    Parameters
    ----------
    columns, drop : list of str, optional
        The columns to read from tables, or the columns to leave out.
    ids : str, optional
        The column of a table with the names of its rows.
    """

    columns: Sequence[str] | None
    drop: Sequence[str] | None
    ids: str | None = None
    facts: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        try:
            self.choice = choice(self.columns, self.drop)
        except ValueError as error:
            raise click.UsageError(str(error), click.get_current_context()) from error
        if self.ids is not None:
            if self.ids in (self.columns or ()):
                message = f"{self.ids!r} names the rows by --id, and is a coordinate by --columns; leave one out"
                raise click.UsageError(message, click.get_current_context())
            if self.columns is None and self.ids not in self.choice.drop:
                self.choice = Choice(drop=(*self.choice.drop, self.ids))

    def check(self, paths: Sequence[Path]) -> None:
        """Raise an error if options about columns are set and no input is a table."""
        if self.choice and not any(is_table(path) for path in paths):
            is_table(paths[0], self.choice)

    def read(self, path: Path, key: str | None) -> Any:
        """Read points, as a matrix or as sparse rows, and record their description."""
        if key is None and is_sparse(path):
            rows = read_sparse(path, expansion(None))
            self.note(path, rows.shape[0], rows.shape[1], None)
            return rows
        points, names = read_points(path, mmap=True, key=key, most=expansion(None), choice=self._choice(path))
        self.note(path, points.shape[0], points.shape[1], names)
        return points

    def read_queries(self, path: Path, key: str | None, points: Any) -> Any:
        """Read queries; for a file without rows, return zero queries with as many columns as the points."""
        none = no_rows(path, points.shape[1])
        if none is None:
            return self.read(path, key)
        format_of(path, key)
        self.note(path, 0, points.shape[1], None)
        return none

    def note(self, path: Path, rows: int, columns: int, names: Sequence[str] | None) -> None:
        """Record the shape and column names of an input, which are printed with the result."""
        listed_names = None if names is None else list(names)
        self.facts.append({"path": str(path), "rows": rows, "columns": columns, "names": listed_names})

    def describe(self, path: Path, key: str | None) -> io.FileInfo:
        """Return the description of a file of points, with the chosen columns."""
        return io.describe(path, key=key, columns=self._choice(path).columns, drop=self._choice(path).drop or None)

    def names_of_rows(self, path: Path) -> Array | None:
        """Read the column of row names; return None without --id, or if the file is not a table."""
        if self.ids is None or not is_table(path):
            return None
        return read_column(path, self.ids) if dtype_without_rows(path) is None else np.empty(0, np.int64)

    def _choice(self, path: Path) -> Choice:
        return self.choice if is_table(path) else Choice()

    @property
    def text(self) -> str:
        """The recorded descriptions as text, one line for each file."""
        return "".join(
            f"read {one['path']}, {one['rows']:,} x {one['columns']:,}"
            + (f": {listed(one['names'])}" if one["names"] else "")
            + "\n"
            for one in self.facts
        )
