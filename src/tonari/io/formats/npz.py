"""NumPy archives (.npz): zip files of .npy files. Arrays are loaded into memory, as zip members cannot be mapped."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO

import numpy as np

from tonari.io import tuning
from tonari.io._atomic import atomic
from tonari.io._common import Array, FileFormatError, FileInfo, check_expansion, parsing, size_of
from tonari.io.formats import sparse_npz
from tonari.io.formats.npy import Header, Holds, read_header, write_array

MEMBER = ".npy"
DEFAULT_KEY = "arr_0"  # numpy.savez gives this name to an unnamed array


class Archive:
    """An open .npz file that gives access to its arrays; a context manager that closes the file.

    Parameters
    ----------
    path : Path
    most : float
        Largest size of an array in memory, as a multiple of the size of the file.

    Attributes
    ----------
    size : int
        Bytes of the file.
    keys : list of str
        Names of the arrays.

    Raises
    ------
    FileFormatError
        The file is not a complete archive. Methods raise it for an incomplete array.
    """

    def __init__(self, path: Path, most: float) -> None:
        self.path, self._most = path, most
        self.size = size_of(path)
        with self._parsing():
            self._zip = zipfile.ZipFile(path)
        self.keys = [name[: -len(MEMBER)] for name in self._zip.namelist() if name.endswith(MEMBER)]

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *failed: object) -> None:
        self._zip.close()

    def header(self, key: str, *, holds: Holds = "matrix") -> Header:
        """Read the shape and dtype of an array without reading its values; `holds` is as for :func:`read_header`."""
        with self._opened(key, holds=holds) as (_, head):
            return head

    def matrix(self, key: str) -> Array:
        """Read the array `key`, which must be a matrix of numbers."""
        with self._opened(key) as (file, head):
            return self._values(key, file, head)

    def text(self, key: str) -> str:
        """Read the array `key`, which must be a single string."""
        with self._opened(key, holds="text") as (file, head):
            return str(self._values(key, file, head)[()])

    def _parsing(self) -> AbstractContextManager[None]:
        expected = "a whole zip archive with its 22-byte end record"
        return parsing(self.path, self.size, expected, "The file is truncated or damaged: fetch or save it again.")

    @contextmanager
    def _opened(self, key: str, *, holds: Holds = "matrix") -> Iterator[tuple[IO[bytes], Header]]:
        if key not in self.keys:
            found, expected = f"{self.size} bytes with the arrays {', '.join(self.keys) or 'none'}", f"an array {key!r}"
            message = f"{self.path}: found {found}, expected {expected}. Is it the right file?"
            raise FileFormatError(message, self.path, self.size, expected)
        with self._parsing():
            member = self._zip.getinfo(key + MEMBER)
            file = self._zip.open(member)
        with file:
            with self._parsing():
                head = read_header(file, self.path, member.file_size, f"{self.path}, array {key!r}", holds=holds)
            yield file, head

    def _values(self, key: str, file: IO[bytes], head: Header) -> Array:
        # The array's header and the directory of the archive agree about the size, but both may be wrong.
        needed = math.prod(head.shape) * head.dtype.itemsize
        check_expansion(self.path, self.size, needed, self._most, where=f"{self.path}, array {key!r}")
        array: Array = np.empty(head.shape, head.dtype, order="F" if head.fortran else "C")
        left = array.reshape(-1, order="A").view(np.uint8).data
        with self._parsing():
            while left:
                piece = file.read(min(len(left), tuning.PIECE_BYTES))
                if not piece:
                    raise EOFError(f"array {key!r} ends {len(left)} bytes too early")
                left[: len(piece)] = piece
                left = left[len(piece) :]
        return array


def _choose(path: Path, keys: list[str], key: str | None) -> str:
    if key is None and sparse_npz.are_sparse(keys):
        raise ValueError(
            f"{path}: is a sparse matrix; load it with scipy.sparse.load_npz, whose rows tonari.search takes, too"
        )
    listed = ", ".join(keys) if keys else "none"
    if key is None and len(keys) == 1:
        return keys[0]
    if key is None:
        raise ValueError(f"{path}: found {len(keys)} arrays, expected one. Choose with key=: {listed}")
    if key not in keys:
        raise ValueError(f"{path}: there is no array {key!r}. Choose with key=: {listed}")
    return key


def read(path: Path, *, mmap: bool, key: str | None, most: float) -> Array:
    """Read the (n, d) matrix `key`, or the only array of the archive, into memory."""
    with Archive(path, most) as archive:
        return archive.matrix(_choose(path, archive.keys, key))


def write(path: Path, array: Array) -> None:
    """Write an uncompressed archive with a single array, "arr_0", as numpy.savez does."""
    with (
        atomic(path) as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive,
        archive.open(DEFAULT_KEY + MEMBER, "w", force_zip64=True) as member,
    ):
        write_array(member, array)


def describe(path: Path, *, key: str | None) -> FileInfo:
    """Describe an array by its header; `extra` lists all arrays of the archive."""
    if key is None and sparse_npz.is_sparse(path):
        return sparse_npz.describe(path)
    with Archive(path, math.inf) as archive:
        key = _choose(path, archive.keys, key)
        head = archive.header(key)
        rows, columns = head.shape
        extra = {"key": key, "keys": ", ".join(archive.keys)}
        return FileInfo(path, "npz", rows, columns, str(head.dtype), archive.size, extra)
