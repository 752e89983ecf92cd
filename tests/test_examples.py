"""The examples run and print what they promise, at a size for tests."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import tonari
from tests.helpers.checks import assert_same_neighbors
from tonari import io
from tonari.metrics.reference import brute

EXAMPLES = Path(__file__).parents[1] / "examples"


def example(name: str) -> ModuleType:
    """An example as a module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_catalogue(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    catalogue = example("catalogue")
    monkeypatch.setattr(catalogue, "ROWS_AT_ONCE", 300)
    catalogue.main(["--spectra", "2000", "--images", "1000", "-k", "7", "--folder", str(tmp_path)])
    said = capsys.readouterr().out
    assert "2,000 galaxies with spectra, 1,000 without" in said
    assert re.search(r"7 neighbours each, file to file, in .* s: [\d,]+ queries a second", said)
    spread, all_of_them = map(float, re.search(r"error ([\d.]+) .* off by ([\d.]+)\n", said).groups())  # type: ignore[union-attr]
    assert 0 < spread < all_of_them / 2
    points, queries = np.load(tmp_path / "spectra.npy"), np.load(tmp_path / "images.npy")
    found = tonari.Neighbors(*map(np.array, io.read_ground_truth(tmp_path / "neighbours.ibin")))
    assert_same_neighbors(found, brute(queries, points, 7))
    known = catalogue.write_catalogue(tmp_path / "again.npy", 2000, seed=1_000_000)
    assert np.array_equal(np.load(tmp_path / "again.npy"), points)
    np.testing.assert_array_equal(catalogue.estimate(found, known), known[found.indices].mean(axis=1))
