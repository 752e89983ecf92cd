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
from tonari.api.index.files.header import ALIGNED, check_version, header_of, padded, refusal
from tonari.api.sparse.answers import check_place
from tonari.io import schema
from tonari.io._atomic import atomic
from tonari.io._common import reason
from tonari.io.schema import whole
from tonari.metrics import get_metric
from tonari.metrics.changes.change import change_of, check_weights
from tonari.sparse.plan import refusal as metric_refusal
from tonari.sparse.rows import MOST, SparseRows, sparse_rows

FORMAT, VERSION = "tonari.Index of sparse rows", 1
_FIELDS: dict[str, schema.Test] = {
    **dict.fromkeys(("format", "metric"), schema.text),
    "dtype": schema.one_of("float32", "float64"),
    "version": whole(1),
    "n": whole(0, MOST),
    "d": whole(1, MOST),
    "entries": whole(0),
    "weights": schema.none_or(schema.list_of(schema.real(0))),
    "device": lambda value: schema.text(value) or schema.list_of(schema.text)(value),
    "threads": schema.none_or(whole(1)),
    "memory": schema.none_or(whole(0)),
    "next_id": whole(0, 2**63 - 1),
    "crc": whole(0, 2**32 - 1),
}


def save(path: str | os.PathLike[str], state: dict[str, Any]) -> None:
    """Write the state of an Index of sparse rows, as its pickle contains it, to a file."""
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
    try:
        check_version(about, FORMAT, VERSION)
        schema.check(about, _FIELDS)
        if get_metric(about["metric"]).name != about["metric"]:
            raise ValueError(f"its metric is {about['metric']!r}")
        change = change_of(about["metric"], check_weights(about["metric"], about["weights"]))
        why_not = metric_refusal(about["metric"] if change is None else change.base)
        if why_not is not None:
            raise ValueError(why_not)
        check_place("auto", about["device"])
        if about["next_id"] < about["n"]:
            raise ValueError(f"its next_id is {about['next_id']}, which {about['n']} points exceed")
        about |= {"begin": begin, "on": None, "method": "exact"}
        needed = begin + sum(_sizes(about))
        if size != needed:
            raise ValueError(f"its header says {needed} bytes; the file is truncated or has extra bytes")
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise refusal(path, size, reason(error)) from error
    return about


def load(path: Path, about: dict[str, Any]) -> dict[str, Any]:
    """Return the state of a saved Index of sparse rows, whose arrays are mapped."""
    raw = np.asarray(np.memmap(path, np.uint8, "r"))[about["begin"] :]
    size = path.stat().st_size
    if zlib.crc32(raw.data) != about["crc"]:
        raise refusal(path, size, "the checksum of its rows does not match: they are damaged; save it again")
    n, starts, kinds = about["n"], np.cumsum([0, *_sizes(about)]).tolist(), _kinds(inputs.dtype_of(about["dtype"]))
    ids, indptr, columns, values = (
        raw[start : start + count * kind.itemsize].view(kind).astype(kind.newbyteorder("="), copy=False)
        for start, count, kind in zip(starts, _counts(about), kinds, strict=False)
    )
    try:
        if n and not (ids[0] >= 0 and ids[-1] < about["next_id"] and (np.diff(ids) > 0).all()):
            raise ValueError("its ids do not ascend from 0 on to below next_id")
        rows = sparse_rows(indptr, columns, values, about["d"], 0)
        if not (np.isfinite(values).all() and (values != 0).all()):
            raise ValueError("its rows have values that are zero or not finite")
        if get_metric(about["metric"]).bits and not (values == 1).all():
            raise ValueError("its sets have values other than 1")
    except (ValueError, TypeError) as error:
        raise refusal(path, size, reason(error)) from error
    return {
        "metric": about["metric"],
        "weights": None if about["weights"] is None else tuple(about["weights"]),
        "transform": None,
        "d": about["d"],
        "_bits": None,
        "_asked": "auto",
        "_overrides": {},
        "_chosen": None,
        "_device": about["device"],
        "_on": None,
        "_threads": about["threads"],
        "_memory": about["memory"],
        "_next_id": about["next_id"],
        "_ids": ids,
        "_points": rows,
    }


def _counts(about: dict[str, Any]) -> tuple[int, int, int, int]:
    """Return the number of elements in each of the four blocks: ids, indptr, columns and values."""
    return about["n"], about["n"] + 1, about["entries"], about["entries"]


def _kinds(values: np.dtype[Any]) -> list[np.dtype[Any]]:
    """Return the dtype of each of the four blocks."""
    return [np.dtype(kind) for kind in ("<i8", "<i8", "<i4", f"<f{values.itemsize}")]


def _sizes(about: dict[str, Any]) -> list[int]:
    """Return the size of each of the four blocks in bytes."""
    kinds = _kinds(inputs.dtype_of(about["dtype"]))
    lengths = (count * kind.itemsize for count, kind in zip(_counts(about), kinds, strict=True))
    return [-(-length // ALIGNED) * ALIGNED for length in lengths]
