"""NumPy's own files (.npy): a short header with type, order and shape, then the values as one block."""

from __future__ import annotations

import math
import tokenize
from pathlib import Path
from typing import IO, Literal, NamedTuple

import numpy as np
from numpy.lib import format as npy_format

from tonari.io._atomic import atomic
from tonari.io._common import Array, DType, FileInfo, check_matrix, little, loaded, mismatch, pieces, size_of


class Header(NamedTuple):
    """What stands before the values; `offset` bytes long."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: DType
    offset: int


def read_header(file: IO[bytes], path: Path, size: int, where: str) -> Header:
    """Parse the header and compare the promised bytes with `size`; `where` names file (and array) in errors."""
    try:
        version = npy_format.read_magic(file)
        if version == (1, 0):
            shape, fortran, dtype = npy_format.read_array_header_1_0(file)
        elif version == (2, 0):
            shape, fortran, dtype = npy_format.read_array_header_2_0(file)
        else:  # version 3 exists only for field names, and fields are not columns
            raise ValueError(f"version {version} of the format is for arrays with named fields")
    except (ValueError, SyntaxError, TypeError, tokenize.TokenError) as error:
        raise ValueError(
            f"{where}: found {size} bytes, expected a .npy header and its values: {error}. Save it with numpy.save."
        ) from error
    check_matrix(where, shape, dtype)
    offset = file.tell()
    expected = offset + math.prod(shape) * dtype.itemsize
    if size != expected:
        why = f"{where}: a header of {offset} bytes, then shape {shape} of {dtype}"
        raise mismatch(path, size, expected, why, "The file is truncated or has bytes added: fetch or save it again.")
    return Header(shape, fortran, dtype, offset)


def write_array(file: IO[bytes], array: Array) -> None:
    """One array in .npy layout, C order, little-endian, in pieces."""
    fields = {"descr": npy_format.dtype_to_descr(little(array.dtype)), "fortran_order": False, "shape": array.shape}
    npy_format.write_array_header_1_0(file, fields)
    for _, rows in pieces(array):
        file.write(rows.data)


def _header(path: Path) -> Header:
    size = size_of(path)
    with open(path, "rb") as file:
        return read_header(file, path, size, str(path))


def read(path: Path, *, mmap: bool, key: str | None) -> Array:
    """The (n, d) matrix in the order in which it was saved (C or Fortran)."""
    head = _header(path)
    order: Literal["C", "F"] = "F" if head.fortran else "C"
    return loaded(np.memmap(path, head.dtype, "r", head.offset, head.shape, order), mmap)


def write(path: Path, array: Array) -> None:
    """C order, little-endian."""
    with atomic(path) as file:
        write_array(file, array)


def describe(path: Path, *, key: str | None) -> FileInfo:
    """Shape and type from the header; no value is read."""
    head = _header(path)
    rows, columns = head.shape
    extra = {"header": f"{head.offset} bytes", "order": "Fortran" if head.fortran else "C"}
    return FileInfo(path, "npy", rows, columns, str(head.dtype), path.stat().st_size, extra)
