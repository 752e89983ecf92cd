"""A disk that fails on request: at the N-th call that writes, this process ends by SIGKILL or as in a power cut.

The calls of ``os`` and of files by which the library writes are counted. At the requested call the process ends, before
a call of ``os`` or in the middle of a write. In a power cut, everything that was not synced is lost as well:

    bytes of a file that had no fsync after them    zeroed; a file without any fsync becomes empty
    names that were made, replaced or removed       as they were, unless their directory had an fsync after that
"""

from __future__ import annotations

import builtins
import io
import os
import shutil
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

CHANGING = ("open", "fsync", "replace", "rename", "posix_fallocate", "mkdir", "unlink")


class Disk:
    """Replaces the functions that write, in this process, until it ends.

    Parameters
    ----------
    end_at : int, optional
        The number of the call at which the process ends, from 1 on.
    power_cut : bool
        Whether everything that is not synced is lost.
    end : callable
        Ends the process.

    Attributes
    ----------
    calls : list of str
        The names of the counted calls so far, in order.
    """

    def __init__(self, end_at: int | None = None, *, power_cut: bool = False, end: Callable[[], None] | None = None):
        self.calls: list[str] = []
        self._end_at, self._power_cut = end_at, power_cut
        self._end = end or (lambda: os.kill(os.getpid(), signal.SIGKILL))
        self._lock = threading.RLock()
        self._real = {name: getattr(os, name) for name in CHANGING}
        self._real_open = io.open
        # For each file (by inode) that was written since its last fsync: a descriptor, whether it ever had an fsync,
        # ranges.
        self._unsynced: dict[tuple[int, int], tuple[int, bool, list[tuple[int, int]]]] = {}
        self._synced: set[tuple[int, int]] = set()
        self._undo: list[tuple[str, Callable[[], None]]] = []  # for changed names: the directory, how to restore it

    def install(self) -> None:
        """Replace the functions."""
        for name in CHANGING:
            setattr(os, name, getattr(self, f"_{name}"))
        io.open = builtins.open = self._open_file  # type: ignore[assignment, misc]

    def remove(self) -> None:
        """Put the original functions back."""
        for name, real in self._real.items():
            setattr(os, name, real)
        io.open = builtins.open = self._real_open  # type: ignore[misc]

    def _count(self, name: str, torn: Callable[[], None] = lambda: None) -> None:
        self.calls.append(name)
        if len(self.calls) == self._end_at:
            torn()
            if self._power_cut:
                self._lose()
            self.remove()
            self._end()

    def _lose(self) -> None:
        for descriptor, ever_synced, ranges in self._unsynced.values():
            if not ever_synced:
                os.ftruncate(descriptor, 0)
            for begin, end in ranges if ever_synced else ():
                os.pwrite(descriptor, bytes(end - begin), begin)
        for _, undo in reversed(self._undo):
            undo()

    # --- names

    def _named(self, path: Any, undo: Callable[[], None]) -> None:
        self._undo.append((os.path.dirname(os.path.abspath(path)), undo))

    def _open(self, path: Any, flags: int, mode: int = 0o777, **more: Any) -> int:
        with self._lock:
            if flags & os.O_CREAT and not more:
                self._count("open")
                if not os.path.exists(path):
                    self._named(path, lambda: self._real["unlink"](path) if os.path.exists(path) else None)
            return self._real["open"](path, flags, mode, **more)  # type: ignore[no-any-return]

    def _mkdir(self, path: Any, mode: int = 0o777, **more: Any) -> None:
        with self._lock:
            self._count("mkdir")
            new = not os.path.exists(path)
            self._real["mkdir"](path, mode, **more)
            if new:
                # This uses the original functions, whose calls are not counted.
                self._named(path, lambda: (self.remove(), shutil.rmtree(path, ignore_errors=True)))

    def _replace(self, old: Any, new: Any) -> None:
        with self._lock:
            self._count("replace")
            before = self._bytes(new)
            self._real["replace"](old, new)

            def undo() -> None:
                if os.path.exists(new):
                    self._real["replace"](new, old)
                self._restore(new, before)

            self._named(new, undo)

    _rename = _replace

    def _unlink(self, path: Any, **more: Any) -> None:
        with self._lock:
            if more:  # a call of shutil.rmtree; the removed files are no longer needed
                self._real["unlink"](path, **more)
                return
            self._count("unlink")
            before = self._bytes(path)
            self._real["unlink"](path)
            self._named(path, lambda: self._restore(path, before))

    def _bytes(self, path: Any) -> bytes | None:
        return Path(path).read_bytes() if os.path.isfile(path) else None

    def _restore(self, path: Any, content: bytes | None) -> None:
        if content is not None and os.path.isdir(os.path.dirname(path)):
            with self._real_open(path, "wb") as file:
                file.write(content)

    # --- bytes

    def _open_file(self, path: Any, mode: str = "r", *more: Any, **named: Any) -> Any:
        if not set(mode) & set("wax+"):
            return self._real_open(path, mode, *more, **named)
        with self._lock:
            if not isinstance(path, int):
                self._count("open")
                if not os.path.exists(path):
                    self._named(path, lambda: self._real["unlink"](path) if os.path.exists(path) else None)
            return _File(self, self._real_open(path, mode, *more, **named))

    def write(self, file: Any, data: Any) -> int:
        """Write to a real file; the process ends in the middle of the write."""
        with self._lock:
            view = memoryview(data).cast("B")
            begin = file.tell()
            self._remember(file.fileno(), (begin, begin + len(view)))

            def torn() -> None:
                file.write(view[: len(view) // 2])
                file.flush()

            self._count("write", torn)
            return file.write(view)  # type: ignore[no-any-return]

    def _remember(self, descriptor: int, part: tuple[int, int] | None) -> None:
        about = os.fstat(descriptor)
        key = about.st_dev, about.st_ino
        if key not in self._unsynced:
            self._unsynced[key] = os.dup(descriptor), key in self._synced, []
        if part is not None:
            self._unsynced[key][2].append(part)

    def _posix_fallocate(self, descriptor: int, offset: int, size: int) -> None:
        with self._lock:
            self._count("posix_fallocate")
            self._remember(descriptor, None)
            self._real["posix_fallocate"](descriptor, offset, size)

    def _fsync(self, descriptor: int) -> None:
        """Record that a file is synced; the real call is unnecessary, since SIGKILL loses nothing."""
        with self._lock:
            self._count("fsync")
            about = os.fstat(descriptor)
            key = about.st_dev, about.st_ino
            self._synced.add(key)
            if key in self._unsynced:
                os.close(self._unsynced.pop(key)[0])
            here = [folder for folder, _ in self._undo if os.path.isdir(folder)]
            same = {folder for folder in here if os.path.samestat(os.stat(folder), about)}
            self._undo = [(folder, undo) for folder, undo in self._undo if folder not in same]


class _File:
    """A file whose writes are counted."""

    def __init__(self, disk: Disk, file: Any) -> None:
        self._disk, self._file = disk, file

    def write(self, data: Any) -> int:
        return self._disk.write(self._file, data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> _File:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
