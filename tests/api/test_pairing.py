"""Pairs within a radius, in memory and in files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tonari.api import tuning

POINTS = np.concatenate([checks.gaussian(150, 6), checks.gaussian(50, 6)])


@pytest.mark.parametrize("method", ["exact", "kdtree"])
def test_pairs_in_a_file(tmp_path: Path, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, rows in (("PAIRS_FIRST_ROWS", 3), ("PAIRS_LEAST_ROWS", 2), ("PAIRS_HELD", 400)):
        monkeypatch.setattr(tuning, name, rows)
    out = tmp_path / "pairs.npy"
    assert tonari.pairs(POINTS, 2.0, out=out, method=method) == out
    found, truth = np.load(out, mmap_mode="r"), tonari.pairs(POINTS, 2.0)
    assert isinstance(truth, tonari.Pairs)
    for name, part in zip(("left", "right", "distance"), truth, strict=True):
        assert found[name].dtype == part.dtype
        assert found[name].tolist() == part.tolist()
    assert list(tmp_path.iterdir()) == [out]
    tonari.pairs(POINTS, 0.0, closed=False, out=out)
    assert np.load(out).shape == (0,)


def test_a_file_of_pairs_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    monkeypatch.setattr(tuning, "PAIRS_FIRST_ROWS", 50)
    monkeypatch.setattr(tuning, "PAIRS_GROWTH", 1)

    def interrupt(done: int, total: int) -> None:
        if done >= 100:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tonari.pairs(POINTS, 2.0, out=tmp_path / "pairs.npy", progress=interrupt)
    assert not list(tmp_path.iterdir())


def test_pairs_refuse_a_radius_for_each_point_and_other_files() -> None:
    with pytest.raises(ValueError, match="expected one number"):
        tonari.pairs(POINTS, np.ones(200))
    with pytest.raises(ValueError, match=r"expected \.npy"):
        tonari.pairs(POINTS, 1.0, out="pairs.npz")
