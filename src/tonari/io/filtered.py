"""Records of the filters that restricted the search whose neighbours a file contains.

An .npz file of neighbours contains such a record as JSON in its member ``filters.json``, which readers of its arrays
ignore: a mapping from the name of each argument that restricted the search to its properties. A mask has its shape,
dtype and the SHA-256 of its bytes in row order; a number has its value. A file without this member was written without
filters, or by a release that did not record them.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tonari.io import tuning
from tonari.io._atomic import atomic
from tonari.io._common import Array, parsing, size_of
from tonari.io.formats import hdf5

MEMBER = "filters.json"
Filters = Mapping[str, Mapping[str, Any]]


def properties_of(filters: Mapping[str, Any]) -> Filters:
    """Return the properties of filters, which are masks or numbers; None means that a filter was not set.

    >>> properties_of({"where": None, "exclude_within": 3})
    {'exclude_within': {'value': 3}}
    """
    return {name: _properties(value) for name, value in filters.items() if value is not None}


def _properties(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, np.ndarray):
        return {"value": value}
    digest = hashlib.sha256(np.ascontiguousarray(value).data).hexdigest()
    return {"shape": list(value.shape), "dtype": str(value.dtype), "sha256": digest}


def write_npz(path: Path, arrays: Mapping[str, Array], filters: Filters) -> None:
    """Write the arrays of a search to an .npz file, atomically, with the properties of its filters if there are any."""
    with atomic(path) as file:
        np.savez(file, allow_pickle=False, **arrays)
        if filters:
            with zipfile.ZipFile(file, "a") as archive:
                # ZipInfo has the fixed date that numpy.savez uses too, so that equal searches give equal bytes.
                archive.writestr(zipfile.ZipInfo(MEMBER), json.dumps(filters))


def filters_in(path: Path) -> Filters:
    """Return the properties of the filters in an .npz or HDF5 file of neighbours; for HDF5, only their names are known.

    Raises
    ------
    FileFormatError
        A record is damaged.
    """
    if path.suffix.lower() != ".npz":
        names = hdf5.describe(path, key="neighbors").extra.get(hdf5.FILTERS, "")
        return {name: {} for name in names.split(",") if name}
    expected = "the properties of filters, as tonari search writes them"
    with parsing(path, size_of(path), expected, "Find the neighbours again."), zipfile.ZipFile(path) as archive:
        if MEMBER not in archive.namelist():
            return {}
        with archive.open(MEMBER) as member:
            text = member.read(tuning.RECORD_BYTES + 1)
        found = json.loads(text) if len(text) <= tuning.RECORD_BYTES else None
        if not isinstance(found, dict) or not all(isinstance(each, dict) for each in found.values()):
            raise ValueError(f"{MEMBER} is no mapping from filters to their properties")
    return found


def in_words(filters: Filters) -> str:
    """Describe filters in a few words.

    >>> mask = {"shape": [4], "dtype": "bool", "sha256": "0123456789abcdef"}
    >>> in_words({"where": mask, "exclude_within": {"value": 3}})
    'where= (bool, shape [4], SHA-256 01234567...) and exclude_within=3'
    """
    return " and ".join(_described(name, about) for name, about in filters.items())


def _described(name: str, about: Mapping[str, Any]) -> str:
    if "value" in about:
        return f"{name}={about['value']}"
    if not about.keys() >= {"shape", "dtype", "sha256"}:
        return f"{name}="
    return f"{name}= ({about['dtype']}, shape {about['shape']}, SHA-256 {str(about['sha256'])[:8]}...)"
