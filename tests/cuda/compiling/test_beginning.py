"""Triton's key, and the files that are hashed for it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.helpers.devices import needs_torch

pytestmark = needs_torch


def test_tritons_key_is_the_same_if_its_library_is_hashed_in_one_piece() -> None:
    from triton.runtime import cache

    from tonari.cuda.compiling import beginning

    compute = cache.triton_key.__wrapped__
    assert beginning._key(cache) == compute()
    assert "open" not in vars(cache)


def test_a_large_file_is_read_in_one_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tonari.cuda import tuning
    from tonari.cuda.compiling import beginning

    def triton_key() -> str:
        with module.open(path, "rb") as file:
            pieces.extend(bytes(piece) for piece in iter(lambda: file.read(2), b""))
        return "key"

    path, module = tmp_path / "library", SimpleNamespace(triton_key=triton_key)
    path.write_bytes(b"abcdef")
    for least, expected in ((7, [b"ab", b"cd", b"ef"]), (6, [b"abcdef"])):
        pieces: list[bytes] = []
        monkeypatch.setattr(tuning, "WHOLE_BYTES", least)
        assert beginning._key(module) == "key"
        assert pieces == expected
    module.triton_key = lambda: 1 // 0
    with pytest.raises(ZeroDivisionError):
        beginning._key(module)
    assert not hasattr(module, "open")
