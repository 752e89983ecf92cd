"""The file of an Index with codes: a header (header.py) and the codes; the rows stay in a file of their own.

    the header
    the table of slices, int64 of shape (slices, 4): begin, end, CRC-32 of the rows, size of the codes in bytes
    the values of the form: its centre, float64 of shape (d,), and its directions, float64 of shape (d, columns - 1)
    of boxes, if any: the directions of their form, float64 of shape (d, box_columns - 1) unless box_columns is d,
        the order of the points, int32 or int64 of shape (n,), and the ends, uint8 of shape (2, box_columns, boxes)
    the codes of each slice, one after another

The header has the CRC-32 of these blocks, so a change of any byte is detected. The codes have the layout of one kernel;
a machine without this kernel makes them again from the rows.
"""

from __future__ import annotations

import math
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tonari import inputs
from tonari.api.index.coded import CodedState
from tonari.api.index.files.header import (
    aligned,
    check_header,
    check_size,
    header_of,
    padded,
    refusal,
    refusing,
    state_of,
)
from tonari.exact.cpu.rows.boxes import WrittenBoxes, cell_of
from tonari.exact.cpu.rows.codes import WrittenCodes
from tonari.io import schema
from tonari.io._atomic import atomic
from tonari.io.schema import whole
from tonari.io.stored import StoredRows
from tonari.methods.registry import check_search_method

FORMAT, VERSION = "tonari.Index of codes", 1
_STORED = ("path", "offset", "n", "d", "pitch", "dtype", "size", "time")
_COLUMNS = 4  # number of columns in the table of slices
_FIELDS: dict[str, schema.Test] = {
    **dict.fromkeys(("method", "asked", "path", "codes", "kernel"), schema.text),
    **dict.fromkeys(("n", "k", "columns", "pitch", "slices"), whole(1)),
    **dict.fromkeys(("offset", "size", "time", "codes_bytes"), whole(0)),
    **dict.fromkeys(("box_columns", "box_count", "box_group"), whole(0)),
    "scale": schema.real(0),
    "box_least": schema.real(-math.inf),
    "box_step": schema.real(0),
    "codes_crc": whole(0, 2**32 - 1),
}


def save(path: str | os.PathLike[str], state: dict[str, Any]) -> None:
    """Save the state of an Index with codes to a file; the state has the form that pickles contain."""
    coded: CodedState = state["_coded"]
    if coded.stored is None:
        raise ValueError(
            "save: the rows are in memory, and a file of codes refers to the file of the rows; write them to one, as "
            "in numpy.save('points.npy', points), and make the Index of it: tonari.Index('points.npy', codes='int8')"
        )
    checksums = {(begin, end): checksum for begin, end, checksum in coded.checksums}
    table = [(part.begin, part.end, checksums[part.begin, part.end], len(part.packed)) for part in coded.written]
    columns = len(coded.centre) if coded.directions is None else coded.directions.shape[1] + 1
    device, chosen, boxes = state["_device"], state["_chosen"], coded.boxes
    about = {
        "format": FORMAT,
        "version": VERSION,
        **{name: getattr(coded.stored, name) for name in _STORED},
        "metric": state["metric"],
        "asked": state["_asked"],
        "method": chosen[0],
        "k": chosen[1],
        "device": device if isinstance(device, str) else list(device),
        "threads": state["_threads"],
        "memory": state["_memory"],
        "codes": coded.codes,
        "columns": columns,
        "kernel": coded.kernel,
        "box_columns": 0 if boxes is None else boxes.ends.shape[1],
        "box_count": 0 if boxes is None else boxes.ends.shape[2],
        "box_group": 0 if boxes is None else boxes.group,
        "box_least": 0.0 if boxes is None else boxes.least,
        "box_step": 1.0 if boxes is None else boxes.step,
        "scale": coded.scale,
        "slices": len(table),
        "codes_bytes": sum(size for *_, size in table),
        "codes_crc": 0,
    }
    for block in _blocks(coded, table):
        about["codes_crc"] = zlib.crc32(block, about["codes_crc"])
    with atomic(path) as file:
        file.write(header_of(about))
        for block in _blocks(coded, table):
            file.write(block)


def _blocks(coded: CodedState, table: list[tuple[int, int, int, int]]) -> Iterator[bytes | memoryview]:
    yield padded(np.array(table, "<i8").tobytes())
    form = np.array(coded.centre, "<f8").tobytes()
    yield padded(form if coded.directions is None else form + coded.directions.astype("<f8").tobytes())
    boxes = coded.boxes
    if boxes is not None:
        yield padded(b"" if boxes.directions is None else boxes.directions.astype("<f8").tobytes())
        yield padded(boxes.order.astype(_order_type(len(boxes.order))).tobytes())
        yield padded(boxes.ends.tobytes())
    for part in coded.written:
        yield part.packed.data


def described(path: Path, about: dict[str, Any], size: int, begin: int) -> dict[str, Any]:
    """Return the contents of a header, after checking them against the size of the file."""
    with refusing(path, size):
        check_header(about, FORMAT, VERSION, _FIELDS)
        for name in ("asked", "method"):
            check_search_method(about[name])
        if not 1 <= about["columns"] <= about["d"]:
            raise ValueError(f"its columns are {about['columns']}, which rows of {about['d']} do not have")
        if inputs.dtype_of(about["dtype"]).itemsize * about["d"] > about["pitch"]:
            raise ValueError(f"its pitch is {about['pitch']}, which is less than a row")
        if about["box_columns"] and (
            about["box_columns"] > about["d"]
            or not about["box_group"]
            or about["box_count"] != -(-about["n"] // cell_of(about["box_group"]))
            or not about["box_step"]
        ):
            raise ValueError("its boxes belong to other points")
        about |= {"begin": begin, "on": None, "next_id": about["n"]}
        needed = begin + sum(_sizes(about)) + about["codes_bytes"]
        check_size(size, needed)
    return about


def load(path: Path, about: dict[str, Any]) -> dict[str, Any]:
    """Return the state of a saved Index with codes, as a pickle would contain it."""
    raw = np.asarray(np.memmap(path, np.uint8, "r"))[about["begin"] :]
    size, (slices, formed, *boxed) = path.stat().st_size, _sizes(about)
    if zlib.crc32(raw.data) != about["codes_crc"]:
        raise refusal(path, size, "the checksum of its codes does not match: they are damaged; save it again")
    n, d, columns = about["n"], about["d"], about["columns"]
    table = raw[: 8 * _COLUMNS * about["slices"]].view("<i8").reshape(-1, _COLUMNS).astype(np.int64)
    begins, ends, _, lengths = table.T
    joined = begins[0] == 0 and ends[-1] == n and (begins[1:] == ends[:-1]).all() and (begins < ends).all()
    if not joined or (lengths < 0).any() or lengths.sum() != about["codes_bytes"]:
        raise refusal(path, size, "its slices are not those of all points")
    form = raw[slices : slices + 8 * _values(d, columns)].view("<f8").astype(np.float64)
    directions = None if columns == d else np.ascontiguousarray(form[d:].reshape(d, columns - 1))
    boxes = _boxes(raw[slices + formed :], about, boxed)
    if boxes is not None and not (np.bincount(boxes.order, minlength=n) == 1).all():
        raise refusal(path, size, "its order is not one of all points")
    at = slices + formed + sum(boxed) + np.concatenate([[0], np.cumsum(lengths)])
    parts = zip(begins.tolist(), ends.tolist(), at.tolist(), lengths.tolist(), strict=False)
    coded = CodedState(
        about["codes"],
        StoredRows(**{name: about[name] for name in _STORED}),
        None,
        [(begin, end, checksum) for begin, end, checksum in table[:, :3].tolist()],
        form[:d].tolist(),
        about["scale"],
        directions,
        about["kernel"],
        [WrittenCodes(begin, end, raw[first : first + length]) for begin, end, first, length in parts],
        boxes,
    )
    return state_of(
        about,
        _asked=about["asked"],
        _chosen=(about["method"], about["k"]),
        _ids=None,
        _points=None,
        _coded=coded,
    )


def _boxes(raw: np.ndarray[Any, Any], about: dict[str, Any], sizes: list[int]) -> WrittenBoxes | None:
    """Return the boxes of a file, whose blocks begin `raw` and have these sizes; None if it has none."""
    n, d, columns = about["n"], about["d"], about["box_columns"]
    if not columns:
        return None
    directed, ordered, _ = sizes
    directions = raw[:directed].view("<f8")[: d * (columns - 1)].astype(np.float64).reshape(d, -1)
    order = raw[directed : directed + ordered].view(_order_type(n))[:n].astype(np.int64)
    ends = raw[directed + ordered :][: 2 * columns * about["box_count"]].reshape(2, columns, -1).copy()
    steps = about["box_least"], about["box_step"]
    return WrittenBoxes(directions if columns < d else None, *steps, about["box_group"], order, ends)


def _order_type(n: int) -> str:
    return "<i4" if n < 2**31 else "<i8"


def _sizes(about: dict[str, Any]) -> list[int]:
    """Return the sizes in bytes of the blocks before the codes: the slices, the form and, for boxes, three more."""
    values = _values(about["d"], about["columns"])
    sizes = [aligned(8 * _COLUMNS * about["slices"]), aligned(8 * values)]
    n, d, columns = about["n"], about["d"], about["box_columns"]
    if columns:
        directions = d * (columns - 1) if columns < d else 0
        sizes += [
            aligned(8 * directions),
            aligned(int(_order_type(n)[2]) * n),
            aligned(2 * columns * about["box_count"]),
        ]
    return sizes


def _values(d: int, columns: int) -> int:
    """Return the number of values in a form: in its centre and, unless all columns are compared, in its directions."""
    return d if columns == d else d * columns
