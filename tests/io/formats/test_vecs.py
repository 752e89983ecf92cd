"""Damaged .fvecs files and their like."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tonari.io import (
    SUFFIXES,
    describe,
    read,
    tuning,
    write,
)
from tonari.io.formats import vecs


def make(tmp_path: Path, suffix: str, shape: tuple[int, int] = (6, 5)) -> Path:
    path = tmp_path / f"points{suffix}"
    write(path, np.ones(shape, SUFFIXES[suffix].dtype or np.float32))
    return path


def refusal(path: Path, call: Any = read, **options: Any) -> str:
    """The message of the ValueError that both reading and describing raise."""
    with pytest.raises(ValueError, match=re.escape(str(path))) as caught:
        call(path, **options)
    return str(caught.value)


def counts(message: str) -> tuple[int, list[int]]:
    """(bytes found, bytes expected) as the message says them."""
    found = re.search(r"found (\d+) bytes, expected ((?:at least )?(\d+)(?: or (\d+))?) bytes?", message)
    assert found, message
    return int(found[1]), [int(number) for number in found.groups()[2:] if number]


@pytest.mark.parametrize("columns", [0, -1])
@pytest.mark.parametrize("suffix", vecs.DTYPES)
def test_vecs_without_columns(tmp_path: Path, suffix: str, columns: int) -> None:
    path = tmp_path / f"zero{suffix}"
    path.write_bytes(struct.pack("<3i", columns, columns, columns))
    message = refusal(path)
    assert counts(message) == (12, [4 + SUFFIXES[suffix].dtype.itemsize])
    assert f"row 0 says {columns} columns" in message


@pytest.mark.parametrize("row", [1, 6, 12])
@pytest.mark.parametrize("suffix", vecs.DTYPES)
def test_vecs_row_of_another_width(tmp_path: Path, suffix: str, row: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "CHECKED_ROWS", 4)  # so that rows 6 and 12 are in later parts of the comparison
    path = make(tmp_path, suffix, (13, 5))
    itemsize = SUFFIXES[suffix].dtype.itemsize
    stride = 4 + 5 * itemsize
    content = bytearray(path.read_bytes())
    content[row * stride : row * stride + 4] = struct.pack("<i", 7)
    path.write_bytes(content)
    for call in (read, describe):
        message = refusal(path, call)
        assert f"row {row}, at byte {row * stride} of {13 * stride}, says 7 columns" in message
        assert f"found a row of {4 + 7 * itemsize} bytes, expected {stride} bytes" in message


def test_vecs_of_another_type_is_told(tmp_path: Path) -> None:
    path = make(tmp_path, ".fvecs")
    path = path.rename(path.with_suffix(".bvecs"))
    assert "Check that the values are uint8 (the suffix decides)" in refusal(path)


def test_vecs_truncated_in_its_only_row(tmp_path: Path) -> None:
    path = make(tmp_path, ".fvecs", (1, 5))
    path.write_bytes(path.read_bytes()[:10])
    assert counts(refusal(path)) == (10, [24])
