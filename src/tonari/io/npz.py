"""NumPy archives (.npz): a zip file of .npy files. Read whole, because a zip member cannot be mapped."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from tonari.io._atomic import atomic
from tonari.io._common import Array, FileInfo, size_of
from tonari.io.npy import Header, read_header, write_array

MEMBER = ".npy"
DEFAULT_KEY = "arr_0"  # the name numpy.savez gives to an array without one


@contextmanager
def _open(path: Path) -> Iterator[zipfile.ZipFile]:
    size = size_of(path)
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise ValueError(
            f"{path}: found {size} bytes, expected a whole zip archive with its 22-byte end record: {error}. "
            "The file is truncated or damaged: fetch or save it again."
        ) from error


def _keys(archive: zipfile.ZipFile) -> list[str]:
    return [name[: -len(MEMBER)] for name in archive.namelist() if name.endswith(MEMBER)]


def _choose(path: Path, keys: list[str], key: str | None) -> str:
    listed = ", ".join(keys) if keys else "none"
    if key is None and len(keys) == 1:
        return keys[0]
    if key is None:
        raise ValueError(f"{path}: found {len(keys)} arrays, expected one. Choose with key=: {listed}")
    if key not in keys:
        raise ValueError(f"{path}: there is no array {key!r}. Choose with key=: {listed}")
    return key


def _member_header(archive: zipfile.ZipFile, path: Path, key: str) -> Header:
    member = key + MEMBER
    with archive.open(member) as file:
        return read_header(file, path, archive.getinfo(member).file_size, f"{path}, array {key!r}")


def read(path: Path, *, mmap: bool, key: str | None) -> Array:
    """The (n, d) matrix `key`, or the only one; always in memory."""
    with _open(path) as archive:
        key = _choose(path, _keys(archive), key)
        _member_header(archive, path, key)
        with archive.open(key + MEMBER) as file:
            array: Array = np.lib.format.read_array(file, allow_pickle=False)
        return array


def write(path: Path, array: Array) -> None:
    """An uncompressed archive with one array, named as numpy.savez names it."""
    with (
        atomic(path) as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive,
        archive.open(DEFAULT_KEY + MEMBER, "w", force_zip64=True) as member,
    ):
        write_array(member, array)


def describe(path: Path, *, key: str | None) -> FileInfo:
    """Shape and type of one array from its header; `extra` names all arrays."""
    with _open(path) as archive:
        keys = _keys(archive)
        key = _choose(path, keys, key)
        head = _member_header(archive, path, key)
    rows, columns = head.shape
    extra = {"key": key, "keys": ", ".join(keys)}
    return FileInfo(path, "npz", rows, columns, str(head.dtype), path.stat().st_size, extra)
