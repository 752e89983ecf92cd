"""Ground truth written in place, a run of rows at a time: the format has fixed offsets, so rows can come in any order.

    8 + 4 * k * row              ids of a row
    8 + 4 * k * (rows + row)     its distances

What is not written yet takes no room on most disks.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from tonari.io._common import Array
from tonari.io.bin import header
from tonari.io.ground_truth import HEADER_BYTES, as_ids, as_values, check_size
from tonari.results import Neighbors


class GroundTruthPart:
    """A file of ground truth that is not whole yet.

    One process at a time may have it open.

    Parameters
    ----------
    path : Path
        Is made if it is not there; what it holds is kept.
    rows, k : int

    Raises
    ------
    ValueError
        More rows or neighbours than the header can tell.
    BlockingIOError
        Another process has it open.
    """

    def __init__(self, path: Path, rows: int, k: int) -> None:
        check_size(path, (rows, k))
        self.path, self.rows, self.k = path, rows, k
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)  # what it holds is another's until it is locked
        self._file = os.fdopen(os.open(path, flags, 0o666), "r+b", buffering=0)
        try:
            _lock(self._file.fileno(), path)
        except BaseException:
            self._file.close()
            raise

    @property
    def whole_bytes(self) -> int:
        """Size of the file once it is begun."""
        return HEADER_BYTES + 8 * self.rows * self.k

    @property
    def bytes(self) -> int:
        """Size of the file as it is."""
        return os.fstat(self._file.fileno()).st_size

    def begin(self) -> None:
        """Forget what the file holds; give it its header and its size."""
        self._file.truncate(0)
        self._file.truncate(self.whole_bytes)
        self._put(0, [np.frombuffer(header(self.rows, self.k), np.uint8)])

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


def _lock(descriptor: int, path: Path) -> None:
    try:
        import fcntl
    except ImportError:  # not POSIX
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise BlockingIOError(f"{path}: another process is writing it") from None
    except OSError:  # a file system without locks
        return
