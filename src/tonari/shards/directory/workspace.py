"""The files of a build: its parts, records of finished tasks, and the rows of the result.

    manifest.json                       the request and the plan (graph/files/directory.py)
    lock                                held by the build that runs (disk.py)
    done/TASK.json                      a finished task: its parts with checksums, its facts, and its record (done.py)
    parts/NAME.npy                      output of tasks for later ones; removed when the graph is complete
    indices.npy.part distances.npy.part rows of the result, written in place and renamed at the end; on the route
                                        "clusters", they take room on the disk only for rows that are written

A part gets its name after its bytes are on the disk, and a task counts as done after its parts have their names. A
build that is interrupted therefore loses only the tasks in progress.

Several threads compute the CRC-32 of arrays while other threads write the arrays to the disk: zlib computes about 1.3
GB/s per thread, which is slower than writing to the system's file cache. Each array is therefore divided into pieces,
and the checksums of the pieces are combined. Let c(A) be the checksum of bytes A. Bytes are polynomials over GF(2), and
c is linear, so that

    c(A B) = c(A) x^(8 |B|) + c(B)        modulo the polynomial of CRC-32

where |B| is the number of bytes of B. As in zlib, the highest bit of a number is the coefficient of x^0.
"""

from __future__ import annotations

import os
import shutil
import threading
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core.process.caches import cached
from tonari.core.process.workers import Workers
from tonari.core.results.neighbors import Neighbors, index_dtype
from tonari.core.rows.slices import cut
from tonari.graph.files.directory import BUILDING, DISTANCES, INDICES, array_path
from tonari.io._atomic import atomic, remove_unfinished, sync_directory
from tonari.io._common import FileFormatError, open_regular
from tonari.io.formats import npy
from tonari.metrics.transforms.change import Change
from tonari.shards import tuning
from tonari.shards.directory.disk import ANEW, DONE, PARTS, full_disk_named, reserve, unfollowed
from tonari.shards.directory.done import Done, read_done, write_done

_POLYNOMIAL = 0xEDB88320
_ONE, _BYTE = 1 << 31, 1 << 23  # the polynomials x^0 and x^8


def crc32_of(array: npt.NDArray[Any]) -> int:
    """Return the CRC-32 of the values of an array, in C order, on this thread."""
    return zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def checksums_beside(arrays: Sequence[npt.NDArray[Any]], work: Callable[[int], object], threads: int) -> list[int]:
    """Return the checksum of each array, while other threads call `work(i)` for the position i of each array.

    For example, ``work(i)`` writes ``arrays[i]`` to a file. An error of `work` is raised.
    """
    data = [np.ascontiguousarray(array).reshape(-1).view(np.uint8) for array in arrays]
    pieces: list[tuple[int, slice]] = []
    for at, values in enumerate(data):
        size = max(tuning.CHECKED_AT_ONCE, -(-len(values) // threads))
        pieces += [(at, part) for part in cut(len(values), size)]

    def run(task: int) -> int:
        if task < len(data):
            work(task)
            return 0
        at, part = pieces[task - len(data)]
        return zlib.crc32(data[at][part].data)

    found, sums = [0] * len(data), Workers(threads).map(run, range(len(data) + len(pieces)))
    for (at, part), of_part in zip(pieces, sums[len(data) :], strict=True):
        found[at] = _product(found[at], _shift(part.stop - part.start)) ^ of_part
    return found


@cached(maxsize=64)
def _shift(count: int) -> int:
    """Return x^(8 count) modulo the polynomial of CRC-32."""
    power, square = _ONE, _BYTE
    while count:
        if count & 1:
            power = _product(power, square)
        square, count = _product(square, square), count >> 1
    return power


def _product(a: int, b: int) -> int:
    """Return the product of two polynomials modulo the polynomial of CRC-32.

    >>> _product(_BYTE, _ONE) == _BYTE
    True
    """
    found = 0
    for place in range(31, -1, -1):
        if a >> place & 1:
            found ^= b
        b = b >> 1 ^ (_POLYNOMIAL if b & 1 else 0)
    return found


# numpy.load parses headers as Python code, which before 3.11.8 may fail in two threads at once (cpython#106905).
_PARSING = threading.Lock()


class Workspace:
    """Files of a build, for the process that runs it and for its workers.

    Parameters
    ----------
    n, k : int
        Shape of the result.
    value_dtype : dtype
        Dtype of the distances in the result.
    points : int, optional
        Number of points that can be neighbours; every index is below it. Default: n.
    change : Change, optional
        The change of rows whose base metric tasks compare by. Distances are converted when they become rows of the
        result; all parts contain distances of the base metric.
    """

    def __init__(
        self,
        folder: Path,
        n: int,
        k: int,
        value_dtype: Any,
        points: int | None = None,
        change: Change | None = None,
    ) -> None:
        self.folder, self.n, self.k, self._change = folder, n, k, change
        self.points = n if points is None else points
        self._loaded: dict[str, npt.NDArray[Any]] = {}  # parts that `load` has mapped and checked, by name
        self._own: set[str] = set()  # names of the parts that this process has written itself, and need not check
        self._records: dict[str, Done] = {}
        self._dtypes = {INDICES: index_dtype(self.points), DISTANCES: np.dtype(value_dtype)}

    @property
    def list_bytes(self) -> int:
        """Size in bytes of the list of one row: k indices and k distances."""
        return self.k * sum(int(dtype.itemsize) for dtype in self._dtypes.values())

    # --- parts and tasks

    def save(self, name: str, array: npt.NDArray[Any]) -> list[int]:
        """Write a part; return its size and checksum."""
        return self.save_all({name: array}, 1)[name]

    def save_all(self, arrays: Mapping[str, npt.NDArray[Any]], threads: int) -> dict[str, list[int]]:
        """Write several parts in parallel; return the size and checksum of each."""
        names, wholes = list(arrays), [np.ascontiguousarray(array) for array in arrays.values()]

        def write(at: int) -> None:
            self._own.add(names[at])
            with full_disk_named(self.folder), atomic(self._part(names[at]), follow=False, named=False) as file:
                npy.write_array(file, wholes[at])

        sums = checksums_beside(wholes, write, threads)
        return {name: [int(whole.nbytes), one] for name, whole, one in zip(names, wholes, sums, strict=True)}

    def load(self, name: str, by: str) -> npt.NDArray[Any]:
        """Map a part into memory, and check it against the record of the task `by`, which wrote it.

        Raises
        ------
        FileNotFoundError, tonari.io.FileFormatError
            The part is missing or damaged.
        """
        if name in self._loaded:
            return self._loaded[name]
        path, (size, checksum) = self._part(name), self.done(by).parts[name]
        try:
            open_regular(path).close()
            with _PARSING:
                array: npt.NDArray[Any] = np.load(path, mmap_mode="r" if size else None, allow_pickle=False)
            whole = array.nbytes == size and (name in self._own or crc32_of(array) == checksum)
        except (ValueError, EOFError):
            whole = False
        if not whole:
            found, expected = path.stat().st_size, f"values of {size} bytes with the checksum {checksum}"
            raise FileFormatError(
                f"{path}: is damaged, expected {expected}; {ANEW}",
                path,
                found,
                expected,
            )
        self._loaded[name] = array
        return array

    def load_all(self, names: Sequence[tuple[str, str]], threads: int) -> list[npt.NDArray[Any]]:
        """Map and check several parts in parallel; `names` pairs each part with the task that wrote it."""
        return Workers(threads).map(lambda named: self.load(*named), names)

    def drop_all(self, names: Sequence[str], threads: int) -> None:
        """Remove parts that no later task needs; in parallel, because removing a large file takes a while."""

        def drop(name: str) -> None:
            self._loaded.pop(name, None)
            self._part(name).unlink(missing_ok=True)

        Workers(threads).map(drop, names)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_loaded": {}, "_own": set(), "_records": {}}

    def _part(self, name: str) -> Path:
        return self.folder / PARTS / f"{name}.npy"

    def finish(self, task: str, done: Done) -> None:
        """Record that a task is done; call this only after its parts are on the disk under their final names."""
        if done.parts:
            sync_directory(self.folder / PARTS)
        with full_disk_named(self.folder):
            write_done(self.folder / DONE / f"{task}.json", task, done)

    def is_done(self, task: str) -> bool:
        """Whether a task is done."""
        return (self.folder / DONE / f"{task}.json").exists()

    def done(self, task: str) -> Done:
        """Return the record of a task that is done."""
        if task in self._records:
            return self._records[task]
        found = self._records[task] = read_done(self.folder / DONE / f"{task}.json", task, self.n)
        return found

    def names_done(self) -> set[str]:
        """Return the names of all tasks that are done."""
        return {path.stem for path in (self.folder / DONE).glob("*.json")}

    # --- rows of the result

    def begin(self, *, reserved: bool = True) -> None:
        """Make the directories and the files of the result, with their full size.

        If not `reserved`, the files occupy disk space only for rows that have been written.
        """
        for name in (DONE, PARTS):
            (self.folder / name).mkdir(exist_ok=True)
            remove_unfinished(self.folder / name)
        for name, dtype in self._dtypes.items():
            path = array_path(self.folder, name, BUILDING)
            head, size = npy.header(dtype, (self.n, self.k)), self.n * self.k * dtype.itemsize
            if path.exists() and path.stat().st_size == len(head) + size:
                continue
            flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC
            with full_disk_named(self.folder), unfollowed(path, flags) as file:
                file.write(head)
                file.flush()
                if reserved:
                    reserve(file.fileno(), len(head) + size)
                else:
                    os.ftruncate(file.fileno(), len(head) + size)
                os.fsync(file.fileno())
        sync_directory(self.folder)

    def write_rows(self, begin: int, found: Neighbors, threads: int) -> list[int]:
        """Write lists as the result's rows from row `begin` on.

        Return the range of rows, and the checksums of both files' parts.

        Indices and distances are written in parallel.
        """
        names = (INDICES, DISTANCES)
        arrays = [np.ascontiguousarray(found.indices, self._dtypes[INDICES])]
        distances = found.distances if self._change is None else self._change.values(found.distances)
        arrays.append(np.ascontiguousarray(distances, self._dtypes[DISTANCES]))

        def write(at: int) -> None:
            rows = arrays[at]
            offset = len(npy.header(rows.dtype, (self.n, self.k))) + begin * self.k * rows.itemsize
            path = array_path(self.folder, names[at], BUILDING)
            with full_disk_named(self.folder), unfollowed(path, os.O_RDWR) as file:
                file.seek(offset)
                left = memoryview(rows.data).cast("B")
                while left:
                    left = left[file.write(left) :]
                os.fsync(file.fileno())

        return [begin, begin + len(found.indices), *checksums_beside(arrays, write, threads)]

    def rows(self, state: str = BUILDING) -> Neighbors:
        """Map the result into memory: its distances and its indices."""
        paths = (array_path(self.folder, name, state) for name in (DISTANCES, INDICES))
        return Neighbors(*(npy.read(path, mmap=True, key=None, most=np.inf) for path in paths))

    def check_rows(self, written: Sequence[list[int]], threads: int, state: str = BUILDING) -> None:
        """Raise FileFormatError if ranges of rows of the result have changed since they were written."""
        if not written:
            return
        distances, indices = self.rows(state)

        def check(rows: list[int]) -> None:
            begin, end, *sums = rows
            for name, array, checksum in zip((INDICES, DISTANCES), (indices, distances), sums, strict=True):
                if crc32_of(array[begin:end]) != checksum:
                    path = array_path(self.folder, name, state)
                    expected = f"the checksum {checksum}"
                    raise FileFormatError(
                        f"{path}: rows {begin} to {end - 1} are damaged, expected {expected}; {ANEW}",
                        path,
                        path.stat().st_size,
                        expected,
                    )

        Workers(threads).map(check, written)

    def complete(self) -> None:
        """Give the files of the result their final names, and remove all other files except the manifest.

        The manifest must already say that the graph is complete.
        """
        for name in self._dtypes:
            part = array_path(self.folder, name, BUILDING)
            if part.exists():
                os.replace(part, self.folder / name)
        sync_directory(self.folder)
        for name in (DONE, PARTS):
            shutil.rmtree(self.folder / name, ignore_errors=True)
