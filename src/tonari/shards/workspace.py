"""The directory of a build: its lock, records of finished tasks, parts, and the rows of the result.

    manifest.json                       the request and the plan (graph/directory.py)
    lock                                held by the build that runs
    done/TASK.json                      a finished task: its parts with checksums, its facts, and the record of its run
    parts/NAME.npy                      output of tasks for later ones; removed when the graph is complete
    indices.npy.part distances.npy.part rows of the result, written in place and renamed at the end

A part gets its name after its bytes are on the disk, and a task counts as done after its parts have their names. So a
build that is interrupted loses only the tasks in progress.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
import stat
import threading
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core.neighbors import Neighbors, index_dtype
from tonari.core.trail import Record
from tonari.core.workers import Workers
from tonari.graph.directory import BUILDING, DISTANCES, INDICES, MANIFEST, array_path
from tonari.io import schema
from tonari.io._atomic import atomic, remove_unfinished, sync_directory
from tonari.io._common import FileFormatError, open_regular
from tonari.io.formats import npy
from tonari.io.ground_truth_part import locked
from tonari.io.record import read_record

_LOCK, _DONE, _PARTS = "lock", "done", "parts"
_LONGEST = 16 << 20  # bytes of the record of a task
_ANEW = "build anew with resume=False (--force)"
# Headers are parsed as Python, which before 3.11.8 may fail in two threads at once (cpython#106905).
_PARSING = threading.Lock()
# The errors of a full disk, a quota, and a limit on the size of files.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


_NAME = re.compile("[a-z0-9-]+")  # of a part, which is a file in the directory
_ROWS = schema.list_of(schema.whole(0))
_SHARE = schema.real(0, 1)
# The facts that each kind of task records, by field.
_FACTS: dict[str, dict[str, schema.Test]] = {
    "centres": {
        **dict.fromkeys(("covered", "largest"), _SHARE),
        **dict.fromkeys(("copies", "margin"), schema.real(0)),
        "shards": schema.whole(1),
    },
    "members": {"ends": schema.list_of(schema.whole(0))},
    "recall": {
        **dict.fromkeys(("by_index", "by_distance", "low", "high"), _SHARE),
        **dict.fromkeys(("rows", "k"), schema.whole(1)),
    },
}


def _any(_value: Any) -> bool:
    """A check that accepts any value, for fields with checks of their own."""
    return True


@dataclass(frozen=True)
class Done:
    """The record of a finished task.

    Attributes
    ----------
    parts : mapping
        For the name of each part, its number of bytes and their CRC-32.
    rows : list
        The range of rows of the result that the task wrote, and their checksums; empty if it wrote none.
    facts : dict
        Results of the task that later tasks or the manifest need.
    record : Record, optional
        The record of its run; None in directories of earlier releases.
    """

    parts: Mapping[str, list[int]] = field(default_factory=dict)
    rows: list[int] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    record: Record | None = None


class Workspace:
    """Files of a build, for the process that runs it and for its workers.

    Parameters
    ----------
    n, k : int
        Shape of the result.
    value_dtype : dtype of its distances
    points : int, optional
        Number of points among which neighbours are found: every index is below it. Default: n.
    """

    def __init__(self, folder: Path, n: int, k: int, value_dtype: Any, points: int | None = None) -> None:
        self.folder, self.n, self.k = folder, n, k
        self.points = n if points is None else points
        self._loaded: dict[str, npt.NDArray[Any]] = {}  # parts that were checked
        self._own: set[str] = set()  # parts that this process wrote
        self._records: dict[str, Done] = {}
        self._dtypes = {INDICES: index_dtype(self.points), DISTANCES: np.dtype(value_dtype)}

    # --- parts and tasks

    def save(self, name: str, array: npt.NDArray[Any]) -> list[int]:
        """Write a part; return its size and checksum."""
        whole = np.ascontiguousarray(array)
        self._own.add(name)
        with full_disk_named(self.folder), atomic(self._part(name), follow=False, named=False) as file:
            npy.write_array(file, whole)
        return [int(whole.nbytes), _checksum(whole)]

    def save_all(self, arrays: Mapping[str, npt.NDArray[Any]], threads: int) -> dict[str, list[int]]:
        """Write several parts, each by a thread; return the size and checksum of each."""
        saved = Workers(min(threads, len(arrays))).map(lambda name: self.save(name, arrays[name]), arrays)
        return dict(zip(arrays, saved, strict=True))

    def load(self, name: str, by: str) -> npt.NDArray[Any]:
        """Map a part that a task wrote, and check it.

        Raises
        ------
        FileNotFoundError, tonari.io.FileFormatError
            It is missing or damaged.
        """
        if name in self._loaded:
            return self._loaded[name]
        path, (size, checksum) = self._part(name), self.done(by).parts[name]
        try:
            open_regular(path).close()
            with _PARSING:
                array: npt.NDArray[Any] = np.load(path, mmap_mode="r" if size else None, allow_pickle=False)
            whole = array.nbytes == size and (name in self._own or _checksum(array) == checksum)
        except (ValueError, EOFError):
            whole = False
        if not whole:
            found, expected = path.stat().st_size, f"values of {size} bytes with the checksum {checksum}"
            raise FileFormatError(
                f"{path}: is damaged, expected {expected}; {_ANEW}",
                path,
                found,
                expected,
            )
        self._loaded[name] = array
        return array

    def drop(self, name: str) -> None:
        """Remove a part, the output of a task, that no later task needs."""
        self._loaded.pop(name, None)
        self._part(name).unlink(missing_ok=True)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_loaded": {}, "_own": set(), "_records": {}}

    def _part(self, name: str) -> Path:
        return self.folder / _PARTS / f"{name}.npy"

    def finish(self, task: str, done: Done) -> None:
        """Record that a task is done, once its parts are on the disk under their names."""
        facts = {"task": task} | done.__dict__ | {"record": None if done.record is None else done.record.as_dict()}
        if done.parts:
            sync_directory(self.folder / _PARTS)
        with full_disk_named(self.folder), atomic(self.folder / _DONE / f"{task}.json", follow=False) as file:
            file.write(json.dumps(_sealed(facts)).encode())

    def is_done(self, task: str) -> bool:
        """Whether a task is done."""
        return (self.folder / _DONE / f"{task}.json").exists()

    def done(self, task: str) -> Done:
        """Return the record of a task that is done."""
        if task in self._records:
            return self._records[task]
        path = self.folder / _DONE / f"{task}.json"
        with open_regular(path) as file:
            text = file.read(_LONGEST)
        try:
            facts = json.loads(text)
            if facts.pop("task") != task:
                raise ValueError("it is of another task")
            checksum = facts.pop("checksum")
            if _sealed({"task": task} | facts)["checksum"] != checksum:
                raise ValueError("its checksum is wrong")
            record = facts.pop("record", None)
            self._check(task, facts)
            found = Done(**facts, record=None if record is None else read_record(record))
            self._records[task] = found
            return found
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            message = f"{path}: is damaged ({error}); {_ANEW}"
            raise FileFormatError(message, path, len(text), "the record of a task") from error

    def _check(self, task: str, record: dict[str, Any]) -> None:
        """Raise ValueError for a field that no task writes."""
        schema.check(record, {"parts": schema.map_of(schema.list_of(schema.whole(0))), "rows": _ROWS, "facts": _any})
        for name, part in record["parts"].items():
            if not (_NAME.fullmatch(name) and len(part) == 2 and part[1] < 1 << 32):
                raise ValueError(f"its parts have {name!r:.80}: {part!r:.80}")
        rows = record["rows"]
        if rows and not (len(rows) == 4 and rows[0] < rows[1] <= self.n and max(rows[2:]) < 1 << 32):
            raise ValueError(f"its rows are {rows!r:.80}")
        kind = task.partition("-")[0]
        schema.check(record["facts"], _FACTS.get(kind, {}), "facts")
        ends = record["facts"].get("ends", [0])
        if ends[:1] != [0] or ends != sorted(ends):
            raise ValueError(f"its facts ends are {ends!r:.80}")

    def names_done(self) -> set[str]:
        """Return the names of all tasks that are done."""
        return {path.stem for path in (self.folder / _DONE).glob("*.json")}

    # --- rows of the result

    def begin(self) -> None:
        """Make the directories and the files of the result, with their full size."""
        for name in (_DONE, _PARTS):
            (self.folder / name).mkdir(exist_ok=True)
            remove_unfinished(self.folder / name)
        for name, dtype in self._dtypes.items():
            path = array_path(self.folder, name, BUILDING)
            head, size = npy.header(dtype, (self.n, self.k)), self.n * self.k * dtype.itemsize
            if path.exists() and path.stat().st_size == len(head) + size:
                continue
            flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC
            with full_disk_named(self.folder), _unfollowed(path, flags) as file:
                file.write(head)
                file.flush()
                _reserve(file.fileno(), len(head) + size)
                os.fsync(file.fileno())
        sync_directory(self.folder)

    def write_rows(self, begin: int, found: Neighbors, threads: int) -> list[int]:
        """Write rows of the result, indices and distances each by a thread; return their range and checksums."""

        def write(named: tuple[str, npt.NDArray[Any]]) -> int:
            name, array = named
            rows = np.ascontiguousarray(array, self._dtypes[name])
            offset = len(npy.header(rows.dtype, (self.n, self.k))) + begin * self.k * rows.itemsize
            path = array_path(self.folder, name, BUILDING)
            with full_disk_named(self.folder), _unfollowed(path, os.O_RDWR) as file:
                file.seek(offset)
                left = memoryview(rows.data).cast("B")
                while left:
                    left = left[file.write(left) :]
                os.fsync(file.fileno())
            return _checksum(rows)

        sums = Workers(min(threads, 2)).map(write, ((INDICES, found.indices), (DISTANCES, found.distances)))
        return [begin, begin + len(found.indices), *sums]

    def rows(self, state: str = BUILDING) -> Neighbors:
        """Map the result."""
        paths = (array_path(self.folder, name, state) for name in (DISTANCES, INDICES))
        return Neighbors(*(npy.read(path, mmap=True, key=None, most=np.inf) for path in paths))

    def check_rows(self, rows: list[int], state: str = BUILDING) -> None:
        """Raise FileFormatError if rows of the result have changed since they were written."""
        begin, end, *sums = rows
        for name, array, checksum in zip((INDICES, DISTANCES), reversed(self.rows(state)), sums, strict=True):
            if _checksum(array[begin:end]) != checksum:
                path = array_path(self.folder, name, state)
                expected = f"the checksum {checksum}"
                raise FileFormatError(
                    f"{path}: rows {begin} to {end - 1} are damaged, expected {expected}; {_ANEW}",
                    path,
                    path.stat().st_size,
                    expected,
                )

    def complete(self) -> None:
        """Give the files of the result their final names, and remove all other files except the manifest.

        The manifest must already say that the graph is complete.
        """
        for name in self._dtypes:
            part = array_path(self.folder, name, BUILDING)
            if part.exists():
                os.replace(part, self.folder / name)
        sync_directory(self.folder)
        for name in (_DONE, _PARTS):
            shutil.rmtree(self.folder / name, ignore_errors=True)


class Lock:
    """The lock of a directory while a build writes to it; a context manager.

    Raises
    ------
    BlockingIOError
        Another process holds it.
    """

    def __init__(self, folder: Path) -> None:
        check_not_linked(folder, (_LOCK, MANIFEST))
        self._file = _unfollowed(folder / _LOCK, os.O_RDWR | os.O_CREAT)
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
        with open_regular(folder / _LOCK) as file:
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
    for name in (_DONE, _PARTS):
        path = folder / name
        if path.is_symlink() or path.is_file():
            path.unlink()
        elif path.exists():
            shutil.rmtree(path)


def check_own(folder: Path) -> None:
    """Refuse a directory where the name of a file of the build belongs to something else.

    Raises
    ------
    FileExistsError
        A name that the build uses belongs to a symbolic link, to a file with a second name (a hard link), or to
        something that is not a regular file or directory.
    """
    arrays = [state for name in (INDICES, DISTANCES) for state in (name, f"{name}.part")]
    check_not_linked(folder, (_LOCK, MANIFEST, *arrays))
    for name in (_DONE, _PARTS):
        if _check_kind(folder / name, stat.S_ISDIR, f"remove it, or {_ANEW}") is not None:
            check_not_linked(folder / name, os.listdir(folder / name))


def check_not_linked(folder: Path, names: Iterable[str]) -> None:
    """Refuse files of a build that are symbolic or hard links, or that are not regular files."""
    for name in names:
        fix = "remove it" if name in (_LOCK, MANIFEST) else f"remove it, or {_ANEW}"
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


def _unfollowed(path: Path, flags: int) -> FileIO:
    """Open a file to write to it, unless its name is a symbolic link."""
    return open(os.open(path, flags | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0), 0o666), "r+b", 0)


@contextlib.contextmanager
def full_disk_named(folder: Path) -> Any:
    """If the disk is full, replace the error by one that says so, and how to resume."""
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


def _reserve(descriptor: int, size: int) -> None:
    """Give a file its size, and its room on the disk where the file system can."""
    try:
        os.posix_fallocate(descriptor, 0, size)
    except (AttributeError, OSError) as error:
        if isinstance(error, OSError) and error.errno in _FULL:
            raise
        os.ftruncate(descriptor, size)


def _sealed(facts: dict[str, Any]) -> dict[str, Any]:
    """Return a record with its own checksum."""
    return facts | {"checksum": zlib.crc32(json.dumps(facts, sort_keys=True).encode())}


def _checksum(array: npt.NDArray[Any]) -> int:
    """Return the CRC-32 of the values of an array."""
    return zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
