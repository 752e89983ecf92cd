"""Points that may be larger than memory: mapped files, or an object that returns ranges of rows."""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs, io
from tonari.core.process.workers import Workers
from tonari.core.rows.slices import cut
from tonari.io.points import dtype_without_rows
from tonari.metrics.transforms.change import Change
from tonari.shards import tuning

_DIGESTED_RANGES, _DIGESTED_ROWS = 32, 32


class Source(ABC):
    """Points that are read by ranges: rows of files, of an array, or of an object of the caller."""

    n: int
    d: int
    dtype: str
    name: str = "points"  # name of the points in error messages: an argument of the caller
    most_rows = 1 << 62  # maximum number of rows that may be read in one call; a plan may lower it

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return self.d * inputs.dtype_of(self.dtype).itemsize

    @property
    def block_rows(self) -> int:
        """The default number of rows per read."""
        return max(1, min(self.n, self.most_rows, tuning.BLOCK_BYTES // self.row_bytes))

    @property
    def origin(self) -> Source:
        """The source of the caller's rows, if this one transforms them."""
        return self

    def pieces(self, begin: int, end: int) -> Iterator[slice]:
        """Yield ranges that together are the rows [begin, end), for a caller that copies them one after another."""
        yield slice(begin, end)

    @abstractmethod
    def rows(self, begin: int, end: int) -> Any:
        """Return rows [begin, end), unchecked."""

    @abstractmethod
    def take(self, ids: npt.NDArray[np.int64], threads: int) -> npt.NDArray[Any]:
        """Return the rows with these ascending row numbers, in host memory."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """Return the facts that identify the points in a manifest."""

    @abstractmethod
    def check_unchanged(self) -> None:
        """Raise an error if the points have evidently changed since they were opened, or no longer exist."""

    def digest(self) -> str:
        """Return a digest of a few ranges of rows, for :meth:`facts`.

        Whole ranges are read, because an object may make its rows in blocks.
        """
        found = hashlib.sha256()
        size = min(self.n, _DIGESTED_ROWS)
        for begin in sorted({at * (self.n - size) // (_DIGESTED_RANGES - 1) for at in range(_DIGESTED_RANGES)}):
            values = inputs.held(inputs.to_host(self.rows(begin, begin + size)))
            dtype = values.dtype.newbyteorder("<")
            found.update(dtype.str.encode() + values.astype(dtype).tobytes())
        return found.hexdigest()


class FileSource(Source):
    """The rows of several files, concatenated.

    Parameters
    ----------
    paths : sequence of path
        Files with rows of the same dtype and width, in formats that :func:`tonari.io.read` maps into memory.
    """

    def __init__(self, paths: Sequence[str | os.PathLike[str]]) -> None:
        if not paths:
            raise ValueError("source: no files were given, expected at least one")
        self.paths = [Path(path).absolute() for path in paths]
        for path in self.paths:
            if dtype_without_rows(path) is not None:
                raise ValueError(f"{path}: has no rows, expected at least one")
        self._open()
        first = self._parts[0]
        for path, part in zip(self.paths, self._parts, strict=True):
            if not len(part):
                raise ValueError(f"{path}: has no rows, expected at least one")
            if not isinstance(part, np.memmap):
                raise ValueError(f"{path}: is not mapped but loaded whole; convert it to .npy or .fbin first")
            if part.dtype != first.dtype or part.shape[1] != first.shape[1]:
                raise ValueError(
                    f"{path} has {part.shape[1]} columns of {part.dtype}, {self.paths[0]} has {first.shape[1]} of "
                    f"{first.dtype}: they must agree"
                )
        inputs.as_rows(first[:1], "points")  # raises an error for an unsupported dtype
        self.n, self.d = sum(map(len, self._parts)), int(first.shape[1])
        self.dtype = inputs.name_of_dtype(first)
        self._seen = self._stamps()

    def _open(self) -> None:
        self._parts = [io.read(path) for path in self.paths]
        self._ends = np.cumsum([len(part) for part in self._parts])

    def _stamps(self) -> list[list[int]]:
        found = (os.stat(path) for path in self.paths)
        return [[about.st_size, about.st_mtime_ns] for about in found]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_parts", "_ends")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()
        self.check_unchanged()

    def rows(self, begin: int, end: int) -> Any:
        found = [rows for _, rows in self.parts(begin, end)]
        return found[0] if len(found) == 1 else np.concatenate(found)

    def parts(self, begin: int, end: int) -> Iterator[tuple[slice, Any]]:
        """Yield the rows [begin, end) as mapped arrays, one for each file, each with its position in the range."""
        for first, rows in self._within(begin, end):
            low, high = max(begin, first), min(end, first + len(rows))
            yield slice(low - begin, high - begin), rows[low - first : high - first]

    def parts_at(self, ids: npt.NDArray[np.int64]) -> Iterator[tuple[slice, Any, npt.NDArray[np.int64]]]:
        """Yield the files with some of the rows `ids`: positions in `ids`, the file's array, and rows of that array."""
        for first, rows in self._within(int(ids[0]), int(ids[-1]) + 1) if len(ids) else ():
            low, high = np.searchsorted(ids, [first, first + len(rows)]).tolist()
            yield slice(low, high), rows, ids[low:high] - first

    def _within(self, begin: int, end: int) -> Iterator[tuple[int, Any]]:
        """Yield each file that contains some of the rows, with the row number of the file's first row."""
        for last, part in zip(self._ends, self._parts, strict=True):
            first = int(last) - len(part)
            if first < end and begin < last:
                yield first, part

    def take(self, ids: npt.NDArray[np.int64], threads: int) -> npt.NDArray[Any]:
        out = np.empty((len(ids), self.d), self._parts[0].dtype)

        def copy(part: slice) -> None:
            for here, rows, numbers in self.parts_at(ids[part]):
                np.take(rows, numbers, axis=0, out=out[part][here], mode="clip")

        Workers(threads).map(copy, cut(len(ids), tuning.TAKEN_AT_ONCE))
        return out

    def facts(self) -> dict[str, Any]:
        return {
            "n": self.n,
            "d": self.d,
            "dtype": self.dtype,
            "files": [os.fspath(path) for path in self.paths],
            "stamps": self._seen,
            "sample": self.digest(),
        }

    def check_unchanged(self) -> None:
        for path, seen in zip(self.paths, self._seen, strict=True):
            try:
                about = os.stat(path)
            except FileNotFoundError:
                raise FileNotFoundError(f"{path}: is gone; put it back, then resume with the same call") from None
            if [about.st_size, about.st_mtime_ns] != seen:
                raise ValueError(
                    f"{path}: has changed since the graph was begun (size and time {about.st_size}, "
                    f"{about.st_mtime_ns}; they were {seen[0]}, {seen[1]}); build anew with resume=False (--force)"
                )


class ObjectSource(Source):
    """An object of the caller that returns rows on request.

    Parameters
    ----------
    made_by : object
        An object with ``shape`` (n, d) and a method ``rows(begin, end)``, which returns the same array of shape (end -
        begin, d) at every call.
    """

    def __init__(self, made_by: Any) -> None:
        self.made_by = made_by
        shape = tuple(made_by.shape)
        if len(shape) != 2 or not all(isinstance(size, int | np.integer) and size > 0 for size in shape):
            raise ValueError(f"source: its shape is {shape!r}, expected (n, d)")
        self.n, self.d = (int(size) for size in shape)
        self.dtype = inputs.name_of_dtype(self.rows(0, 1))

    def rows(self, begin: int, end: int) -> Any:
        found = self.made_by.rows(begin, end)
        shape = tuple(getattr(found, "shape", ()))
        if shape != (end - begin, self.d):
            raise ValueError(f"source.rows({begin}, {end}): got shape {shape}, expected {(end - begin, self.d)}")
        return found

    def take(self, ids: npt.NDArray[np.int64], threads: int) -> npt.NDArray[Any]:
        out = np.empty((len(ids), self.d), inputs.dtype_of(self.dtype))
        for block in cut(self.n, self.block_rows):
            low, high = np.searchsorted(ids, [block.start, block.stop])
            if low < high:
                end = min(block.stop, self.n)
                out[low:high] = inputs.held(inputs.to_host(self.rows(block.start, end)[ids[low:high] - block.start]))
        return out

    def facts(self) -> dict[str, Any]:
        return {"n": self.n, "d": self.d, "dtype": self.dtype, "sample": self.digest()}

    def check_unchanged(self) -> None:
        """Do nothing: an object is identified by its rows, which are compared when a build is resumed."""


class ArraySource(ObjectSource):
    """The rows of an array in memory."""

    def __init__(self, array: npt.NDArray[Any]) -> None:
        super().__init__(_Rows(array))


class _Rows:
    """An array with the interface of an object that returns ranges of rows."""

    def __init__(self, rows: npt.NDArray[Any]) -> None:
        self._rows, self.shape = rows, rows.shape

    def rows(self, begin: int, end: int) -> npt.NDArray[Any]:
        return self._rows[begin:end]


def as_source(given: Any, name: str = "source") -> Source:
    """Return the source for an argument: a path, several paths, an object with rows(begin, end), or an array."""
    if isinstance(given, str | os.PathLike):
        return FileSource([given])
    if callable(getattr(given, "rows", None)) and hasattr(given, "shape"):
        return ObjectSource(given)
    if isinstance(given, list | tuple) and all(isinstance(path, str | os.PathLike) for path in given):
        return FileSource(given)
    if hasattr(given, "shape") and hasattr(given, "dtype"):
        return ArraySource(inputs.as_rows(given, name, check_values=False))
    raise TypeError(
        f"{name}: expected a path, a list of paths, an array, or an object with shape and rows(begin, end), got "
        f"{type(given).__name__}"
    )


class ChangedSource(Source):
    """The rows of another source, transformed by a change for its base metric: float64 rows in host memory.

    Parameters
    ----------
    origin : Source
    change : Change

    Raises
    ------
    TypeError, ValueError
        The change does not support the first row, or rows of this width.
    """

    def __init__(self, origin: Source, change: Change) -> None:
        self._origin, self.change, self.name = origin, change, origin.name
        self.n, self.dtype = origin.n, "float64"
        self.d = int(self._changed(origin.rows(0, 1), 0, None).shape[1])

    @property
    def origin(self) -> Source:
        return self._origin

    @property
    def row_bytes(self) -> int:
        """Total bytes of a transformed row and its original row.

        The original row counts as 0 bytes in mapped files, which are read in small pieces.
        """
        return super().row_bytes + (0 if isinstance(self._origin, FileSource) else self._origin.row_bytes)

    def pieces(self, begin: int, end: int) -> Iterator[slice]:
        """Split the rows [begin, end) into short slices.

        A caller that copies the rows slice by slice needs little memory in addition to its copy.
        """
        step = max(1, tuning.CHANGED_BYTES // (8 * (self.d + self._origin.d)))
        for part in cut(end - begin, step):
            yield slice(begin + part.start, begin + part.stop)

    def rows(self, begin: int, end: int) -> npt.NDArray[np.float64]:
        out = np.empty((end - begin, self.d))
        for part in self.pieces(begin, end):
            some = self._origin.rows(part.start, part.stop)
            out[part.start - begin : part.stop - begin] = self._changed(some, part.start, None)
        return out

    def take(self, ids: npt.NDArray[np.int64], threads: int) -> npt.NDArray[np.float64]:
        out = np.empty((len(ids), self.d))
        mapped = isinstance(self._origin, FileSource)
        for part in cut(len(ids), tuning.TAKEN_AT_ONCE if mapped else max(1, len(ids))):
            out[part] = self._changed(self._origin.take(ids[part], threads), None, threads)
        return out

    def facts(self) -> dict[str, Any]:
        return self._origin.facts() | {"dtype": self.dtype}

    def check_unchanged(self) -> None:
        self._origin.check_unchanged()

    def _changed(self, rows: Any, begin: int | None, threads: int | None) -> Any:
        """Transform rows; error messages give row numbers of the source, whose row `begin` is the first of these."""
        name = self.name if not begin else f"{self.name}[{begin}:{begin + len(rows)}]"
        return self.change.rows(inputs.to_host(rows), name, threads)
