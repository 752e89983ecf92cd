"""tonari pairs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.command_line import as_json, refused, run
from tonari import io

POINTS, QUERIES = checks.gaussian(300, 8, seed=1), checks.gaussian(50, 8, seed=2)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with points.fbin and queries.npy."""
    io.write(tmp_path / "points.fbin", POINTS)
    io.write(tmp_path / "queries.npy", QUERIES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


SEARCH = ("search", "points.fbin", "queries.npy", "-o", "near.npz")
PAIRS = ("pairs", "points.fbin", "-o", "pairs.npy")


def test_pairs() -> None:
    facts = as_json(*PAIRS, "--radius", "2")
    truth, found = tonari.pairs(POINTS, 2.0), np.load("pairs.npy")
    assert isinstance(truth, tonari.Pairs)
    assert facts["pairs"] == len(found) == len(truth.left) > 0
    assert found["right"].tolist() == truth.right.tolist()
    assert "pairs of 300 points" in run(*PAIRS, "--radius", "2", "--force").stdout


def test_other_outputs_are_refused() -> None:
    assert "name a .npz file, or give -k" in refused(*SEARCH[:4], "near/", "--radius", "1", code=2)
    assert "expected .npz" in refused(*SEARCH[:4], "near.ibin", "--radius", "1", code=2)
    assert "expected .npy" in refused(*PAIRS[:3], "pairs.npz", "--radius", "1", code=2)
