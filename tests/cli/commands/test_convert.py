"""tonari convert keeps every bit, or asks first."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.helpers import checks
from tests.helpers.command_line import as_json, refused, run
from tonari import io
from tonari.io import tuning

N, D, K = 60, 5, 4


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with points.fbin."""
    io.write(tmp_path / "points.fbin", checks.gaussian(N, D, seed=1))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".hdf5", ".fvecs", ".fbin"])
def test_convert_keeps_every_bit(suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "PIECE_BYTES", 7 * D * 4)  # pieces of 7 rows
    facts = as_json("convert", "points.fbin", f"other{suffix}")
    assert (facts["rows"], facts["columns"], facts["dtype"]) == (N, D, "float32")
    np.testing.assert_array_equal(io.read(f"other{suffix}"), io.read("points.fbin"))
    assert "exists already; --force" in refused("convert", "points.fbin", f"other{suffix}", code=1)
    run("convert", f"other{suffix}", "back.npy", "--progress")
    np.testing.assert_array_equal(np.load("back.npy"), io.read("points.fbin"))


def test_convert_of_text_asks_before_it_rounds() -> None:
    Path("a.csv").write_text("x,y\n0.5,0.1\n1,2\n")
    assert "row 0, column 1: 0.1 is not a value of float32; --dtype float32 rounds" in refused(
        "convert", "a.csv", "a.fbin", code=1
    )
    assert not Path("a.fbin").exists()
    run("convert", "a.csv", "a.fbin", "--dtype", "float32")
    np.testing.assert_array_equal(io.read("a.fbin"), np.array([[0.5, 0.1], [1, 2]], np.float32))
    assert "holds float32, not float64" in refused("convert", "a.csv", "b.fbin", "--dtype", "float64", code=1)
    assert "'.csv'" in refused("convert", "a.fbin", "b.csv", code=2)
