"""Big-ANN files (.fbin, .f16bin, .u8bin, .i8bin, .ibin): a header with the shape of the matrix, then the values.

    | n: uint32 | d: uint32 | n * d values, row by row |      8-byte header, little-endian
    | n: uint64 | d: uint64 | n * d values, row by row |      16-byte header, when n or d is above 2**32 - 1

The size of the file distinguishes the two headers. It also distinguishes a matrix of ids from ground truth, since both
use the suffix `.ibin`.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from tonari.io._atomic import atomic
from tonari.io._common import Array, DType, FileInfo, loaded, mapped, mismatch, pieces, size_of

DTYPES: dict[str, DType] = {
    ".fbin": np.dtype("<f4"),
    ".f16bin": np.dtype("<f2"),
    ".u8bin": np.dtype("u1"),
    ".i8bin": np.dtype("i1"),
    ".ibin": np.dtype("<i4"),
}
NARROW, WIDE = "<2I", "<2Q"


def counts(path: Path) -> tuple[int, int, int]:
    """Return the two counts of an 8-byte header (rows, columns), and the size of the file in bytes."""
    size = size_of(path)
    if size < 8:
        raise mismatch(path, size, "at least 8", "a header of two uint32, rows and columns", "The file is truncated.")
    with open(path, "rb") as file:
        rows, columns = struct.unpack(NARROW, file.read(8))
    return rows, columns, size


def holds_ground_truth(rows: int, columns: int, size: int) -> bool:
    """Return whether a file has the size of ground truth.

    Ground truth is an 8-byte header, then n * k int32 ids, then n * k float32 distances.
    """
    return rows > 0 and columns > 0 and size == 8 + 8 * rows * columns


def layout(path: Path) -> tuple[int, int, int]:
    """Return the header's length in bytes (8 or 16, whichever agrees with the size of the file), n and d."""
    dtype = DTYPES[path.suffix.lower()]
    rows, columns, size = counts(path)
    expected = 8 + rows * columns * dtype.itemsize
    if columns and size == expected:
        return 8, rows, columns
    fix = f"Fetch the file again, and check that its values are {dtype} (the suffix decides)."
    if size >= 16:
        with open(path, "rb") as file:
            wide_rows, wide_columns = struct.unpack(WIDE, file.read(16))
        wide_expected = 16 + wide_rows * wide_columns * dtype.itemsize
        if wide_columns and size == wide_expected:
            return 16, wide_rows, wide_columns
        # The upper half of a 64-bit n below 2**32 is 0, so a 16-byte header looks like an 8-byte one with 0 columns.
        if rows and columns == 0 and wide_columns:
            why = f"16-byte header: {wide_rows} rows, {wide_columns} columns of {dtype}"
            raise mismatch(path, size, wide_expected, why, fix)
    if path.suffix.lower() == ".ibin" and holds_ground_truth(rows, columns, size):
        why = f"a matrix of {rows} x {columns} {dtype}; this size is ids and distances"
        raise mismatch(path, size, expected, why, "This is ground truth: use tonari.io.read_ground_truth.")
    if not columns:
        why = f"the header says {rows} rows and {columns} columns, at least one column is needed"
        raise mismatch(path, size, f"at least {8 + dtype.itemsize}", why, fix)
    raise mismatch(path, size, expected, f"8-byte header: {rows} rows, {columns} columns of {dtype}", fix)


def header(rows: int, columns: int) -> bytes:
    """Return the header of a matrix as bytes: 8 if both counts fit in uint32, else 16."""
    return struct.pack(NARROW if max(rows, columns) < 2**32 else WIDE, rows, columns)


def read(path: Path, *, mmap: bool, key: str | None, most: float) -> Array:
    """Open the (n, d) matrix as a C-contiguous array."""
    offset, rows, columns = layout(path)
    dtype = DTYPES[path.suffix.lower()]
    return loaded(mapped(path, dtype, offset, (rows, columns)), mmap)


def write(path: Path, array: Array) -> None:
    """Write the header, then the rows."""
    with atomic(path) as file:
        file.write(header(*array.shape))
        for _, rows in pieces(array):
            file.write(rows.data)


def describe(path: Path, *, key: str | None) -> FileInfo:
    """Describe the matrix by its header and the size of the file, without reading values."""
    suffix = path.suffix.lower()
    offset, rows, columns = layout(path)
    extra = {"header": f"{offset} bytes"}
    return FileInfo(path, suffix[1:], rows, columns, str(DTYPES[suffix]), path.stat().st_size, extra)
