"""The header of an Index file is read back as written, and damage is detected."""

from __future__ import annotations

from pathlib import Path

import pytest

from tonari.api.index.files.header import ALIGNED, check_version, header_of, is_index, padded, read_header
from tonari.io import FileFormatError


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "some.index"
    about = {"format": "some", "name": "é", "n": 3}
    whole = header_of(about)
    assert len(whole) % ALIGNED == 0
    path.write_bytes(whole + b"block")
    assert read_header(path) == (about, len(whole) + 5, len(whole))
    assert is_index(path)
    assert not is_index(tmp_path)
    for at in (9, 13, 20, 40):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(FileFormatError, match="its header is damaged"):
            read_header(path)


def test_versions() -> None:
    check_version({"format": "a", "version": 1}, "a", 1)
    for about, words in (({"format": "b"}, "its format is 'b'"), ({"format": "a", "version": True}, "version is True")):
        with pytest.raises(ValueError, match=words):
            check_version(about, "a", 1)
    assert padded(b"1" * 65) == b"1" * 65 + bytes(63)
