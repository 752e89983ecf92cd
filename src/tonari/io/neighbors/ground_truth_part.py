"""An unfinished file of ground truth, whose rows are written in place, in any order.

This is possible because the offset of each row in the file is fixed:

    8 + 4 * k * row              the ids of the row's neighbours
    8 + 4 * k * (rows + row)     their distances

On most file systems, unwritten parts take no space on the disk.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from tonari.core.results.neighbors import Neighbors
from tonari.io import tuning
from tonari.io._atomic import named_after
from tonari.io._common import Array
from tonari.io.formats.bin import header
from tonari.io.neighbors.ground_truth import HEADER_BYTES, as_ids, as_values, check_size


class GroundTruthPart:
    """A file of ground truth that is not complete yet.

    Only one process can have it open. The process that holds the lock of the file at `path` may change that file, and
    may create, replace and remove the files named after it.

    Parameters
    ----------
    path : Path
        Created if it does not exist; otherwise its contents are kept. A symbolic link is not followed.
    rows, k : int

    Raises
    ------
    ValueError
        More rows or neighbours than the header can hold.
    BlockingIOError
        Another process has the file open.
    OSError
        The path is a symbolic link, is not a regular file, or cannot be opened.
    """

    def __init__(self, path: Path, rows: int, k: int) -> None:
        check_size(path, (rows, k))
        self.path, self.rows, self.k = path, rows, k
        for _ in range(tuning.OPENINGS):
            # No O_TRUNC: until this process has locked the file, the contents may belong to another process.
            flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
            self._file = os.fdopen(os.open(path, flags, 0o666), "r+b", buffering=0)
            try:
                if not stat.S_ISREG(os.fstat(self._file.fileno()).st_mode):
                    raise FileExistsError(f"{path}: exists and is not a regular file; remove it")
                if not locked(self._file.fileno(), shared=False):
                    raise being_written(path)
                if self.in_place:
                    return
            except BaseException:
                self._file.close()
                raise
            self._file.close()  # another process renamed or removed the file before this process locked it
        raise being_written(path)

    @property
    def in_place(self) -> bool:
        """Whether `path` still names the open file, which may have been renamed, removed or replaced."""
        try:
            return os.path.samestat(os.fstat(self._file.fileno()), os.lstat(self.path))
        except FileNotFoundError:
            return False

    @property
    def whole_bytes(self) -> int:
        """The size that :meth:`begin` gives to the file, in bytes."""
        return HEADER_BYTES + 8 * self.rows * self.k

    @property
    def bytes(self) -> int:
        """The current size of the file, in bytes."""
        return os.fstat(self._file.fileno()).st_size

    def header_fault(self) -> str:
        """Describe how the header differs from the one that :meth:`begin` writes; "" if they are equal."""
        self._file.seek(0)
        found, expected = self._file.read(HEADER_BYTES), header(self.rows, self.k)
        return "" if found == expected else f"found the header {found.hex()}, expected {expected.hex()}"

    def begin(self) -> None:
        """Discard the contents, write the header, and set the final size. After an error the file is empty."""
        self.clear()
        try:
            with named_after(self.path):
                self._file.truncate(self.whole_bytes)
            self._put(0, [np.frombuffer(header(self.rows, self.k), np.uint8)])
        except BaseException:
            self.clear()
            raise

    def clear(self) -> None:
        """Discard the file's contents."""
        self._file.truncate(0)

    def remove(self) -> None:
        """Remove the file, unless it has been removed or replaced."""
        if self.in_place:
            self.path.unlink()

    def write(self, first: int, found: Neighbors) -> None:
        """Write the neighbours of a block of rows that starts with row `first`."""
        self._put(HEADER_BYTES + 4 * self.k * first, as_ids(self.path, found.indices))
        self._put(HEADER_BYTES + 4 * self.k * (self.rows + first), as_values(self.path, found.distances))

    def sync(self) -> None:
        """Wait until all rows written so far are on the disk."""
        with named_after(self.path):
            os.fsync(self._file.fileno())

    def _put(self, offset: int, arrays: Iterable[Array]) -> None:
        with named_after(self.path):
            self._file.seek(offset)
            for array in arrays:
                left = memoryview(array.data).cast("B")
                while left:
                    left = left[self._file.write(left) :]

    def close(self) -> None:
        """Close the file and release its lock."""
        self._file.close()


def being_written(path: Path) -> BlockingIOError:
    """Return the exception to raise for a file that another process has locked."""
    return BlockingIOError(f"{path}: another process is writing it; wait, or write to another file")


def is_locked(path: Path) -> bool:
    """Return whether another process holds the lock of the file at `path`, as an open `GroundTruthPart` does."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except (FileNotFoundError, PermissionError):  # without permission to read, a lock cannot be detected
        return False
    try:
        return not locked(descriptor, shared=True)
    finally:
        os.close(descriptor)


def locked(descriptor: int, *, shared: bool) -> bool:
    """Lock a file until it is closed, and return True; return False if another process has locked it."""
    try:
        import fcntl
    except ImportError:  # systems other than POSIX have no locks
        return True
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # the file system does not support locks
        return True
    return True
