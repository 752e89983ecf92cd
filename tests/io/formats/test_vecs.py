"""Damaged .fvecs files and similar formats."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tests.helpers.files import counts, points_file, refusal
from tonari.io import (
    SUFFIXES,
    describe,
    read,
    tuning,
)
from tonari.io.formats import vecs


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
    path = points_file(tmp_path, suffix, (13, 5))
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
    path = points_file(tmp_path, ".fvecs")
    path = path.rename(path.with_suffix(".bvecs"))
    assert "Check that the values are uint8 (the suffix decides)" in refusal(path)


def test_vecs_truncated_in_its_only_row(tmp_path: Path) -> None:
    path = points_file(tmp_path, ".fvecs", (1, 5))
    path.write_bytes(path.read_bytes()[:10])
    assert counts(refusal(path)) == (10, [24])
