"""Damaged and hostile .npz files."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers.files import counts, damage, points_file, refusal
from tonari.io import (
    describe,
    read,
)


def test_npz_keys(tmp_path: Path) -> None:
    path = tmp_path / "two.npz"
    np.savez(path, base=np.ones((2, 2)), queries=np.ones((1, 2)))
    for call in (read, describe):
        assert "found 2 arrays, expected one. Choose with key=: base, queries" in refusal(path, call)
        assert "no array 'bass'. Choose with key=: base, queries" in refusal(path, call, key="bass")
    np.savez(path)
    assert "found 0 arrays" in refusal(path)


@pytest.mark.parametrize("keep", [10, -1, 200])
def test_npz_truncated(tmp_path: Path, keep: int) -> None:
    path = points_file(tmp_path, ".npz")
    path.write_bytes(path.read_bytes()[:keep])
    size = path.stat().st_size
    assert f"found {size} bytes, expected a whole zip archive with its 22-byte end record" in refusal(path)


def test_npz_with_a_flipped_bit(tmp_path: Path) -> None:
    path = points_file(tmp_path, ".npz", (100, 100))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert "Bad CRC-32" in refusal(path)


def test_npz_with_damaged_compression(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("base.npy", bytes(1000))
    content = bytearray(path.read_bytes())
    content[30 + len("base.npy")] = 0b111  # the first block has type 3, which does not exist
    path.write_bytes(content)
    message = refusal(path)
    assert f"found {len(content)} bytes, expected a whole zip archive" in message
    assert "invalid block type" in message


def test_npz_member_that_ends_after_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    buffer = io.BytesIO()
    np.save(buffer, np.ones((3, 2)))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("base.npy", buffer.getvalue().replace(b"(3, 2), }   ", b"(3000, 2), }"))
        member = archive.infolist()[0]
        member.file_size = member.compress_size = 128 + 3000 * 2 * 8
    assert f"found {path.stat().st_size} bytes, expected a whole zip archive" in refusal(path)


def test_npz_member_that_lies(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    np.save(buffer, np.ones((3, 2)))
    path = tmp_path / "lie.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("base.npy", buffer.getvalue()[:-5])
    message = refusal(path)
    assert counts(message) == (128 + 48 - 5, [128 + 48])
    assert "array 'base'" in message


def _npy(description: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(description) + 1) + description.encode() + b"\n"


def _claims(path: Path, name: str, dtype: str, *others: tuple[str, Any]) -> None:
    """Write an archive of some hundred bytes whose array claims 128 TiB, in its own header and in the archive's."""
    head = _npy(f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({1 << 44}, 2)}}")
    with zipfile.ZipFile(path, "w") as archive:
        for other, value in others:
            buffer = io.BytesIO()
            np.save(buffer, value)
            archive.writestr(f"{other}.npy", buffer.getvalue())
        archive.writestr(f"{name}.npy", head + bytes(8))
        archive.infolist()[-1].file_size = len(head) + (1 << 47)


def test_npz_that_claims_more_than_any_file(tmp_path: Path) -> None:
    path = tmp_path / "lie.npz"
    _claims(path, "arr_0", "<f4")
    error = damage(path)
    assert error.found == path.stat().st_size
    assert f"its values take {1 << 47} bytes in memory" in str(error)
    about = np.array('{"format": "tonari.KNNGraph", "version": 1}')
    _claims(path, "indices", "<i4", ("about", about))
    error = damage(path, tonari.KNNGraph.load)
    assert "lie.npz: not a whole KNNGraph file: array 'indices': found" in str(error)


def test_npz_of_an_unknown_compression_or_encrypted(tmp_path: Path) -> None:
    path = points_file(tmp_path, ".npz")
    whole = path.read_bytes()
    entry = whole.rfind(b"PK\x01\x02")
    for here, there, value, said in ((entry + 10, 8, 99, "not supported"), (entry + 8, 6, 1, "is encrypted")):
        content = bytearray(whole)
        for place in (here, there):
            struct.pack_into("<H", content, place, value)
        path.write_bytes(content)
        for call in (read, describe):
            assert said in str(damage(path, call))
    content = bytearray(whole)
    struct.pack_into("<I", content, entry + 42, 0xFFFFFFF0)  # the offset of the member
    path.write_bytes(content)
    damage(path)
