"""Files that are written atomically."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def atomic(path: str | os.PathLike[str], *, follow: bool = True, named: bool = True) -> Iterator[BinaryIO]:
    """Open a new binary file that replaces `path` when the ``with`` block ends without an exception.

    The bytes are written to a hidden temporary file in the same directory and synchronised (fsync). The file is then
    renamed to `path` in one step, and the directory is synchronised. After an exception the temporary file is removed,
    and `path` is unchanged. If `path` is a symbolic link, its target is replaced and the link remains; with
    ``follow=False``, the link itself is replaced. With ``named=False``, the caller must synchronise the directory
    (:func:`sync_directory`).

    Raises
    ------
    FileNotFoundError
        the directory of `path` does not exist
    IsADirectoryError
        `path` is a directory
    OSError
        writing fails, for example on a full disk; the error names `path`
    """
    target = Path(os.path.realpath(path)) if follow else Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"{path}: this is a directory, name a file in it")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{path}: the directory {target.parent} does not exist, create it first")
    # The temporary name contains only the first characters of the name, so that names of the maximum length work too.
    temporary = target.with_name(f".{target.name[:16]}.{secrets.token_hex(4)}.tmp")
    # The tempfile module would create a file that only its owner may read, and os.replace would keep that mode.
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    descriptor = os.open(temporary, flags, 0o666)
    try:
        with named_after(path), os.fdopen(descriptor, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if named:
        sync_directory(target.parent)


@contextmanager
def named_after(path: str | os.PathLike[str]) -> Iterator[None]:
    """Add the path of a file to errors of the operating system that lack it because they concern a file descriptor."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def remove_unfinished(folder: Path, name: str = "*") -> None:
    """Remove temporary files of :func:`atomic` that killed processes left.

    Call this only if no process is writing such a file.
    """
    for path in folder.glob(f".{name[:16]}.{'[0-9a-f]' * 8}.tmp"):
        path.unlink()


def sync_directory(folder: Path) -> None:
    """Wait until the entries of a directory, such as a renamed file, are on the disk, if the system supports it."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:  # some network file systems cannot synchronise directories
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)
