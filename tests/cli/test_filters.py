"""tonari search --where: a mask from a file."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.command_line import as_json, refused
from tonari import io

POINTS, QUERIES = checks.gaussian(80, 4, seed=1), checks.gaussian(10, 4, seed=2)
MASK = np.arange(80) % 20 == 0
SEARCH = ("search", "points.npy", "queries.npy", "--where", "mask.npy")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with points, queries and a mask of four points."""
    io.write(tmp_path / "points.npy", POINTS)
    io.write(tmp_path / "queries.npy", QUERIES)
    np.save(tmp_path / "mask.npy", MASK)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_is_found_is_allowed() -> None:
    as_json(*SEARCH, "-k", "5", "-o", "found.npz")
    truth = tonari.search(QUERIES, POINTS, 5, where=MASK)
    with np.load("found.npz") as found:
        assert found["indices"].tolist() == truth.indices.tolist()
        assert found["distances"].tobytes() == truth.distances.tobytes()
    assert (truth.indices[:, 4] == -1).all()
    as_json(*SEARCH, "--radius", "2", "-o", "near.npz")
    with np.load("near.npz") as near:
        assert near["indices"].tolist() == tonari.radius_search(QUERIES, POINTS, 2.0, where=MASK).indices.tolist()


def test_what_is_refused() -> None:
    for output in ("found.ibin", "found/"):
        assert "cannot be combined with --where; name a .npz file" in refused(*SEARCH, "-k", "5", "-o", output, code=2)
    np.save("mask.npy", np.arange(80))
    assert "mask.npy: expected a .npy file of a bool array" in refused(*SEARCH, "-k", "5", "-o", "found.npz", code=1)
    np.save("mask.npy", MASK[:9])
    assert "where: expected shape (80,) or (10, 80)" in refused(*SEARCH, "-k", "5", "-o", "found.npz", code=1)


@pytest.mark.parametrize("given", [("-k", "5"), ("--radius", "2")])
def test_a_mask_that_is_no_file_is_not_waited_for(given: tuple[str, str]) -> None:
    Path("mask.npy").unlink()
    os.mkfifo("mask.npy")
    said = refused(*SEARCH, *given, "-o", "found.npz", code=1)
    assert "mask.npy: found 0 bytes, expected a regular file: this is a device, a pipe or a socket" in said
    assert not Path("found.npz").exists()


@pytest.mark.parametrize("contents", [b"", b"mask", b"\x93NUMPY\x01\x00"])
def test_a_mask_that_is_damaged_is_named(contents: bytes) -> None:
    Path("mask.npy").write_bytes(contents)
    assert f"mask.npy: found {len(contents)} bytes" in refused(*SEARCH, "-k", "5", "-o", "found.npz", code=1)
