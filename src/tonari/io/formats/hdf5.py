"""HDF5 files (.hdf5, .h5) as ann-benchmarks lays them out.

Datasets: train (n, d), test (m, d), neighbors (m, k), distances (m, k); the attribute `distance` of the file is the
metric. Needs h5py. Datasets are read whole, because they may be chunked or compressed.

No other file is read: a dataset that is a link into another file, or that stores its values in other files (external
storage, virtual datasets), is refused. Otherwise a hostile file could expose any file that the user may read.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from tonari.io._atomic import atomic
from tonari.io._common import (
    Array,
    FileFormatError,
    FileInfo,
    check_expansion,
    check_stored,
    parsing,
    pieces,
    size_of,
)

DEFAULT_KEY = "train"
SOFT_LINKS = 16  # longest chain of soft links that is followed, as in HDF5 itself
LONGEST_NAME = 100  # largest length in bytes of an attribute that is read (metric, filters)
FILTERS = "filters"  # tonari's attribute for the names of the arguments that restricted the neighbours


def library() -> Any:
    """Import h5py, an optional dependency; the error says how to install it."""
    try:
        return importlib.import_module("h5py")
    except ImportError as error:
        raise ImportError("HDF5 files need h5py: pip install 'tonari[hdf5]'") from error


def _parsing(path: Path) -> AbstractContextManager[None]:
    # HDF5's message, which is part of the error, reports the expected size (stored_eof).
    return parsing(path, path.stat().st_size, "a whole HDF5 file", "Fetch it again.")


@contextmanager
def _open(path: Path) -> Iterator[Any]:
    size_of(path)
    h5py = library()
    with _parsing(path):
        file = h5py.File(path, "r")
    try:
        yield file
    finally:
        with _parsing(path):
            file.close()


def _dataset(path: Path, file: Any, key: str) -> Any:
    """Return the dataset `key`; raise an error if it does not exist, or if any of its values are in another file."""
    where = f"{path}, dataset {key!r}"
    with _parsing(path):
        found, elsewhere = _resolve(file, file, key)
        if elsewhere:
            raise _other_file(path, where, elsewhere)
        if not isinstance(found, library().Dataset):
            listed = ", ".join(_keys(file)) or "none"
        elif found.is_virtual:
            raise _other_file(path, where, "is put together from datasets of other files")
        elif found.external:
            raise _other_file(path, where, f"has its values in {found.external[0][0]!r}")
        else:
            shape, dtype = found.shape or (), found.dtype
    if not isinstance(found, library().Dataset):
        raise ValueError(f"{path}: there is no dataset {key!r}. Choose with key=: {listed}")
    check_stored(path, path.stat().st_size, shape, dtype, where=where)
    return found


def _other_file(path: Path, where: str, how: str) -> FileFormatError:
    size, expected = path.stat().st_size, "values that are all in this file"
    message = f"{where}: found {size} bytes, expected {expected}: it {how}. Copy the values into one file."
    return FileFormatError(message, path, size, expected)


def _resolve(file: Any, group: Any, name: str, links: int = SOFT_LINKS) -> tuple[Any, str]:
    """Find the object with a name, following links within the file only.

    HDF5 would follow a link to another file as soon as its name is opened, so links are resolved before.

    Returns
    -------
    object : h5py object, or None
        None if this file has no object with this name.
    elsewhere : str
        A description of the link, if the object is in another file, which is not opened; else "".
    """
    h5py = library()
    first, _, rest = name.lstrip("/").partition("/")
    if not first:
        return group, ""
    if not isinstance(group, h5py.Group) or not group.id.links.exists(first.encode()):
        return None, ""
    kind = group.id.links.get_info(first.encode()).type
    if kind == h5py.h5l.TYPE_HARD:
        return _resolve(file, group[first], rest, links)
    target = group.id.links.get_val(first.encode())
    if kind != h5py.h5l.TYPE_SOFT:
        return None, f"is a link to another file, {b':'.join(target).decode(errors='replace')!r}"
    if not links:
        return None, ""
    inside = file if target.startswith(b"/") else group
    return _resolve(file, inside, f"{target.decode()}/{rest}", links - 1)


def _keys(file: Any) -> list[str]:
    return [name for name in file if isinstance(_resolve(file, file, name)[0], library().Dataset)]


def read(path: Path, *, mmap: bool, key: str | None, most: float) -> Array:
    """Read the (n, d) dataset `key`, "train" by default, into memory."""
    key = key or DEFAULT_KEY
    with _open(path) as file:
        dataset = _dataset(path, file, key)
        # a chunk may be larger than the dataset, and must be decompressed as a whole
        needed = max(math.prod(dataset.shape), math.prod(dataset.chunks or ())) * dataset.dtype.itemsize
        check_expansion(path, path.stat().st_size, needed, most, where=f"{path}, dataset {key!r}")
        array: Array = np.empty(dataset.shape, dataset.dtype)
        with _parsing(path):
            dataset.read_direct(array)
        return array


def write(path: Path, array: Array) -> None:
    """Write a new file with the single dataset "train"."""
    write_datasets(path, {DEFAULT_KEY: array})


def write_datasets(path: Path, arrays: dict[str, Array], attributes: Mapping[str, str] = MappingProxyType({})) -> None:
    """Write a new file with a dataset for each array, and with text attributes."""
    h5py = library()
    with atomic(path) as target, h5py.File(target, "w") as file:
        for name, array in arrays.items():
            dataset = file.create_dataset(name, array.shape, dtype=array.dtype.newbyteorder("<"))
            for start, rows in pieces(array):
                dataset[start : start + len(rows)] = rows
        for name, text in attributes.items():
            file.attrs[name] = np.bytes_(text)


def describe(path: Path, *, key: str | None) -> FileInfo:
    """Describe a dataset; `extra` lists all datasets, and the metric and filters if they can be read safely."""
    key = key or DEFAULT_KEY
    with _open(path) as file:
        dataset = _dataset(path, file, key)
        with _parsing(path):
            extra = {"key": key, "keys": ", ".join(_keys(file))}
            for name in ("distance", FILTERS):
                if name not in file.attrs:
                    continue
                attribute = file.attrs.get_id(name)
                # Only strings of fixed length are read: others are in a heap, and HDF5 2.0 hangs on a damaged heap.
                if attribute.shape == () and attribute.dtype.kind == "S" and attribute.dtype.itemsize <= LONGEST_NAME:
                    extra[name] = file.attrs[name].decode()
            rows, columns = dataset.shape
            return FileInfo(path, "hdf5", rows, columns, str(dataset.dtype), path.stat().st_size, extra)
