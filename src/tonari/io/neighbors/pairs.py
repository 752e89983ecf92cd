"""Pairs of points in a .npy file of records, written block by block."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from tonari.core.results.pairs import Pairs, record_dtype
from tonari.io._atomic import atomic

SUFFIXES = (".npy",)
_HEADER_BYTES = 192  # length of the header: a multiple of 64, as .npy requires, and enough for any number of pairs
_MAGIC = b"\x93NUMPY\x01\x00"


def write_pairs(
    path: Path, blocks: Iterable[Pairs], indices: Any, distances: Any, names: npt.NDArray[Any] | None = None
) -> int:
    """Write pairs of points to a file, atomically, and return their number; an existing file is replaced.

    Parameters
    ----------
    path : Path
    blocks : iterable of Pairs
        Blocks of pairs as NumPy arrays.
    indices, distances : dtype
        The dtypes of row numbers and of distances in the file.
    names : array, optional
        The names of all points, which replace row numbers; `indices` is then ignored.

    Returns
    -------
    int

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from tonari.core.results.pairs import Pairs
    >>> from tonari.io.neighbors.pairs import write_pairs
    >>> block = Pairs(np.array([0, 0]), np.array([2, 1]), np.array([0.5, 0.75]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "pairs.npy")
    ...     count = write_pairs(path, [block, block], "int32", "float32")
    ...     print(count, np.load(path)["right"])
    4 [2 1 2 1]
    """
    dtype, count = record_dtype(indices if names is None else names.dtype, distances), 0
    with atomic(path) as file:
        _write_header(file, dtype, 0)  # a placeholder, since the number of pairs is known only at the end
        for block in blocks:
            records = np.empty(len(block.left), dtype)
            for name, part in zip(dtype.names or (), block, strict=True):
                records[name] = part if names is None or part is block.distances else names[part]
            file.write(records.data)
            count += len(records)
        file.seek(0)
        _write_header(file, dtype, count)
    return count


def _write_header(file: BinaryIO, dtype: np.dtype[Any], count: int) -> None:
    """Write a header in NumPy's format 1.0, padded to the same length for any number of pairs."""
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": (count,)}
    length = _HEADER_BYTES - len(_MAGIC) - 2
    file.write(_MAGIC + length.to_bytes(2, "little") + repr(header).ljust(length - 1).encode("latin1") + b"\n")
