"""Rows in a file, by their position: they can be mapped again later, and changes of the file are detected."""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.inputs import dtype_of

Rows = npt.NDArray[Any]


@dataclass(frozen=True)
class StoredRows:
    """The position of rows in a file.

    Attributes
    ----------
    path : str
        The absolute path of the file.
    offset : int
        The byte at which the first row begins.
    n, d : int
    pitch : int
        Bytes from a row to the next one.
    dtype : str
    size, time : int
        The size of the file in bytes, and the time of its last change in nanoseconds.
    """

    path: str
    offset: int
    n: int
    d: int
    pitch: int
    dtype: str
    size: int
    time: int

    @classmethod
    def of(cls, rows: Rows) -> StoredRows | None:
        """Return the position of mapped rows whose elements are adjacent; None if they are not in a file."""
        whole = _memmap_of(rows)
        if whole is None:
            return None
        path = os.path.abspath(os.fspath(whole.filename))  # type: ignore[arg-type]
        about = os.stat(path)
        # A map begins at a multiple of the granularity; `offset` is that of the array which was mapped first.
        begin = whole.offset - whole.offset % mmap.ALLOCATIONGRANULARITY
        offset = begin + rows.ctypes.data - np.frombuffer(_map_of(whole), np.uint8).ctypes.data
        n, d = rows.shape
        return cls(path, offset, n, d, rows.strides[0], rows.dtype.name, about.st_size, about.st_mtime_ns)

    @property
    def bytes(self) -> int:
        """Bytes from the first to the last row."""
        return (self.n - 1) * self.pitch + self.d * dtype_of(self.dtype).itemsize

    def mapped(self) -> Rows:
        """Map the rows, read-only, for reads in any order."""
        dtype = dtype_of(self.dtype)
        whole = np.memmap(self.path, np.uint8, "r", self.offset, (self.bytes,))
        if hasattr(mmap, "MADV_RANDOM"):
            _map_of(whole).madvise(mmap.MADV_RANDOM)  # single rows are read, so reading ahead is useless
        return np.ndarray((self.n, self.d), dtype, whole, 0, (self.pitch, dtype.itemsize))

    def changed(self) -> str:
        """Return the change of the file in words; "" if it did not change."""
        try:
            about = os.stat(self.path)
        except FileNotFoundError:
            return "is gone"
        if about.st_size != self.size:
            return f"has {about.st_size} bytes, it had {self.size}"
        return "was written to" if about.st_mtime_ns != self.time else ""


def forget_pages(rows: Rows) -> None:
    """Release the pages of mapped rows from this process; they stay in the page cache of the system.

    Has no effect on rows that are not in a file, or if the system does not support it.
    """
    whole = _memmap_of(rows)
    if whole is None or not hasattr(mmap, "MADV_DONTNEED"):
        return
    held, page = _map_of(whole), mmap.PAGESIZE
    first = rows.ctypes.data - np.frombuffer(held, np.uint8).ctypes.data
    # Whole pages only: the others may be in use for neighbouring rows.
    begin, end = -(-first // page) * page, (first + (len(rows) - 1) * rows.strides[0]) // page * page
    if begin < end:
        held.madvise(mmap.MADV_DONTNEED, begin, end - begin)


def _memmap_of(rows: Any) -> np.memmap[Any, Any] | None:
    """Return the map of a file that an array is a view of; None without such a map, or if it has private changes."""
    while isinstance(rows, np.ndarray):
        if isinstance(rows, np.memmap) and rows.filename is not None and rows.mode != "c":
            return rows if isinstance(rows.filename, str | Path) else None
        rows = rows.base
    return None


def _map_of(whole: np.memmap[Any, Any]) -> mmap.mmap:
    mapping: mmap.mmap = whole._mmap  # type: ignore[attr-defined]
    return mapping
