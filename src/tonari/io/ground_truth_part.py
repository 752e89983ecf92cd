"""Ground truth written in place, a run of rows at a time: the format has fixed offsets, so rows can come in any order.

    8 + 4 * k * row              ids of a row
    8 + 4 * k * (rows + row)     its distances

What is not written yet takes no room on most disks.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from tonari.core.neighbors import Neighbors
from tonari.io._common import Array
from tonari.io.bin import header
from tonari.io.ground_truth import HEADER_BYTES, as_ids, as_values, check_size

# Each try that fails is a run of another process that has come to its end meanwhile.
OPENINGS = 100


class GroundTruthPart:
    """A file of ground truth that is not whole yet.

    One process at a time may have it open: who holds the lock of the file that is at `path` may change that file, and
    may make, replace and remove what is named after it.

    Parameters
    ----------
    path : Path
        Is made if it is not there; what it holds is kept. A symbolic link is not followed.
    rows, k : int

    Raises
    ------
    ValueError
        More rows or neighbours than the header can tell.
    BlockingIOError
        Another process has it open.
    OSError
        It is a symbolic link or no regular file, or cannot be opened.
    """

    def __init__(self, path: Path, rows: int, k: int) -> None:
        check_size(path, (rows, k))
        self.path, self.rows, self.k = path, rows, k
        for _ in range(OPENINGS):
            # Not truncated: what it holds is another's until it is locked.
            flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
            self._file = os.fdopen(os.open(path, flags, 0o666), "r+b", buffering=0)
            try:
                if not stat.S_ISREG(os.fstat(self._file.fileno()).st_mode):
                    raise FileExistsError(f"{path}: is there and no regular file, as an unfinished one is; remove it")
                if not _locked(self._file.fileno(), shared=False):
                    raise being_written(path)
                if self.in_place:
                    return
            except BaseException:
                self._file.close()
                raise
            self._file.close()  # whose it was gave it another name or removed it before it could be locked
        raise being_written(path)

    @property
    def in_place(self) -> bool:
        """Whether the file still has its name; if not, there may be another's of that name."""
        try:
            return os.path.samestat(os.fstat(self._file.fileno()), os.lstat(self.path))
        except FileNotFoundError:
            return False

    @property
    def whole_bytes(self) -> int:
        """Size of the file once it is begun."""
        return HEADER_BYTES + 8 * self.rows * self.k

    @property
    def bytes(self) -> int:
        """Size of the file as it is."""
        return os.fstat(self._file.fileno()).st_size

    def header_fault(self) -> str:
        """How the header differs from that of a file that is begun, in words; nothing if it does not."""
        self._file.seek(0)
        found, expected = self._file.read(HEADER_BYTES), header(self.rows, self.k)
        return "" if found == expected else f"found the header {found.hex()}, expected {expected.hex()}"

    def begin(self) -> None:
        """Forget what the file holds; give it its header and its size, or leave it empty if that fails."""
        self.clear()
        try:
            self._file.truncate(self.whole_bytes)
            self._put(0, [np.frombuffer(header(self.rows, self.k), np.uint8)])
        except BaseException:
            self.clear()
            raise

    def clear(self) -> None:
        """Forget what the file holds."""
        self._file.truncate(0)

    def remove(self) -> None:
        """Remove the file, if it has not been removed or replaced."""
        if self.in_place:
            self.path.unlink()

    def write(self, first: int, found: Neighbors) -> None:
        """Put the neighbours of rows `first`, `first` + 1, ... in their places."""
        self._put(HEADER_BYTES + 4 * self.k * first, as_ids(self.path, found.indices))
        self._put(HEADER_BYTES + 4 * self.k * (self.rows + first), as_values(self.path, found.distances))

    def sync(self) -> None:
        """Return when all that was written is on the disk."""
        os.fsync(self._file.fileno())

    def _put(self, offset: int, arrays: Iterable[Array]) -> None:
        self._file.seek(offset)
        for array in arrays:
            left = memoryview(array.data).cast("B")
            while left:
                left = left[self._file.write(left) :]

    def close(self) -> None:
        """Let others have it."""
        self._file.close()


def being_written(path: Path) -> BlockingIOError:
    """The error of a file that another process has locked."""
    return BlockingIOError(f"{path}: another process is writing it")


def is_locked(path: Path) -> bool:
    """Whether another process has a file open as a `GroundTruthPart`, under this name now."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except (FileNotFoundError, PermissionError):  # one that may not be read cannot be asked
        return False
    try:
        return not _locked(descriptor, shared=True)
    finally:
        os.close(descriptor)


def _locked(descriptor: int, *, shared: bool) -> bool:
    """Lock a file until it is closed; False if another process has it locked."""
    try:
        import fcntl
    except ImportError:  # not POSIX
        return True
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True
