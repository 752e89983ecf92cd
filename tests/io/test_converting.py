"""Files converted to another format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tonari.io import read, tuning
from tonari.io.converting import convert


def test_blocks_and_pieces_of_other_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "BLOCK_LINES", 4)
    monkeypatch.setattr(tuning, "PIECE_BYTES", 7 * 8)  # pieces of 7 rows
    values = np.arange(33.0)[:, None]
    (tmp_path / "a.csv").write_text("\n".join(map(str, values.ravel())))
    convert(tmp_path / "a.csv", tmp_path / "a.npy", key=None, dtype=None, done=_done)
    np.testing.assert_array_equal(read(tmp_path / "a.npy"), values, strict=True)


def _done(rows: int, total: int) -> None:
    assert 0 < rows <= total


@pytest.mark.parametrize(
    ("value", "given", "wanted", "rounded"),
    [
        (300, np.int32, np.uint8, True),
        (-1, np.int32, np.uint8, True),
        (-1, np.int8, np.uint8, True),  # wraps to 255, and back
        (200, np.uint8, np.int8, True),
        (0.5, np.float64, np.uint8, True),
        (np.nan, np.float64, np.int8, True),
        (1e39, np.float64, np.float32, True),
        (2.0**31, np.float64, np.int32, True),
        (0.1, np.float64, np.float32, False),
        (2**24 + 1, np.int32, np.float32, False),
    ],
)
def test_a_value_that_would_change_is_refused(
    tmp_path: Path, value: float, given: Any, wanted: Any, rounded: bool
) -> None:
    suffix = {np.uint8: ".u8bin", np.int8: ".i8bin", np.float32: ".fbin", np.int32: ".ibin"}[wanted]
    source, target, array = tmp_path / "a.npy", tmp_path / f"b{suffix}", np.ones((5, 3), given)
    array[3, 2] = value
    np.save(source, array)
    target.write_bytes(b"precious")
    with pytest.raises(ValueError, match=r"row 3, column 2: .* is not a value of"):
        convert(source, target, key=None, dtype=np.dtype(wanted) if rounded else None, done=_done)
    assert target.read_bytes() == b"precious"
    if not rounded:
        convert(source, target, key=None, dtype=np.dtype(wanted), done=_done)
        np.testing.assert_array_equal(read(target), array.astype(wanted), strict=True)
