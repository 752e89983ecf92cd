"""The header of an Index file, which describes the rest of the file as JSON.

    bytes 0 - 7      MAGIC
    8 - 11           length of the JSON text in bytes; the header's length is a multiple of 64 bytes
    12 - 15          CRC-32 of the text
    16 - 31          zero
    32 -             the text: JSON, padded with spaces

All numbers are little-endian. Blocks follow, each padded to a multiple of 64 bytes.
"""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path
from typing import Any

from tonari.io._common import FileFormatError, open_regular, reason, size_of

MAGIC = b"\x93tnrINDX"
ALIGNED = 64
_PREFIX = 32
_LONGEST = 1 << 20  # bytes of the text
EXPECTED = "what tonari.Index.save writes"


def is_index(path: Path) -> bool:
    """Whether a file begins with the magic number of an Index."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def header_of(about: dict[str, Any]) -> bytes:
    """Return the bytes of a header that contains these facts."""
    text = json.dumps(about).encode()
    text = text.ljust(-(-(_PREFIX + len(text)) // ALIGNED) * ALIGNED - _PREFIX)
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


def check_version(about: dict[str, Any], kind: str, version: int) -> None:
    """Raise ValueError if the facts name another format, or a version that this release cannot read."""
    if about["format"] != kind:
        raise ValueError(f"its format is {about['format']!r}")
    if type(about["version"]) is not int or about["version"] != version:
        raise ValueError(f"its format version is {about['version']!r}, this release reads {version}")


def padded(block: bytes) -> bytes:
    """Append zeros to a block up to a multiple of 64 bytes."""
    return block.ljust(-(-len(block) // ALIGNED) * ALIGNED, b"\0")


def refusal(path: Path, size: int, why: str) -> FileFormatError:
    """Return the error to raise for a file that is not an Index file or is damaged."""
    return FileFormatError(
        f"{path}: not a whole Index file: found {size} bytes, expected {EXPECTED}: {why}", path, size, EXPECTED
    )
