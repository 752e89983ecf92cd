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


def test_beyond_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    beyond = example("beyond_memory")
    beyond.main(["--points", "9000", "-k", "5", "--memory", "12MB", "--out", str(tmp_path / "graph")])
    said = capsys.readouterr().out
    assert "9,000 points of 64 dimensions: 2 MB, and a budget of 12MB" in said
    assert re.search(r"interrupted after .* s, with [1-9]\d* tasks done", said)
    assert "resumed, and complete after" in said
    points = beyond.Drawn(9000).rows(0, 9000)
    assert np.array_equal(beyond.Drawn(9000).rows(4000, 8500), points[4000:8500])
    graph = tonari.KNNGraph.open(tmp_path / "graph")
    rows = np.arange(0, 9000, 90)
    assert_same_neighbors(
        tonari.Neighbors(graph.distances[rows], graph.indices[rows]), brute(points[rows], points, 5, self_ids=rows)
    )


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
