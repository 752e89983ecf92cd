"""The table of suffixes, which maps each to the module that reads and writes its format."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import NamedTuple, Protocol

from tonari.io._common import Array, DType, FileInfo
from tonari.io.formats import bin as bin_
from tonari.io.formats import hdf5, npy, npz, vecs
from tonari.io.tables import arrow, text


class Family(Protocol):
    """The interface that the module of each file format implements."""

    def read(self, path: Path, *, mmap: bool, key: str | None, most: float) -> Array: ...
    def write(self, path: Path, array: Array) -> None: ...
    def describe(self, path: Path, *, key: str | None) -> FileInfo: ...


class Format(NamedTuple):
    """The format that a suffix names: its module, its dtype (None: any), and whether files contain named arrays."""

    family: Family
    dtype: DType | None = None
    keyed: bool = False


SUFFIXES: dict[str, Format] = {
    **{suffix: Format(vecs, dtype) for suffix, dtype in vecs.DTYPES.items()},
    **{suffix: Format(bin_, dtype) for suffix, dtype in bin_.DTYPES.items()},
    ".npy": Format(npy),
    ".npz": Format(npz, keyed=True),
    ".hdf5": Format(hdf5, keyed=True),
    ".h5": Format(hdf5, keyed=True),
}

# Tables are written by other programs, and only read here; the formats in `SUFFIXES` can be written too.
TABLES: dict[str, Format] = {
    ".csv": Format(text),
    ".tsv": Format(text),
    ".parquet": Format(arrow, keyed=True),
    ".arrow": Format(arrow, keyed=True),
}


def format_of(path: Path, key: str | None = None) -> Format:
    """Return the format that a suffix names.

    Raise an error if it is unknown, or if `key` is set for a format without names.
    """
    suffix = path.suffix.lower()
    known = SUFFIXES | TABLES
    if suffix not in known:
        nearest = difflib.get_close_matches(suffix or path.name, known, n=1, cutoff=0.0)[0]
        said = f"unknown suffix {path.suffix!r}" if suffix else "no suffix, which would name the format"
        raise ValueError(f"{path}: {said}; the nearest is {nearest!r}. Known: {' '.join(known)}")
    if key is not None and not known[suffix].keyed:
        raise ValueError(f"{path}: key={key!r} is for archives and tables of columns; a {suffix} file holds one array")
    return known[suffix]
