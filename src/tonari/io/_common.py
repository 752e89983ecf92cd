"""Helpers of all file formats: FileFormatError, the description of a file, checks, and access in pieces."""

from __future__ import annotations

import errno
import math
import os
import stat
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
import numpy.typing as npt

from tonari.io import tuning

try:
    from lzma import LZMAError as _LZMAError
except ImportError:  # a Python without lzma cannot read LZMA archives, so that this exception never occurs
    _LZMAError = zlib.error  # type: ignore[misc,assignment]

Array = npt.NDArray[Any]
DType = np.dtype[Any]
StrPath = str | os.PathLike[str]


# default of `max_expansion`: the largest size of an array in memory, as a multiple of the file's size
MAX_EXPANSION = 100.0
FREE_BYTES = 64 << 20  # arrays of at most this many bytes are read from files of any size

# exceptions of zipfile, its decompressors, NumPy, h5py and json for unexpected bytes
_UNREADABLE = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    EOFError,
    OSError,
    RuntimeError,
    MemoryError,
    SyntaxError,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
    _LZMAError,
    struct.error,
)


class FileFormatError(ValueError):
    """An error that reports that the contents of a file contradict its suffix or its header.

    The file is truncated, damaged or of another format, refers to other files, or would take far more memory than its
    size.

    Attributes
    ----------
    path : Path
    found : int
        The number of bytes found in the file, or in the part of it that the message names.
    expected : int or str
        Bytes expected, or a description of what was expected.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import tonari
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "points.fbin")
    ...     _ = path.write_bytes(bytes([2, 0, 0, 0, 3, 0, 0, 0]))  # two rows of three, and no value
    ...     try:
    ...         tonari.io.read(path)
    ...     except tonari.io.FileFormatError as error:
    ...         print(error.found, error.expected)
    8 32
    """

    def __init__(self, message: str, path: Path, found: int, expected: int | str) -> None:
        super().__init__(message, path, found, expected)
        self.path, self.found, self.expected = path, found, expected

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True)
class FileInfo:
    """The description of a file of points, from its header and its size.

    Attributes
    ----------
    path : Path
    format : str, for example "fvecs", "fbin", "npy", "ground truth"
    rows, columns : int
    dtype : str, for example "float32"
    bytes : int, the size of the file on disk
    extra : dict of str to str, facts that are specific to the format (header length, names of the arrays, ...)
    """

    path: Path
    format: str
    rows: int
    columns: int
    dtype: str
    bytes: int
    extra: dict[str, str] = field(default_factory=dict)


def size_of(path: Path) -> int:
    """Return the size in bytes of a regular file; raise an error if it does not exist or is empty."""
    if path.is_dir():
        raise IsADirectoryError(f"{path}: this is a directory, a file is needed")
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file")
    size = path.stat().st_size
    if not path.is_file():
        raise _refusal(path, size, "a regular file", "this is a device, a pipe or a socket", "Copy it to a file.")
    if size == 0:
        raise _refusal(path, 0, "at least 1 byte", "the file is empty", "Fetch it again.")
    return size


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file to read its bytes; raise an error for a pipe or device at once, without waiting for data.

    Raises
    ------
    FileNotFoundError, NotADirectoryError, IsADirectoryError
        The file does not exist.
    FileFormatError
        The path is a device, a pipe or a socket.
    """
    file = os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)), "rb")
    status = os.fstat(file.fileno())
    if stat.S_ISREG(status.st_mode):
        return file
    file.close()
    raise _refusal(path, status.st_size, "a regular file", "this is a device, a pipe or a socket", "Copy it to a file.")


def mismatch(path: Path, found: int, expected: int | str, why: str, fix: str) -> FileFormatError:
    """Return the error for a file whose size differs from the size that its header implies."""
    message = f"{path}: found {found} bytes, expected {expected} bytes ({why}). {fix}"
    return FileFormatError(message, path, found, expected)


def _refusal(path: Path, found: int, expected: str, why: str, fix: str, where: str = "") -> FileFormatError:
    return FileFormatError(
        f"{where or path}: found {found} bytes, expected {expected}: {why}. {fix}", path, found, expected
    )


@contextmanager
def parsing(path: Path, found: int, expected: str, fix: str, *, where: str = "") -> Iterator[None]:
    """Convert exceptions from a parser to FileFormatError; `expected` describes valid contents for the message.

    `found` is the size in bytes of the file, or of the part that `where` names. Disk errors are not converted.
    """
    try:
        yield
    except FileFormatError:
        raise
    except _UNREADABLE as error:
        # A decoder raises OSError without errno, and a seek to before the start raises EINVAL; all others are disk
        # errors.
        if isinstance(error, OSError) and (type(error) is not OSError or error.errno not in (None, errno.EINVAL)):
            raise
        raise _refusal(path, found, expected, reason(error), fix, where) from error


def reason(error: BaseException) -> str:
    """Return the message of an error, or the name of its type if the message is empty."""
    return str(error).rstrip(".") or type(error).__name__


def check_matrix(where: str, shape: tuple[int, ...], dtype: DType) -> None:
    """Raise ValueError if an array to be written is not a matrix of numbers; `where` names the file and the array."""
    fault = _fault(shape, dtype)
    if fault:
        raise ValueError(f"{where}: {fault}")


def check_stored(path: Path, found: int, shape: tuple[int, ...], dtype: DType, *, where: str = "") -> None:
    """Raise FileFormatError if an array in a file is not a matrix of numbers; it may have no rows."""
    fault = _fault(shape, dtype, rows=0)
    if fault:
        expected = "a matrix of numbers"
        raise FileFormatError(
            f"{where or path}: found {found} bytes, expected {expected}: {fault}", path, found, expected
        )


def _fault(shape: tuple[int, ...], dtype: DType, rows: int = 1) -> str:
    """Describe why an array is not a matrix of numbers with at least `rows` rows; "" if it is one."""
    if dtype.kind not in "biuf":
        return f"holds {dtype}, expected integers or floats. Convert with .astype()."
    if len(shape) != 2:
        return f"has shape {shape}, expected (rows, columns). Use .reshape(len(array), -1)."
    if shape[0] < rows or shape[1] < 1:
        return (
            f"has shape {shape}, which is 0 bytes of values, expected at least {dtype.itemsize} bytes. "
            f"Give it at least {'one row and ' * bool(rows)}one column."
        )
    return ""


def expansion(asked: float | None) -> float:
    """Return the largest size in memory that a compressed array may have, as a multiple of its file's size.

    `asked` is the caller's argument `max_expansion`. If it is None, the environment variable TONARI_MAX_EXPANSION
    applies, and then the default, 100.

    >>> expansion(None), expansion(1000)
    (100.0, 1000.0)
    """
    name: str = "max_expansion"
    given: Any = asked
    if asked is None:
        name, given = "TONARI_MAX_EXPANSION", os.environ.get("TONARI_MAX_EXPANSION", MAX_EXPANSION)
    try:
        most = math.nan if isinstance(given, bool) else float(given)
    except (TypeError, ValueError):
        most = math.nan
    if not most >= 1:
        raise ValueError(f"{name}={given!r}: expected a number of at least 1, or inf for no limit")
    return most


def check_expansion(path: Path, size: int, needed: int, most: float, *, where: str = "") -> None:
    """Raise FileFormatError if an array of `needed` bytes is more than `most` times as large as its file of `size`."""
    if needed > max(FREE_BYTES, most * size):
        raise _refusal(
            path,
            size,
            f"at least {math.ceil(needed / most)} bytes",
            f"its values take {needed} bytes in memory, and at most {most:g} times the file are read",
            f"If you trust the file, read it with max_expansion={math.ceil(needed / size)} or more.",
            where,
        )


def little(dtype: DType) -> DType:
    """Return the same dtype in little-endian byte order, which all file formats use."""
    return dtype.newbyteorder("<")


def pieces(array: Array) -> Iterator[tuple[int, Array]]:
    """Yield an array in pieces, little-endian and C-contiguous, each with the row number of its first row.

    Pieces of about `PIECE_BYTES` are copied one after another, so a memory map larger than memory can be written.
    """
    step = max(1, tuning.PIECE_BYTES // (array.itemsize * math.prod(array.shape[1:])))
    for start in range(0, len(array), step):
        yield start, np.ascontiguousarray(array[start : start + step], dtype=little(array.dtype))


def mapped(path: Path, dtype: DType, offset: int, shape: tuple[int, ...], order: Literal["C", "F"] = "C") -> Array:
    """Memory-map the values of a file, read-only; return a plain empty array if the shape has no elements."""
    if not math.prod(shape):
        return np.empty(shape, dtype)
    return np.memmap(path, dtype, "r", offset, shape, order)


def loaded(array: Array, mmap: bool) -> Array:
    """Return the memory map itself if `mmap`, else a C-contiguous copy of it in memory."""
    return array if mmap else np.array(array, order="C")
