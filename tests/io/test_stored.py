"""Rows in a file are found again at their place, and changes of the file are detected."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tonari import io
from tonari.io.stored import StoredRows, forget_pages

ROWS = np.arange(60, dtype=np.float32).reshape(20, 3)


@pytest.mark.parametrize("suffix", [".npy", ".fbin", ".fvecs"])
def test_rows_are_mapped_again(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"rows{suffix}"
    io.write(path, ROWS)
    whole: Any = io.read(path)
    for rows in (whole, whole[3:], whole[2:9:3], np.asarray(whole)[1:]):
        stored = StoredRows.of(rows)
        assert stored is not None
        assert (stored.path, stored.n, stored.d) == (str(path), len(rows), 3)
        again = stored.mapped()
        assert again.tolist() == rows.tolist()
        assert not again.flags.writeable
        forget_pages(rows)
        assert again.tolist() == rows.tolist()


def test_a_single_row_of_a_reversed_map_has_the_pitch_of_a_row(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", ROWS[:1])
    stored = StoredRows.of(np.load(tmp_path / "rows.npy", mmap_mode="r")[::-1])
    assert stored is not None
    assert stored.pitch == 12
    assert stored.mapped().tolist() == ROWS[:1].tolist()


def test_rows_that_are_in_no_file(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", ROWS)
    own = np.load(tmp_path / "rows.npy", mmap_mode="c")  # changes of this array are not written to the file
    own[0] = 7
    for rows in (ROWS, own):
        assert StoredRows.of(rows) is None
        forget_pages(rows)
    assert own[0].tolist() == [7, 7, 7]


def test_changes_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.npy"
    np.save(path, ROWS)
    stored = StoredRows.of(np.load(path, mmap_mode="r"))
    assert stored is not None
    assert stored.changed() == ""
    for earlier in (1, -1):
        os.utime(path, ns=(stored.time, stored.time - earlier))
        assert stored.changed() == "was written to"
    np.save(path, ROWS[1:])
    assert stored.changed().startswith("has ")
    path.unlink()
    assert stored.changed() == "is gone"
