"""The file of an Index of dense rows: a header (header.py), the ids, and the points as one block that can be mapped.

    the header
    the ids, int64, and zeros up to a multiple of 64 bytes; absent if ids are row numbers
    the matrix that rows are multiplied by, float64, and zeros as above; absent without such a matrix
    the points, in C order

All numbers are little-endian. A single file can be replaced in one step, unlike a directory of arrays, and blocks at
multiples of 64 bytes can be mapped. The header has the CRC-32 of each block, so a change of any byte is detected. An
Index with codes or of sparse rows has another format (coded.py, sparse.py).
"""

from __future__ import annotations

import math
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tonari import inputs
from tonari.api.index.files import coded as coded_file
from tonari.api.index.files import sparse as sparse_file
from tonari.api.index.files.header import (
    MAGIC,
    aligned,
    check_header,
    check_ids,
    check_size,
    header_of,
    is_index,
    padded,
    read_header,
    refusal,
    refusing,
    state_of,
)
from tonari.io import schema
from tonari.io._atomic import atomic
from tonari.io._common import little, pieces
from tonari.io.schema import whole
from tonari.methods.places.place import place_for
from tonari.methods.registry import check_search_method
from tonari.metrics import get_metric
from tonari.metrics.transforms.change import change_of, check_weights
from tonari.sparse.rows import SparseRows

FORMAT, VERSION = "tonari.Index", 1
__all__ = ["MAGIC", "describe", "is_index", "load", "save", "state_for"]

_FIELDS: dict[str, schema.Test] = {
    **dict.fromkeys(("method", "asked"), schema.text),
    "k": whole(1),
    "weights": schema.none_or(schema.list_of(schema.real(0))),
    "on": schema.none_or(schema.text),
    "next_id": whole(0, 2**63 - 1),
    "ids_bytes": whole(0),
    **dict.fromkeys(("ids_crc", "points_crc"), whole(0, 2**32 - 1)),
}
_OPTIONAL: dict[str, schema.Test] = {
    "overrides": lambda value: isinstance(value, dict),
    # entries for an Index whose rows are multiplied by a matrix: the shape of the matrix, and the CRC-32 of its block
    "transform": lambda value: schema.list_of(whole(1, 2**31))(value) and len(value) == 2,
    "transform_crc": whole(0, 2**32 - 1),
    # entry for an Index of bool rows: their number of columns
    "bits": whole(1),
}


def save(path: str | os.PathLike[str], state: dict[str, Any]) -> None:
    """Save the state of an Index to a file; the state has the form that pickles contain."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path: expected a path, got {type(path).__name__}")
    if "_coded" in state:
        coded_file.save(path, state)
        return
    if isinstance(state["_points"], SparseRows):
        sparse_file.save(path, state)
        return
    given, ids = state["_points"], state["_ids"]
    points = inputs.held(inputs.to_host(given))
    named = b"" if ids is None else padded(ids.astype("<i8").tobytes())
    transform = state["transform"]
    matrix = b"" if transform is None else padded(transform.astype("<f8").tobytes())
    checksum = 0
    for _, rows in pieces(points):
        checksum = zlib.crc32(rows.view(np.uint8).data, checksum)
    device, chosen = state["_device"], state["_chosen"]
    about = {
        "format": FORMAT,
        "version": VERSION,
        "n": len(points),
        "d": points.shape[1],
        **({} if state["_bits"] is None else {"bits": state["_bits"]}),
        "dtype": inputs.name_of_dtype(points),
        "metric": state["metric"],
        "weights": state["weights"],
        "asked": state["_asked"],
        "overrides": state["_overrides"],
        "method": chosen[0],
        "k": chosen[1],
        "device": device if isinstance(device, str) else list(device),
        "on": inputs.place_of(given, "points"),
        "threads": state["_threads"],
        "memory": state["_memory"],
        "next_id": state["_next_id"],
        "ids_bytes": len(named),
        "ids_crc": zlib.crc32(named),
        "points_crc": checksum,
    }
    if transform is not None:
        about |= {"transform": list(transform.shape), "transform_crc": zlib.crc32(matrix)}
    with atomic(path) as file:
        file.write(header_of(about) + named + matrix)
        for _, rows in pieces(points):
            file.write(rows.view(np.uint8).data)


def describe(path: Path) -> dict[str, Any]:
    """Return the contents of the header, after checking them against the size of the file.

    Raises
    ------
    FileNotFoundError, IsADirectoryError
    tonari.io.FileFormatError
    """
    about, size, begin = read_header(path)
    if about.get("format") == coded_file.FORMAT:
        return coded_file.described(path, about, size, begin)
    if about.get("format") == sparse_file.FORMAT:
        return sparse_file.described(path, about, size, begin)
    with refusing(path, size):
        check_header(about, FORMAT, VERSION, _FIELDS, **_OPTIONAL)
        for name in ("asked", "method"):
            if about[name] != "auto":
                check_search_method(about[name])
        if about["ids_bytes"] not in (0, aligned(8 * about["n"])):
            raise ValueError(f"its ids_bytes is {about['ids_bytes']}, which does not fit {about['n']} points")
        check_weights(about["metric"], about["weights"])
        if ("transform" in about) != ("transform_crc" in about):
            raise ValueError("it has one of transform and transform_crc, expected both or neither")
        about["matrix"] = aligned(8 * math.prod(about.get("transform", (0,))))
        about["offset"] = begin + about["ids_bytes"] + about["matrix"]
        needed = about["offset"] + about["n"] * about["d"] * inputs.dtype_of(about["dtype"]).itemsize
        check_size(size, needed)
    return about


def state_for(
    state: dict[str, Any], device: str | Sequence[str] | None, threads: int | None, memory: int | str | None
) -> dict[str, Any]:
    """Apply the arguments of :meth:`tonari.Index.load` to a loaded state, and copy its points to their device."""
    on = state.pop("_on")
    if device is not None:
        wish = inputs.parse_device(device)
        if on is not None and wish != "auto":
            on = None if wish == "cpu" else place_for(device).devices[0]
        state |= {"_device": device, "_overrides": {}}
        if state["_asked"] == "auto":
            state["_chosen"] = None
    if on is not None:
        state["_points"] = place_for(on).there(state["_points"])
    if threads is not None:
        state["_threads"] = inputs.check_threads(threads)
    if memory is not None:
        state["_memory"] = inputs.parse_memory(memory)
    return state


def load(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the state of a saved Index with mapped points.

    Its entry "_on" is the CUDA device of the points, or None.
    """
    path = Path(path)
    about = describe(path)
    if about["format"] == coded_file.FORMAT:
        return coded_file.load(path, about)
    if about["format"] == sparse_file.FORMAT:
        return sparse_file.load(path, about)
    n, d, offset = about["n"], about["d"], about["offset"]
    size, dtype, middle = path.stat().st_size, inputs.dtype_of(about["dtype"]), offset - about["matrix"]
    begin = middle - about["ids_bytes"]
    raw = np.asarray(np.memmap(path, np.uint8, "r"))
    for name, block, checksum in (
        ("ids", raw[begin:middle], about["ids_crc"]),
        ("transform", raw[middle:offset], about.get("transform_crc", 0)),
        ("points", raw[offset:], about["points_crc"]),
    ):
        if zlib.crc32(block.data) != checksum:
            raise refusal(path, size, f"the checksum of its {name} does not match: they are damaged; save it again")
    ids = raw[begin : begin + 8 * n].view("<i8").astype(np.int64) if about["ids_bytes"] else None
    points = raw[offset:].view(little(dtype)).reshape(n, d)
    with refusing(path, size):
        transform = None
        if about["matrix"]:
            shape = about["transform"]
            transform = raw[middle : middle + 8 * math.prod(shape)].view("<f8").reshape(shape)
        change = change_of(about["metric"], about["weights"], transform)
        if ids is not None:
            check_ids(about, ids)
        if n and get_metric(about["metric"]).missing:
            inputs.check_gaps(inputs.as_rows(points, "its points", check_values=False), "its points")
        elif n:
            inputs.as_rows(points, "its points")
    return state_of(
        about,
        weights=about["weights"],
        transform=None if change is None else change.transform,
        _bits=about.get("bits"),
        _asked=about["asked"],
        _overrides=about.get("overrides", {}),
        _chosen=(about["method"], about["k"]),
        _ids=ids,
        _points=points if points.dtype == dtype else points.astype(dtype),
    )
