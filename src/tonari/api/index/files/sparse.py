"""The file of an Index of sparse rows: a header (header.py), the ids, and the arrays of the rows.

    the header
    the ids, int64 of shape (n,), ascending
    indptr, int64 of shape (n + 1,)
    columns, int32, ascending in each row
    values, float32 or float64

All numbers are little-endian, and each block is padded to a multiple of 64 bytes. The header has the CRC-32 of the
blocks.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.api.index.files.header import (
    aligned,
    check_header,
    check_ids,
    check_size,
    header_of,
    padded,
    refusal,
    refusing,
    state_of,
)
from tonari.api.sparse.answers import check_place
from tonari.io import schema
from tonari.io._atomic import atomic
from tonari.io.schema import whole
from tonari.metrics import get_metric
from tonari.metrics.transforms.change import change_of, check_weights
from tonari.sparse.plan import refusal as metric_refusal
from tonari.sparse.rows import MOST, SparseRows, sparse_rows

FORMAT, VERSION = "tonari.Index of sparse rows", 1
_FIELDS: dict[str, schema.Test] = {
    "dtype": schema.one_of("float32", "float64"),
    "n": whole(0, MOST),
    "d": whole(1, MOST),
    "entries": whole(0),
    "weights": schema.none_or(schema.list_of(schema.real(0))),
    "next_id": whole(0, 2**63 - 1),
    "crc": whole(0, 2**32 - 1),
}


def save(path: str | os.PathLike[str], state: dict[str, Any]) -> None:
    """Save the state of an Index of sparse rows to a file; the state has the form that pickles contain."""
    rows: SparseRows = state["_points"]
    device, dtype, checksum = state["_device"], str(rows.dtype), 0
    for block in _blocks(rows, state["_ids"]):
        checksum = zlib.crc32(block, checksum)
    about = {
        "format": FORMAT,
        "version": VERSION,
        "n": len(rows),
        "d": rows.d,
        "entries": len(rows.columns),
        "dtype": dtype,
        "metric": state["metric"],
        "weights": state["weights"],
        "device": device if isinstance(device, str) else list(device),
        "threads": state["_threads"],
        "memory": state["_memory"],
        "next_id": state["_next_id"],
        "crc": checksum,
    }
    with atomic(path) as file:
        file.write(header_of(about))
        for block in _blocks(rows, state["_ids"]):
            file.write(block)


def _blocks(rows: SparseRows, ids: npt.NDArray[np.int64]) -> Iterator[bytes]:
    for array, kind in zip((ids, rows.indptr, rows.columns, rows.values), _kinds(rows.dtype), strict=True):
        yield padded(np.ascontiguousarray(array, kind).tobytes())


def described(path: Path, about: dict[str, Any], size: int, begin: int) -> dict[str, Any]:
    """Return the contents of a header, after checking them against the size of the file."""
    with refusing(path, size):
        check_header(about, FORMAT, VERSION, _FIELDS)
        change = change_of(about["metric"], check_weights(about["metric"], about["weights"]))
        why_not = metric_refusal(about["metric"] if change is None else change.base)
        if why_not is not None:
            raise ValueError(why_not)
        check_place("auto", about["device"])
        about |= {"begin": begin, "on": None, "method": "exact"}
        needed = begin + sum(_sizes(about))
        check_size(size, needed)
    return about


def load(path: Path, about: dict[str, Any]) -> dict[str, Any]:
    """Return the state of a saved Index of sparse rows, whose arrays are mapped."""
    raw = np.asarray(np.memmap(path, np.uint8, "r"))[about["begin"] :]
    size = path.stat().st_size
    if zlib.crc32(raw.data) != about["crc"]:
        raise refusal(path, size, "the checksum of its rows does not match: they are damaged; save it again")
    starts, kinds = np.cumsum([0, *_sizes(about)]).tolist(), _kinds(inputs.dtype_of(about["dtype"]))
    ids, indptr, columns, values = (
        raw[start : start + count * kind.itemsize].view(kind).astype(kind.newbyteorder("="), copy=False)
        for start, count, kind in zip(starts, _counts(about), kinds, strict=False)
    )
    with refusing(path, size):
        check_ids(about, ids)
        rows = sparse_rows(indptr, columns, values, about["d"], 0)
        if not (np.isfinite(values).all() and (values != 0).all()):
            raise ValueError("its rows have values that are zero or not finite")
        if get_metric(about["metric"]).bits and not (values == 1).all():
            raise ValueError("its sets have values other than 1")
    weights = None if about["weights"] is None else tuple(about["weights"])
    return state_of(about, weights=weights, _asked="auto", _chosen=None, _ids=ids, _points=rows)


def _counts(about: dict[str, Any]) -> tuple[int, int, int, int]:
    """Return the number of elements in each of the four blocks: ids, indptr, columns and values."""
    return about["n"], about["n"] + 1, about["entries"], about["entries"]


def _kinds(values: np.dtype[Any]) -> list[np.dtype[Any]]:
    """Return the dtype of each of the four blocks."""
    return [np.dtype(kind) for kind in ("<i8", "<i8", "<i4", f"<f{values.itemsize}")]


def _sizes(about: dict[str, Any]) -> list[int]:
    """Return the size of each of the four blocks in bytes."""
    kinds = _kinds(inputs.dtype_of(about["dtype"]))
    return [aligned(count * kind.itemsize) for count, kind in zip(_counts(about), kinds, strict=True)]
