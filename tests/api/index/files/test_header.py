"""The header of an Index file is read back as written, and damage is detected."""

from __future__ import annotations

from pathlib import Path

import pytest

from tonari.api.index.files.header import ALIGNED, check_header, header_of, is_index, padded, read_header
from tonari.io import FileFormatError
from tonari.io.schema import whole


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "some.index"
    about = {"format": "some", "name": "é", "n": 3}
    header = header_of(about)
    assert len(header) % ALIGNED == 0
    path.write_bytes(header + b"block")
    assert read_header(path) == (about, len(header) + 5, len(header))
    assert is_index(path)
    assert not is_index(tmp_path)
    for at in (9, 13, 20, 40):
        path.write_bytes(header[:at] + bytes([header[at] ^ 1]) + header[at + 1 :])
        with pytest.raises(FileFormatError, match="its header is damaged"):
            read_header(path)


def test_what_all_headers_have() -> None:
    facts = {"metric": "euclidean", "dtype": "float32", "n": 4, "d": 2, "device": "cpu", "threads": None, "memory": 9}
    about = {"format": "a", "version": 1, **facts}
    check_header(about, "a", 1, {})
    for wrong, words in (
        ({"format": "b"}, "its format is 'b'"),
        ({"version": True}, "version is True"),
        ({"metric": "l2"}, "its metric is 'l2'"),
        ({"d": 0}, "its d is 0"),
        ({"next_id": 3}, "its next_id is 3, which 4 points exceed"),
    ):
        with pytest.raises(ValueError, match=words):
            check_header(about | wrong, "a", 1, {}, next_id=whole(0))
    assert padded(b"1" * 65) == b"1" * 65 + bytes(63)
