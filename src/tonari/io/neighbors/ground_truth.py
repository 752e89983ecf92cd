"""Ground truth as Big-ANN stores it: the true neighbours of every query, nearest first.

    | n: uint32 | k: uint32 | n * k ids, int32 | n * k distances, float32 |      little-endian

Files with uint32 ids have the same bytes below 2**31. An id of -1 (all bits set) is a missing neighbour.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tonari.core.process.floats import in_default_floats
from tonari.core.results.neighbors import Neighbors
from tonari.inputs.arrays.kinds import from_host
from tonari.io._atomic import atomic
from tonari.io._common import (
    Array,
    FileFormatError,
    FileInfo,
    StrPath,
    check_matrix,
    expansion,
    mismatch,
    pieces,
    size_of,
)
from tonari.io._formats import SUFFIXES
from tonari.io.formats import hdf5, npz
from tonari.io.formats.bin import counts, header, holds_ground_truth

HDF5_SUFFIXES = (".hdf5", ".h5")
MISSING = 2**32 - 1
HEADER_BYTES = 8


def _layout(path: Path) -> tuple[int, int]:
    rows, k, size = counts(path)
    # a file for zero queries consists of the header alone
    if holds_ground_truth(rows, k, size) or (k and rows == 0 and size == HEADER_BYTES):
        return rows, k
    if not (rows and k):
        why = f"the header says {rows} rows of {k} neighbours, at least one of each is needed"
        raise mismatch(path, size, "at least 16", why, "Is this a ground truth file?")
    why = f"{rows} rows of {k} neighbours, each an int32 id and a float32 distance"
    plain = size == 8 + 4 * rows * k
    fix = "This is a plain matrix: use tonari.io.read." if plain else "Fetch the file again."
    raise mismatch(path, size, 8 + 8 * rows * k, why, fix)


def read_ground_truth(path: StrPath, *, max_expansion: float | None = None) -> Neighbors:
    """Read the true neighbours of every query.

    Parameters
    ----------
    path : str or path; Big-ANN ground truth under any name, an ann-benchmarks .hdf5 or .h5 file, or an .npz file with
        the arrays indices and distances, as ``tonari search`` writes it
    max_expansion : as for `read`

    Returns
    -------
    Neighbors of shape (n, k), in the order of the file. Big-ANN: float32 distances and int32 indices, read-only maps
    (int64 in memory if an id is 2**31 or more; -1 is a missing neighbour). HDF5 and .npz: the dtypes of the file.

    Raises
    ------
    FileNotFoundError, FileFormatError, ValueError
        as `read`; FileFormatError also for a plain matrix, which `read` opens

    Examples
    --------
    >>> import pathlib, tempfile
    >>> found = Neighbors(np.array([[0.5, 2.0]], dtype=np.float32), np.array([[7, 3]], dtype=np.int32))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "truth.ibin")
    ...     write_ground_truth(path, found)
    ...     print(path.stat().st_size, read_ground_truth(path).indices.tolist())  # 8 + 1 * 2 * (4 + 4) bytes
    24 [[7, 3]]
    """
    path = Path(path)
    most = expansion(max_expansion)
    if path.suffix.lower() in HDF5_SUFFIXES:
        return _pair(path, *(hdf5.read(path, mmap=False, key=key, most=most) for key in ("neighbors", "distances")))
    if path.suffix.lower() == ".npz":
        return _pair(path, *(npz.read(path, mmap=False, key=key, most=most) for key in ("indices", "distances")))
    rows, k = _layout(path)
    ids = np.memmap(path, dtype="<i4", mode="r", offset=8, shape=(rows, k))
    distances = np.memmap(path, dtype="<f4", mode="r", offset=8 + 4 * rows * k, shape=(rows, k))
    if not rows or ids.min() >= -1:
        return Neighbors(distances, ids)
    wide = np.array(ids, dtype=np.int64)
    wide[wide < -1] += 2**32
    return Neighbors(distances, wide)


def _pair(path: Path, indices: Array, distances: Array) -> Neighbors:
    expected = indices.size * distances.itemsize
    if indices.shape != distances.shape:
        raise FileFormatError(
            f"{path}: found {distances.nbytes} bytes of distances {distances.shape}, expected "
            f"{expected} bytes: one for each of the neighbors {indices.shape}",
            path,
            distances.nbytes,
            expected,
        )
    if indices.dtype.kind not in "iu" or distances.dtype.kind != "f":
        wanted = "integers as neighbors, floats as distances"
        raise FileFormatError(
            f"{path}: found {indices.nbytes} bytes of {indices.dtype} as neighbors and {distances.nbytes} bytes of "
            f"{distances.dtype} as distances, expected {wanted}",
            path,
            indices.nbytes + distances.nbytes,
            wanted,
        )
    return Neighbors(distances, indices)


@in_default_floats
def write_ground_truth(path: StrPath, neighbors: Neighbors) -> None:
    """Write neighbours as Big-ANN ground truth, atomically; an existing file is replaced.

    Parameters
    ----------
    path : str or path; usually .ibin or .bin. The suffix of another format is refused.
    neighbors : distances of shape (n, k), which are rounded to float32; indices of shape (n, k), integers from -1
        (a missing neighbour) to 2**32 - 2

    Raises
    ------
    ValueError
        the suffix is that of another format, the shapes differ, there are no rows or columns, an index or distance does
        not fit the format, or values are masked
    FileNotFoundError, IsADirectoryError
        the directory does not exist, or `path` is one

    Examples
    --------
    See `read_ground_truth`.
    """
    path = Path(path)
    if path.suffix.lower() in SUFFIXES and path.suffix.lower() != ".ibin":
        raise ValueError(f"{path}: {path.suffix} is the suffix of another format, ground truth is .ibin or .bin")
    distances = from_host(neighbors.distances, f"{path}, distances", "(rows, k)")
    indices = from_host(neighbors.indices, f"{path}, indices", "(rows, k)")
    check_matrix(f"{path}, indices", indices.shape, indices.dtype)
    check_matrix(f"{path}, distances", distances.shape, distances.dtype)
    if distances.shape != indices.shape:
        raise ValueError(f"{path}: distances {distances.shape} and indices {indices.shape} must have one shape")
    check_size(path, indices.shape)
    with atomic(path) as file:
        file.write(header(*indices.shape))
        for ids in as_ids(path, indices):
            file.write(ids.data)
        for values in as_values(path, distances):
            file.write(values.data)


def check_size(path: Path, shape: tuple[int, ...]) -> None:
    """Raise ValueError if the number of rows or of neighbours does not fit in the header."""
    if max(shape) > MISSING:
        raise ValueError(f"{path}: shape {shape} does not fit the 8-byte header of ground truth")


def as_ids(path: Path, indices: Array) -> Iterator[Array]:
    """Check the indices, and yield them piece by piece as the uint32 ids of the file."""
    if indices.dtype.kind not in "iu" or indices.min() < -1 or indices.max() >= MISSING:
        raise ValueError(
            f"{path}: indices are {indices.dtype} from {indices.min()} to {indices.max()}, expected integers from "
            f"-1 (missing) to {MISSING - 1}: this format has 4 bytes for each"
        )
    return (ids.view("<u4") if ids.dtype == np.int32 else ids.astype("<u4") for _, ids in pieces(indices))


def as_values(path: Path, distances: Array) -> Iterator[Array]:
    """Yield the distances piece by piece as the float32 values of the file; raise an error if one is too large."""
    for _, values in pieces(distances):
        if values.dtype == np.float32:
            yield values
            continue
        with np.errstate(over="ignore"):
            rounded = values.astype("<f4")
        if np.any(np.isinf(rounded) & ~np.isinf(values)):
            raise ValueError(
                f"{path}: found a distance of {values.itemsize} bytes that is too large for float32, 4 bytes"
            )
        yield rounded


def describe(path: Path) -> FileInfo:
    """Describe a file of ground truth by its header and size: the number of rows, and of neighbours per row."""
    rows, k = _layout(path)
    return FileInfo(path, "ground truth", rows, k, "int32", size_of(path), {"distances": "float32"})
