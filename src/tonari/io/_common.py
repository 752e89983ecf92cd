"""What every file format shares: the description of a file, the first checks, and rows cut in pieces."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
DType = np.dtype[Any]
StrPath = str | os.PathLike[str]

# Large enough that a system call costs nothing beside its copy, small beside the memory of any machine.
PIECE_BYTES = 8 << 20


@dataclass(frozen=True)
class FileInfo:
    """What a file of points says about itself, read from its header and its size.

    Attributes
    ----------
    path : Path
    format : str, for example "fvecs", "fbin", "npy", "ground truth"
    rows, columns : int
    dtype : str, for example "float32"
    bytes : int, the size of the file on disk
    extra : dict of str to str, what only this format knows (header length, names of the arrays, ...)
    """

    path: Path
    format: str
    rows: int
    columns: int
    dtype: str
    bytes: int
    extra: dict[str, str] = field(default_factory=dict)


def size_of(path: Path) -> int:
    """Bytes in a file that exists and is not empty."""
    if path.is_dir():
        raise IsADirectoryError(f"{path}: this is a directory, a file is needed")
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file")
    size = path.stat().st_size
    if size == 0:
        raise ValueError(f"{path}: found 0 bytes, expected at least 1 byte: the file is empty. Fetch it again.")
    return size


def mismatch(path: Path, found: int, expected: int | str, why: str, fix: str) -> ValueError:
    """The error of every file whose size belies its header."""
    return ValueError(f"{path}: found {found} bytes, expected {expected} bytes ({why}). {fix}")


def check_matrix(where: str, shape: tuple[int, ...], dtype: DType) -> None:
    """Refuse what is not rows and columns of numbers; `where` names the file and, if it has several, the array."""
    if dtype.kind not in "biuf":
        raise ValueError(f"{where}: holds {dtype}, expected integers or floats. Convert with .astype().")
    if len(shape) != 2:
        raise ValueError(f"{where}: has shape {shape}, expected (rows, columns). Use .reshape(len(array), -1).")
    if min(shape) < 1:
        raise ValueError(
            f"{where}: has shape {shape}, which is 0 bytes of values, expected at least {dtype.itemsize} bytes. "
            "Give it at least one row and one column."
        )


def little(dtype: DType) -> DType:
    """The same type in the byte order of every format here."""
    return dtype.newbyteorder("<")


def pieces(array: Array) -> Iterator[tuple[int, Array]]:
    """Yield (first row, rows), little-endian and C-contiguous, about `PIECE_BYTES` at a time.

    Only one piece is copied at once, so a memory map larger than memory can be written.
    """
    step = max(1, PIECE_BYTES // (array.itemsize * math.prod(array.shape[1:])))
    for start in range(0, len(array), step):
        yield start, np.ascontiguousarray(array[start : start + step], dtype=little(array.dtype))


def loaded(array: Array, mmap: bool) -> Array:
    """The map itself, or a C-contiguous copy of it in memory."""
    return array if mmap else np.array(array, order="C")
