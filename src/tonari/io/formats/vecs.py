"""TEXMEX files (.fvecs, .bvecs, .ivecs): no header; each row is its number of values d, as int32, then the d values.

    | d | v v v ... v | d | v v v ... v | ...        little-endian; 4 + d * itemsize bytes for each row

The file is memory-mapped as bytes of shape (rows, 4 + d * itemsize). The matrix is a view of the columns from byte 4
on, so that nothing is loaded.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tonari.io import tuning
from tonari.io._atomic import atomic
from tonari.io._common import Array, DType, FileFormatError, FileInfo, loaded, mismatch, pieces, size_of

DTYPES: dict[str, DType] = {".fvecs": np.dtype("<f4"), ".bvecs": np.dtype("u1"), ".ivecs": np.dtype("<i4")}
PREFIX = 4


def _first_difference(widths: Array, columns: int) -> int:
    """Return the row number of the first row whose width is not `columns`, or -1 if all rows have this width."""
    for start in range(0, len(widths), tuning.CHECKED_ROWS):
        different = np.flatnonzero(widths[start : start + tuning.CHECKED_ROWS] != columns)
        if different.size:
            return start + int(different[0])
    return -1


def _map(path: Path) -> Array:
    """Memory-map the matrix as a read-only, strided array, after checking all widths and the size of the file."""
    dtype = DTYPES[path.suffix.lower()]
    size = size_of(path)
    if size < PREFIX:
        raise mismatch(path, size, f"at least {PREFIX}", "the int32 width of row 0", "The file is truncated.")
    raw = np.memmap(path, dtype=np.uint8, mode="r")
    columns = int(raw[:PREFIX].view("<i4")[0])
    if columns < 1:
        raise mismatch(
            path, size, f"at least {PREFIX + dtype.itemsize}", f"row 0 says {columns} columns", "Is this such a file?"
        )
    stride = PREFIX + columns * dtype.itemsize
    rows = size // stride
    whole = raw[: rows * stride].reshape(rows, stride)
    widths = whole[:, :PREFIX].view("<i4")[:, 0]
    row = _first_difference(widths, columns)
    if row >= 0:
        width = int(widths[row])
        found = PREFIX + width * dtype.itemsize
        raise FileFormatError(
            f"{path}: row {row}, at byte {row * stride} of {size}, says {width} columns: found a row of "
            f"{found} bytes, expected {stride} bytes as row 0 says {columns} columns. "
            f"Check that the values are {dtype} (the suffix decides) and that all rows have one width.",
            path,
            found,
            stride,
        )
    if rows * stride != size:
        raise mismatch(
            path,
            size,
            f"{rows * stride} or {(rows + 1) * stride}" if rows else f"at least {stride}",
            f"whole rows of {stride} bytes, {columns} columns of {dtype}",
            f"Row {rows} is cut off: fetch the file again.",
        )
    matrix: Array = whole[:, PREFIX:].view(dtype)
    return matrix


def read(path: Path, *, mmap: bool, key: str | None, most: float) -> Array:
    """Open the (n, d) matrix; with `mmap`, it is a read-only view whose rows are separated by gaps of 4 bytes."""
    return loaded(_map(path), mmap)


def write(path: Path, array: Array) -> None:
    """Write a file of the rows, each preceded by its width."""
    width = np.array([array.shape[1]], dtype="<i4").view(np.uint8)
    with atomic(path) as file:
        for _, rows in pieces(array):
            block = np.empty((len(rows), PREFIX + rows.shape[1] * rows.itemsize), dtype=np.uint8)
            block[:, :PREFIX] = width
            block[:, PREFIX:] = rows.view(np.uint8)
            file.write(block.data)


def describe(path: Path, *, key: str | None) -> FileInfo:
    """Describe the matrix, after checking every row's width."""
    matrix = _map(path)
    rows, columns = matrix.shape
    extra = {"prefix": f"{PREFIX} bytes before each row"}
    return FileInfo(path, path.suffix.lower()[1:], rows, columns, str(matrix.dtype), path.stat().st_size, extra)
