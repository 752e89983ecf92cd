"""NumPy's own files (.npy): a short header with dtype, order and shape, then the values as one block."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import IO, Literal, NamedTuple

from numpy.lib import format as npy_format

from tonari.io._atomic import atomic
from tonari.io._common import (
    Array,
    DType,
    FileInfo,
    check_stored,
    little,
    loaded,
    mapped,
    mismatch,
    parsing,
    pieces,
    size_of,
)

# The longest header that is read, in bytes, including padding. NumPy has the same limit for files that must not be
# unpickled.
LONGEST_HEADER = 10_000


Holds = Literal["matrix", "vector", "text"]


class Header(NamedTuple):
    """The shape, order and dtype in the header of a .npy file; the values start at byte `offset`."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: DType
    offset: int


def read_header(file: IO[bytes], path: Path, size: int, where: str, *, holds: Holds = "matrix") -> Header:
    """Parse the header of a .npy file, and check it against the size of the file.

    Parameters
    ----------
    file : binary file
        Open at the start of the header; it may be a member of an archive.
    path : Path
        The file or archive, for errors.
    size : int
        The size of the .npy file in bytes.
    where : str
        The path, and the name of the array in an archive, for errors.
    holds : "matrix", "vector" or "text"
        The expected array: a matrix of numbers, a vector of numbers, or a single string.
    """
    start, length = _start(file)
    with parsing(path, size, "a .npy header and its values", "Save it with numpy.save.", where=where):
        shape, fortran, dtype = _parse(start, length)
        if holds == "text" and (dtype.kind != "U" or not dtype.itemsize or shape != ()):
            raise ValueError(f"holds {dtype} of shape {shape}, not a single string")
        if holds == "vector" and (dtype.kind not in "iuf" or len(shape) != 1):
            raise ValueError(f"holds {dtype} of shape {shape}, not a vector of numbers")
    if holds == "matrix":
        check_stored(path, size, shape, dtype, where=where)
    offset = len(start)
    expected = offset + math.prod(shape) * dtype.itemsize
    if size != expected:
        why = f"{where}: a header of {offset} bytes, then shape {shape} of {dtype}"
        raise mismatch(path, size, expected, why, "The file is truncated or has bytes added: fetch or save it again.")
    return Header(shape, fortran, dtype, offset)


def read_vector_header(file: IO[bytes], path: Path, size: int, where: str) -> Header:
    """Parse the header of an array with one axis, of any dtype; the size of the file is not checked against it."""
    start, length = _start(file)
    with parsing(path, size, "a .npy header and its values", "Save it with numpy.save.", where=where):
        shape, fortran, dtype = _parse(start, length)
        if len(shape) != 1:
            raise ValueError(f"has shape {shape}, not one axis")
    return Header(shape, fortran, dtype, len(start))


def _start(file: IO[bytes]) -> tuple[bytes, int]:
    """Read the bytes of a header, at most LONGEST_HEADER, and return them and the length that the header states."""
    start = file.read(npy_format.MAGIC_LEN)
    start += file.read(2 if start[-2:] == bytes([1, 0]) else 4)
    length = int.from_bytes(start[npy_format.MAGIC_LEN :], "little")
    return start + file.read(min(length, LONGEST_HEADER)), length


def _parse(start: bytes, length: int) -> tuple[tuple[int, ...], bool, DType]:
    file = io.BytesIO(start)
    version = npy_format.read_magic(file)
    if version not in ((1, 0), (2, 0)):  # version 3 exists only for structured arrays
        raise ValueError(f"version {version} of the format is for arrays with named fields")
    if length > LONGEST_HEADER:
        raise ValueError(f"its header says that it is {length} bytes long, at most {LONGEST_HEADER} are read")
    parse = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
    shape, fortran, dtype = parse(file, max_header_size=LONGEST_HEADER)
    if any(type(entry) is not int for entry in shape):
        raise ValueError(f"its shape {shape} is not of whole numbers")
    return shape, fortran, dtype


def header(dtype: DType, shape: tuple[int, ...]) -> bytes:
    """Return the header of a .npy file as bytes, for an array in C order."""
    file = io.BytesIO()
    fields = {"descr": npy_format.dtype_to_descr(little(dtype)), "fortran_order": False, "shape": shape}
    npy_format.write_array_header_1_0(file, fields)
    return file.getvalue()


def write_array(file: IO[bytes], array: Array) -> None:
    """Write an array to an open file in .npy format, in C order and little-endian, piece by piece."""
    file.write(header(array.dtype, array.shape))
    for _, rows in pieces(array):
        file.write(rows.data)


def _header(path: Path) -> Header:
    size = size_of(path)
    with open(path, "rb") as file:
        return read_header(file, path, size, str(path))


def read(path: Path, *, mmap: bool, key: str | None, most: float) -> Array:
    """Open the (n, d) matrix as an array, in C or Fortran order, depending on how it was saved."""
    head = _header(path)
    order: Literal["C", "F"] = "F" if head.fortran else "C"
    return loaded(mapped(path, head.dtype, head.offset, head.shape, order), mmap)


def write(path: Path, array: Array) -> None:
    """Write the matrix in C order, little-endian."""
    with atomic(path) as file:
        write_array(file, array)


def describe(path: Path, *, key: str | None) -> FileInfo:
    """Describe the matrix by its header, without reading values."""
    head = _header(path)
    rows, columns = head.shape
    extra = {"header": f"{head.offset} bytes", "order": "Fortran" if head.fortran else "C"}
    return FileInfo(path, "npy", rows, columns, str(head.dtype), path.stat().st_size, extra)
