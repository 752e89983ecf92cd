"""The location of rows in a file, recorded so that they can be mapped again later, and changes of the file detected."""

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
    """The location and layout of rows in a file, and the state of the file.

    Attributes
    ----------
    path : str
        The absolute path of the file.
    offset : int
        The byte at which the first row begins.
    n, d : int
        The number of rows and of columns.
    pitch : int
        Bytes from the start of a row to the start of the next one.
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
        """Return the location of rows that are a view of a memory map; None if they are not in a file.

        The elements of each row must be adjacent.
        """
        whole = _memmap_of(rows)
        if whole is None:
            return None
        path = os.path.abspath(os.fspath(whole.filename))  # type: ignore[arg-type]
        about = os.stat(path)
        # `whole.offset` is the position of the mapped array in the file; the memory map begins at the allocation
        # boundary before it.
        begin = whole.offset - whole.offset % mmap.ALLOCATIONGRANULARITY
        offset = begin + rows.ctypes.data - np.frombuffer(_map_of(whole), np.uint8).ctypes.data
        n, d = rows.shape
        pitch = rows.strides[0] if n > 1 else d * rows.itemsize  # a single row may have a negative stride
        return cls(path, offset, n, d, pitch, rows.dtype.name, about.st_size, about.st_mtime_ns)

    @property
    def bytes(self) -> int:
        """The number of bytes from the start of the first row to the end of the last one."""
        return (self.n - 1) * self.pitch + self.d * dtype_of(self.dtype).itemsize

    def mapped(self) -> Rows:
        """Memory-map the rows again, read-only, for reads in any order."""
        dtype = dtype_of(self.dtype)
        whole = np.memmap(self.path, np.uint8, "r", self.offset, (self.bytes,))
        if hasattr(mmap, "MADV_RANDOM"):
            _map_of(whole).madvise(mmap.MADV_RANDOM)  # rows are read one by one, so that read-ahead would be wasted
        return np.ndarray((self.n, self.d), dtype, whole, 0, (self.pitch, dtype.itemsize))

    def changed(self) -> str:
        """Describe how the file has changed since its location was recorded; "" if it has not."""
        try:
            about = os.stat(self.path)
        except FileNotFoundError:
            return "is gone"
        if about.st_size != self.size:
            return f"has {about.st_size} bytes, it had {self.size}"
        return "was written to" if about.st_mtime_ns != self.time else ""


def forget_pages(rows: Rows) -> None:
    """Release the memory pages of mapped rows from this process; the system's page cache may keep them.

    Nothing happens if the rows are not in a file, or if the system does not support it.
    """
    whole = _memmap_of(rows)
    if whole is None or not hasattr(mmap, "MADV_DONTNEED"):
        return
    held, page = _map_of(whole), mmap.PAGESIZE
    first = rows.ctypes.data - np.frombuffer(held, np.uint8).ctypes.data
    # Only pages that are entirely within these rows: a page at either end may be in use for other rows.
    begin, end = -(-first // page) * page, (first + (len(rows) - 1) * rows.strides[0]) // page * page
    if begin < end:
        held.madvise(mmap.MADV_DONTNEED, begin, end - begin)


def _memmap_of(rows: Any) -> np.memmap[Any, Any] | None:
    """Return the memory map behind an array that is a view of it; None if none exists, or if it is copy-on-write."""
    while isinstance(rows, np.ndarray):
        if isinstance(rows, np.memmap) and rows.filename is not None and rows.mode != "c":
            return rows if isinstance(rows.filename, str | Path) else None
        rows = rows.base
    return None


def _map_of(whole: np.memmap[Any, Any]) -> mmap.mmap:
    mapping: mmap.mmap = whole._mmap  # type: ignore[attr-defined]
    return mapping
