"""The header of an Index file, which describes the rest of the file as JSON.

    bytes 0 - 7      MAGIC
    8 - 11           length of the JSON text in bytes; the header's length is a multiple of 64 bytes
    12 - 15          CRC-32 of the text
    16 - 31          zero
    32 -             the text: JSON, padded with spaces

All numbers are little-endian. Blocks follow, each padded to a multiple of 64 bytes.
"""

from __future__ import annotations

import contextlib
import json
import struct
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.io import schema
from tonari.io._common import FileFormatError, open_regular, reason, size_of
from tonari.io.schema import whole
from tonari.metrics import get_metric

MAGIC = b"\x93tnrINDX"
ALIGNED = 64
_PREFIX = 32
_LONGEST = 1 << 20  # maximum length of the JSON text in bytes
EXPECTED = "what tonari.Index.save writes"
FIELDS: dict[str, schema.Test] = {  # fields of the headers of every kind of Index
    **dict.fromkeys(("format", "metric", "dtype"), schema.text),
    **dict.fromkeys(("version", "d"), whole(1)),
    "n": whole(0),
    "device": lambda value: schema.text(value) or schema.list_of(schema.text)(value),
    "threads": schema.none_or(whole(1)),
    "memory": schema.none_or(whole(0)),
}


def is_index(path: Path) -> bool:
    """Whether a file begins with the magic number of an Index."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def header_of(about: dict[str, Any]) -> bytes:
    """Return the bytes of a header that contains these facts."""
    text = json.dumps(about).encode()
    text = text.ljust(aligned(_PREFIX + len(text)) - _PREFIX)
    return MAGIC + struct.pack("<II", len(text), zlib.crc32(text)) + bytes(16) + text


def read_header(path: Path) -> tuple[dict[str, Any], int, int]:
    """Return the facts in the header of a file, the size of the file, and the offset of the first block.

    Raises
    ------
    FileNotFoundError, IsADirectoryError
    tonari.io.FileFormatError
        The file is not an Index file, or its header is damaged.
    """
    size = size_of(path)
    with open_regular(path) as file:
        start = file.read(_PREFIX)
        if not start.startswith(MAGIC):
            why = f"it begins with {start[:8]!r}, not with {MAGIC!r}; tonari.io.read and KNNGraph.load read others"
            raise refusal(path, size, why)
        length, checksum = struct.unpack("<II", start[8:16].ljust(8, b"\0"))
        text = file.read(min(length, _LONGEST))
    if start[16:] != bytes(16) or (_PREFIX + length) % ALIGNED or len(text) != length or zlib.crc32(text) != checksum:
        raise refusal(path, size, "its header is damaged")
    try:
        about = json.loads(text)
        if not isinstance(about, dict):
            raise TypeError(f"its header is {type(about).__name__}")
    except (ValueError, TypeError, RecursionError) as error:
        raise refusal(path, size, reason(error)) from error
    return about, size, _PREFIX + length


def check_header(
    about: dict[str, Any], kind: str, version: int, fields: Mapping[str, schema.Test], **optional: schema.Test
) -> None:
    """Raise ValueError for another format, a version that this release cannot read, or a wrong field."""
    if about["format"] != kind:
        raise ValueError(f"its format is {about['format']!r}")
    if type(about["version"]) is not int or about["version"] != version:
        raise ValueError(f"its format version is {about['version']!r}, this release reads {version}")
    schema.check(about, {**FIELDS, **fields}, optional=optional)
    if get_metric(about["metric"]).name != about["metric"]:
        raise ValueError(f"its metric is {about['metric']!r}")
    if about.get("next_id", about["n"]) < about["n"]:
        raise ValueError(f"its next_id is {about['next_id']}, which {about['n']} points exceed")


def check_size(size: int, needed: int) -> None:
    """Raise ValueError if the size of a file is not the size that its header implies."""
    if size != needed:
        raise ValueError(f"its header says {needed} bytes; the file is truncated or has extra bytes")


def check_ids(about: dict[str, Any], ids: npt.NDArray[np.int64]) -> None:
    """Raise ValueError unless the ids of the rows, if there are any, are ascending and below next_id."""
    if len(ids) and not (ids[0] >= 0 and ids[-1] < about["next_id"] and (np.diff(ids) > 0).all()):
        raise ValueError("its ids do not ascend from 0 on to below next_id")


@contextlib.contextmanager
def refusing(path: Path, size: int) -> Iterator[None]:
    """Convert errors that checks raise inside this context to :class:`tonari.io.FileFormatError`."""
    try:
        yield
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise refusal(path, size, reason(error)) from error


def state_of(about: dict[str, Any], **own: Any) -> dict[str, Any]:
    """Return the state of a saved Index.

    It consists of the fields that all headers have, and of `own`, the entries for this kind of Index.
    """
    return {
        "metric": about["metric"],
        "weights": None,
        "transform": None,
        "d": about["d"],
        "_bits": None,
        "_overrides": {},
        "_device": about["device"],
        "_on": about["on"],
        "_threads": about["threads"],
        "_memory": about["memory"],
        "_next_id": about["next_id"],
        **own,
    }


def aligned(size: int) -> int:
    """Return the size of a block, including the zeros after it."""
    return -(-size // ALIGNED) * ALIGNED


def padded(block: bytes) -> bytes:
    """Append zeros to a block up to a multiple of 64 bytes."""
    return block.ljust(aligned(len(block)), b"\0")


def refusal(path: Path, size: int, why: str) -> FileFormatError:
    """Return the error to raise for a file that is not an Index file or is damaged."""
    return FileFormatError(
        f"{path}: not a whole Index file: found {size} bytes, expected {EXPECTED}: {why}", path, size, EXPECTED
    )
