"""HDF5 files (.hdf5, .h5) as ann-benchmarks lays them out.

Datasets: train (n, d), test (m, d), neighbors (m, k), distances (m, k); attribute `distance` on the file, the metric.
Needs h5py. Read whole, because datasets may be chunked or compressed.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tonari.io._atomic import atomic
from tonari.io._common import Array, FileInfo, check_matrix, pieces, size_of

DEFAULT_KEY = "train"


def _h5py() -> Any:
    try:
        return importlib.import_module("h5py")
    except ImportError as error:
        raise ImportError("HDF5 files need h5py: pip install 'tonari[hdf5]'") from error


@contextmanager
def _open(path: Path) -> Iterator[Any]:
    size = size_of(path)
    h5py = _h5py()
    try:
        with h5py.File(path, "r") as file:
            yield file
    except OSError as error:  # its text holds the size that the file should have (stored_eof)
        raise ValueError(f"{path}: found {size} bytes, expected a whole HDF5 file: {error}. Fetch it again.") from error


def _dataset(path: Path, file: Any, key: str | None) -> Any:
    found = file.get(key or DEFAULT_KEY)
    if not isinstance(found, _h5py().Dataset):
        listed = ", ".join(_keys(file)) or "none"
        raise ValueError(f"{path}: there is no dataset {key or DEFAULT_KEY!r}. Choose with key=: {listed}")
    check_matrix(f"{path}, dataset {key or DEFAULT_KEY!r}", found.shape or (), found.dtype)
    return found


def _keys(file: Any) -> list[str]:
    return [name for name, value in file.items() if isinstance(value, _h5py().Dataset)]


def read(path: Path, *, mmap: bool, key: str | None) -> Array:
    """The (n, d) dataset `key`, "train" unless named; always in memory."""
    with _open(path) as file:
        array: Array = _dataset(path, file, key)[()]
        return array


def write(path: Path, array: Array) -> None:
    """A new file with the one dataset "train"."""
    h5py = _h5py()
    with atomic(path) as target, h5py.File(target, "w") as file:
        dataset = file.create_dataset(DEFAULT_KEY, array.shape, dtype=array.dtype.newbyteorder("<"))
        for start, rows in pieces(array):
            dataset[start : start + len(rows)] = rows


def describe(path: Path, *, key: str | None) -> FileInfo:
    """Shape and type of one dataset; `extra` names all datasets and the metric of the file if it states one."""
    with _open(path) as file:
        dataset = _dataset(path, file, key)
        extra = {"key": key or DEFAULT_KEY, "keys": ", ".join(_keys(file))}
        if "distance" in file.attrs:
            distance = file.attrs["distance"]
            extra["distance"] = distance.decode() if isinstance(distance, bytes) else str(distance)
        rows, columns = dataset.shape
        return FileInfo(path, "hdf5", rows, columns, str(dataset.dtype), path.stat().st_size, extra)
