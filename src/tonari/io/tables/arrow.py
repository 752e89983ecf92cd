"""Parquet and Arrow files (.parquet, .arrow), read and written with pyarrow.

Points are either one column of lists of equal length ("vector" in files written here), or one column for each
dimension. Neighbours are two columns of lists, indices and distances, as `KNNGraph.to_arrow` returns them.
"""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tonari.io._atomic import atomic
from tonari.io._common import Array, DType, FileFormatError, FileInfo, check_expansion, parsing, pieces, size_of
from tonari.io.tables.columns import Choice, RowNumbers, place_of
from tonari.io.tables.sequential import Sequential

DEFAULT_KEY = "vector"
PARQUET = ".parquet"


def pyarrow() -> Any:
    """Import pyarrow, an optional dependency; the error says how to install it."""
    try:
        return importlib.import_module("pyarrow")
    except ImportError as error:
        raise ImportError("Parquet and Arrow files need pyarrow: pip install 'tonari[arrow]'") from error


@contextmanager
def _open(path: Path) -> Iterator[tuple[Any, int, Iterator[Any]]]:
    """Open a file and yield its schema, the number of rows, and an iterator of its record batches."""
    size, arrow = size_of(path), pyarrow()
    with parsing(path, size, "a whole Parquet or Arrow file", "Fetch or save it again."):
        if path.suffix.lower() == PARQUET:
            with importlib.import_module("pyarrow.parquet").ParquetFile(path) as file:
                yield file.schema_arrow, file.metadata.num_rows, file.iter_batches()
            return
        with arrow.memory_map(str(path)) as source, arrow.ipc.open_file(source) as file:
            count = file.num_record_batches
            rows = sum(file.get_batch(i).num_rows for i in range(count))
            yield file.schema, rows, (file.get_batch(i) for i in range(count))


def _columns(path: Path, schema: Any, key: str | None, choice: Choice) -> list[str]:
    """Return the names of the columns that contain the points: one column of lists, or the coordinates."""
    types = pyarrow().types
    every, size = list(schema.names), path.stat().st_size
    if key is not None:
        if choice.columns is not None:
            raise ValueError(f"{path}: key={key!r} and columns= exclude each other; leave one out")
        if key not in every:
            raise ValueError(f"{path}: there is no column {key!r}. Choose with key=: {', '.join(every)}")
        return [key]
    dropped = {place_of(path, every, name) for name in choice.drop}
    if choice.columns is None:
        candidates = [at for at in range(len(every)) if at not in dropped]
    else:
        candidates = [place_of(path, every, name) for name in choice.columns]
    lists = [every[at] for at in candidates if _is_list(schema.field(at).type)]
    if len(lists) == len(candidates) == 1:
        return lists
    if choice.columns is not None and lists:
        raise ValueError(f"{path}: column {lists[0]!r} holds lists, which are points by themselves; name it alone")
    if len(lists) == 1:
        return lists
    if lists:
        raise ValueError(
            f"{path}: found {len(lists)} columns of lists, expected one. Choose with key=: {', '.join(lists)}"
        )
    # Only here are columns of row numbers refused: a column of lists is read without the other columns.
    names = [every[at] for at in choice.places(path, every, len(every))]
    for name in names:
        field = schema.field(place_of(path, every, name))
        if not (types.is_integer(field.type) or types.is_floating(field.type)):
            holds = f"column {field.name!r} holds {field.type}, expected numbers"
            message = f"{path}: {holds}; drop=[{field.name!r}] leaves it out"
            raise FileFormatError(message, path, size, "columns of numbers")
    return names


def _is_list(kind: Any) -> bool:
    types = pyarrow().types
    return bool(types.is_fixed_size_list(kind) or types.is_list(kind) or types.is_large_list(kind))


def _layout(path: Path, key: str | None, choice: Choice) -> tuple[list[str], tuple[int, int], DType]:
    """Return the names of the columns with the points, and the shape and dtype of the points."""
    with _open(path) as (schema, rows, batches):
        names = _columns(path, schema, key, choice)
        kinds = [schema.field(name).type for name in names]
        width = len(names)
        if _is_list(kinds[0]):
            width = getattr(kinds[0], "list_size", -1)
            if width < 0:  # lists of variable length: the first row's length is taken as the width
                first = next((batch for batch in batches if batch.num_rows), None)
                width = 0 if first is None else len(first.column(names[0])[0] or ())
            kinds = [kinds[0].value_type]
        if width < 1:
            size = path.stat().st_size
            raise FileFormatError(
                f"{path}: found {rows} rows of {width} values, expected one value at least", path, size, "values"
            )
        try:
            dtype = np.result_type(*(np.dtype(kind.to_pandas_dtype()) for kind in kinds))
        except (TypeError, NotImplementedError):  # a type unknown to NumPy, or several types without a common dtype
            dtype = np.dtype(object)
        if dtype.kind not in "iuf":
            message = f"{path}: column {names[0]!r} holds {kinds[0]}, expected numbers"
            raise FileFormatError(message, path, path.stat().st_size, "numbers")
        return names, (rows, width), dtype


def table(path: Path, key: str | None, choice: Choice | None = None) -> Sequential:
    """Open the points as a matrix whose record batches are read when they are needed."""
    choice = choice or Choice()
    names, shape, dtype = _layout(path, key, choice)
    blocks = _blocks(path, names, shape[1], dtype, chosen=choice.columns is not None)
    return Sequential(shape, dtype, blocks, names)


def _blocks(path: Path, names: list[str], width: int, dtype: DType, *, chosen: bool) -> Iterator[Array]:
    row, numbers = 0, RowNumbers(path, names if len(names) == width else None, chosen=chosen)
    with _open(path) as (_, _, batches):
        for batch in batches:
            columns = [batch.column(batch.schema.get_field_index(name)) for name in names]
            if _is_list(columns[0].type):
                values = _matrix(path, columns[0], width, row, names[0]).astype(dtype, copy=False)
            else:
                values = np.empty((batch.num_rows, width), dtype)
                for at, (name, column) in enumerate(zip(names, columns, strict=True)):
                    _refuse_null(path, column, row, f"column {name!r}")
                    values[:, at] = column.to_numpy(zero_copy_only=False)
            wrong = np.argwhere(~np.isfinite(values))
            if len(wrong):
                line, at = map(int, wrong[0])
                where = f"column {at}" + (f" ({names[at]!r})" if len(names) == width > 1 else "")
                raise _refusal(path, row + line, where, str(values[line, at]))
            row += batch.num_rows
            numbers.see(values)
            yield values
    numbers.check()


def column(path: Path, name: str) -> Array:
    """Read a column with the names of rows, which must be integers or text."""
    types, parts, row = pyarrow().types, [], 0
    with _open(path) as (schema, _, batches):
        place = place_of(path, list(schema.names), name)
        kind = schema.field(place).type
        if not (types.is_integer(kind) or types.is_string(kind) or types.is_large_string(kind)):
            message = f"{path}: column {name!r} holds {kind}, expected integers or text as names of rows"
            raise FileFormatError(message, path, path.stat().st_size, "integers or text")
        for batch in batches:
            _refuse_null(path, batch.column(place), row, f"column {name!r}")
            parts.append(batch.column(place).to_numpy(zero_copy_only=False))
            row += batch.num_rows
    found: Array = np.concatenate(parts) if parts else np.empty(0, np.int64)
    return found if found.dtype.kind in "iu" else found.astype(str)


def _matrix(path: Path, column: Any, width: int, row: int, name: str) -> Array:
    _refuse_null(path, column, row, f"column {name!r}")
    lengths = np.asarray(column.value_lengths()) if hasattr(column, "value_lengths") else np.full(len(column), width)
    other = np.flatnonzero(lengths != width)
    if len(other):
        raise _refusal(path, row + int(other[0]), f"column {name!r}", f"{lengths[other[0]]} values, not {width}")
    flat = column.flatten()
    if flat.null_count:
        at = int(np.flatnonzero(flat.is_null().to_numpy(zero_copy_only=False))[0])
        raise _refusal(path, row + at // width, f"column {at % width}", "null")
    values: Array = flat.to_numpy(zero_copy_only=False).reshape(-1, width)
    return values


def _refuse_null(path: Path, column: Any, row: int, where: str) -> None:
    if column.null_count:
        at = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise _refusal(path, row + at, where, "null")


def _refusal(path: Path, row: int, where: str, found: str) -> FileFormatError:
    message = f"{path}: row {row}, {where}: found {found}, expected finite numbers. Leave that row out."
    return FileFormatError(message, path, path.stat().st_size, "finite numbers")


def read(path: Path, *, mmap: bool, key: str | None, most: float) -> Array:
    """Read all points into memory."""
    rows = table(path, key)
    check_expansion(path, path.stat().st_size, math.prod(rows.shape) * rows.itemsize, most)
    return rows[:]


def write(path: Path, array: Array) -> None:
    """Write the rows of a matrix as one column of fixed-size lists, "vector"."""
    _write(path, {DEFAULT_KEY: array}, {})


def write_neighbors(
    path: Path,
    indices: Array,
    distances: Array,
    about: Mapping[str, Any],
    names: tuple[Array | None, Array | None] = (None, None),
) -> None:
    """Write neighbours as columns of lists, and the properties `about` as JSON in the schema's metadata, "tonari".

    `names` is a pair: the names of the rows, for a column "id", and the names of all points, for a column "ids" with
    the names of each row's neighbours. If either is None, its column is left out.
    """
    _write(path, {"indices": indices, "distances": distances}, {"tonari": json.dumps(about)}, names)


def _named(indices: Array, names: Array) -> Any:
    """Return the names of each row's neighbours as an Arrow array of fixed-size lists; null for a missing neighbour."""
    arrow = pyarrow()
    flat = indices.reshape(-1)
    found = arrow.array(names[flat], mask=flat < 0)  # the mask turns -1, a missing neighbour, into null
    return arrow.FixedSizeListArray.from_arrays(found, indices.shape[1])


def as_lists(array: Array) -> Any:
    """Return the rows of a matrix as an Arrow array of fixed-size lists."""
    arrow = pyarrow()
    return arrow.FixedSizeListArray.from_arrays(arrow.array(array.reshape(-1)), array.shape[1])


def _write(
    path: Path,
    columns: dict[str, Array],
    metadata: dict[str, str],
    names: tuple[Array | None, Array | None] = (None, None),
) -> None:
    arrow = pyarrow()
    rows_named, points_named = names
    fields = [
        (name, arrow.list_(arrow.from_numpy_dtype(one.dtype.newbyteorder("=")), one.shape[1]))
        for name, one in columns.items()
    ]
    if rows_named is not None:
        fields.append(("id", arrow.array(rows_named[:0]).type))
    if points_named is not None:
        fields.append(("ids", arrow.list_(arrow.array(points_named[:0]).type, columns["indices"].shape[1])))
    schema = arrow.schema(fields, metadata=metadata or None)
    with atomic(path) as file:
        if path.suffix.lower() == PARQUET:
            writer = importlib.import_module("pyarrow.parquet").ParquetWriter(file, schema)
        else:
            writer = arrow.ipc.new_file(file, schema)
        with writer:
            widest = max(columns.values(), key=lambda one: one.itemsize)
            for start, rows in pieces(widest):
                parts = [
                    as_lists(rows if one is widest else np.ascontiguousarray(one[start : start + len(rows)]))
                    for one in columns.values()
                ]
                here = slice(start, start + len(rows))
                if rows_named is not None:
                    parts.append(arrow.array(rows_named[here]))
                if points_named is not None:
                    parts.append(_named(np.asarray(columns["indices"][here]), points_named))
                writer.write_batch(arrow.record_batch(parts, schema=schema))


def describe(path: Path, *, key: str | None, choice: Choice | None = None) -> FileInfo:
    """Describe the points by the file's schema; `extra` lists all columns."""
    names, (rows, columns), dtype = _layout(path, key, choice or Choice())
    with _open(path) as (schema, _, _):
        extra = {"columns": ", ".join(schema.names)}
    if len(names) == 1:
        extra["key"] = names[0]
    return FileInfo(path, path.suffix.lower()[1:], rows, columns, str(dtype), path.stat().st_size, extra)
