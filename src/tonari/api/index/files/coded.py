"""The file of an Index with codes: a header (header.py) and the codes; the rows stay in a file of their own.

    the header
    the table of slices, int64 of shape (slices, 4): begin, end, CRC-32 of the rows, size of the codes in bytes
    the values of the form: its centre, float64 of shape (d,), and its directions, float64 of shape (d, columns - 1)
    the codes of each slice, one after another

The header has the CRC-32 of these blocks, so a change of any byte is detected. The codes have the layout of one kernel;
a machine without this kernel makes them again from the rows.
"""

from __future__ import annotations

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
    "scale": schema.real(0),
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
    device, chosen = state["_device"], state["_chosen"]
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
        about |= {"begin": begin, "on": None, "next_id": about["n"]}
        needed = begin + sum(_sizes(about)) + about["codes_bytes"]
        check_size(size, needed)
    return about


def load(path: Path, about: dict[str, Any]) -> dict[str, Any]:
    """Return the state of a saved Index with codes, as a pickle would contain it."""
    raw = np.asarray(np.memmap(path, np.uint8, "r"))[about["begin"] :]
    size, (slices, formed) = path.stat().st_size, _sizes(about)
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
    at = slices + formed + np.concatenate([[0], np.cumsum(lengths)])
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
    )
    return state_of(
        about,
        _asked=about["asked"],
        _chosen=(about["method"], about["k"]),
        _ids=None,
        _points=None,
        _coded=coded,
    )


def _sizes(about: dict[str, Any]) -> tuple[int, int]:
    """Return the sizes in bytes of two blocks: the table of slices, and the values of the form."""
    values = _values(about["d"], about["columns"])
    return aligned(8 * _COLUMNS * about["slices"]), aligned(8 * values)


def _values(d: int, columns: int) -> int:
    """Return the number of values in a form: in its centre and, unless all columns are compared, in its directions."""
    return d if columns == d else d * columns
