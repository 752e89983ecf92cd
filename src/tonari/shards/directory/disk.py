"""The directory of a build on the disk: its lock, file names that other programs use, links, and a full disk."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterable
from io import FileIO
from pathlib import Path
from typing import Any

from tonari.graph.files.directory import DISTANCES, INDICES, MANIFEST
from tonari.io._atomic import sync_directory
from tonari.io._common import open_regular
from tonari.io.neighbors.ground_truth_part import locked

LOCK, DONE, PARTS = "lock", "done", "parts"
ANEW = "build anew with resume=False (--force)"
# The errors of a full disk, a quota, and a limit on the size of files.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Lock:
    """The lock of a directory while a build writes to it; a context manager.

    Raises
    ------
    BlockingIOError
        Another process holds it.
    """

    def __init__(self, folder: Path) -> None:
        check_not_linked(folder, (LOCK, MANIFEST))
        self._file = unfollowed(folder / LOCK, os.O_RDWR | os.O_CREAT)
        if not locked(self._file.fileno(), shared=False):
            self._file.close()
            raise BlockingIOError(f"{folder}: another process is building a graph there; wait, or name another")

    def __enter__(self) -> Lock:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def is_being_built(folder: Path) -> bool:
    """Whether a process holds the lock of a directory."""
    try:
        with open_regular(folder / LOCK) as file:
            return not locked(file.fileno(), shared=True)
    except FileNotFoundError:
        return False


def remove_graph(folder: Path) -> None:
    """Remove the files of a build from a directory, and no other files.

    The manifest is removed first, so that it never describes files that are already removed.
    """
    (folder / MANIFEST).unlink(missing_ok=True)
    sync_directory(folder)
    for name in (INDICES, DISTANCES):
        for state in (f"{name}.part", name):
            (folder / state).unlink(missing_ok=True)
    for name in (DONE, PARTS):
        path = folder / name
        if path.is_symlink() or path.is_file():
            path.unlink()
        elif path.exists():
            shutil.rmtree(path)


def check_own(folder: Path) -> None:
    """Refuse a directory with a link, or a file of another kind, under a name that the build uses.

    Raises
    ------
    FileExistsError
        A name that the build uses belongs to a symbolic link, to a file with a second name (a hard link), or to
        something that is not a regular file or directory.
    """
    arrays = [state for name in (INDICES, DISTANCES) for state in (name, f"{name}.part")]
    check_not_linked(folder, (LOCK, MANIFEST, *arrays))
    for name in (DONE, PARTS):
        if _check_kind(folder / name, stat.S_ISDIR, f"remove it, or {ANEW}") is not None:
            check_not_linked(folder / name, os.listdir(folder / name))


def check_not_linked(folder: Path, names: Iterable[str]) -> None:
    """Refuse files of a build if they are symbolic or hard links, or not regular files."""
    for name in names:
        fix = "remove it" if name in (LOCK, MANIFEST) else f"remove it, or {ANEW}"
        status = _check_kind(folder / name, stat.S_ISREG, fix)
        if status is not None and name.endswith(".part") and status.st_nlink > 1:
            raise FileExistsError(f"{folder / name}: has another name as well (a hard link), which is kept; {fix}")


def _check_kind(path: Path, expected: Callable[[int], bool], fix: str) -> os.stat_result | None:
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return None
    if expected(status.st_mode):
        return status
    kind = "a directory" if expected is stat.S_ISDIR else "a regular file"
    what = "is a symbolic link, which is not followed" if stat.S_ISLNK(status.st_mode) else f"is not {kind}"
    raise FileExistsError(f"{path}: exists and {what}; {fix}")


def unfollowed(path: Path, flags: int) -> FileIO:
    """Open a file to write to it; refuse a name that is a symbolic link."""
    return open(os.open(path, flags | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0), 0o666), "r+b", 0)


@contextlib.contextmanager
def full_disk_named(folder: Path) -> Any:
    """Replace an error of a full disk that is raised in this context by one that says how to resume the build."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise OSError(
            error.errno,
            "the disk is full (or a limit on the size of files is reached); everything done so far is kept: make room, "
            "then resume with the same call",
            os.fspath(folder),
        ) from error


def reserve(descriptor: int, size: int) -> None:
    """Set the size of a file, and reserve its room on the disk if the file system supports that."""
    try:
        os.posix_fallocate(descriptor, 0, size)
    except (AttributeError, OSError) as error:
        if isinstance(error, OSError) and error.errno in _FULL:
            raise
        os.ftruncate(descriptor, size)
