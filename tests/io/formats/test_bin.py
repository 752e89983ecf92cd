"""Damaged .fbin files and similar formats."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import Any

import pytest

from tonari.io import (
    SUFFIXES,
    read,
)
from tonari.io.formats import bin


def refusal(path: Path, call: Any = read, **options: Any) -> str:
    """Return the message of the ValueError that both reading and describing raise."""
    with pytest.raises(ValueError, match=re.escape(str(path))) as caught:
        call(path, **options)
    return str(caught.value)


def counts(message: str) -> tuple[int, list[int]]:
    """Return (bytes found, bytes expected) from the message."""
    found = re.search(r"found (\d+) bytes, expected ((?:at least )?(\d+)(?: or (\d+))?) bytes?", message)
    assert found, message
    return int(found[1]), [int(number) for number in found.groups()[2:] if number]


@pytest.mark.parametrize(("rows", "columns"), [(3, 0), (0, 0)])
@pytest.mark.parametrize("suffix", bin.DTYPES)
def test_bin_without_columns(tmp_path: Path, suffix: str, rows: int, columns: int) -> None:
    path = tmp_path / f"zero{suffix}"
    path.write_bytes(struct.pack("<2I", rows, columns))
    message = refusal(path)
    assert counts(message) == (8, [8 + SUFFIXES[suffix].dtype.itemsize])
    assert f"{rows} rows and {columns} columns" in message


def test_bin_with_truncated_wide_header_file(tmp_path: Path) -> None:
    path = tmp_path / "wide.fbin"
    path.write_bytes(struct.pack("<2Q", 3, 2) + bytes(20))
    message = refusal(path)
    assert counts(message) == (36, [40])
    assert "16-byte header: 3 rows, 2 columns" in message
