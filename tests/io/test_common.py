"""Checks that all formats share: the kind of a file, and the memory that its values may take."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import tonari
from tests.helpers.files import damage, points_file
from tonari.io import (
    SUFFIXES,
    describe,
    read,
    read_ground_truth,
)


def test_the_exception_says_what_is_there_and_what_should_be(tmp_path: Path) -> None:
    path = points_file(tmp_path, ".fbin")
    path.write_bytes(path.read_bytes()[:-5])
    error = damage(path)
    assert (error.found, error.expected) == (8 + 4 * 30 - 5, 8 + 4 * 30)
    again = pickle.loads(pickle.dumps(error))  # from a worker process
    assert (str(again), again.path, again.found, again.expected) == (str(error), path, error.found, error.expected)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_pipe_is_not_waited_for(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"pipe{suffix}"
    os.mkfifo(path)
    for call in (read, describe, tonari.KNNGraph.load):
        assert "a pipe" in str(damage(path, call))


def _expanding(path: Path) -> None:
    """Write a small file that expands to 80,000,000 bytes of values."""
    if path.suffix == ".npz":
        np.savez_compressed(path, np.zeros((10_000, 1000)))
    else:
        with h5py.File(path, "w") as file:
            file.create_dataset("train", (10_000, 1000), "f8")  # nothing is written, so all values are 0


@pytest.mark.parametrize("suffix", [".npz", ".hdf5"])
def test_values_far_beyond_the_file_are_refused_unless_allowed(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"a{suffix}"
    _expanding(path)
    size = path.stat().st_size
    error = damage(path)
    assert (error.found, error.expected) == (size, "at least 800000 bytes")
    most = -(-80_000_000 // size)
    assert "take 80000000 bytes in memory, and at most 100 times the file are read. " in str(error)
    assert f"max_expansion={most} " in str(error)
    damage(path, max_expansion=most - 1)
    assert read(path, max_expansion=most).nbytes == 80_000_000
    assert describe(path).rows == 10_000
    monkeypatch.setenv("TONARI_MAX_EXPANSION", "inf")
    assert read(path).nbytes == 80_000_000
    damage(path, max_expansion=100)


def test_small_values_are_read_however_small_their_file(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez_compressed(path, np.zeros((8000, 1000), np.int8))
    assert path.stat().st_size < 80_000
    assert not read(path).any()


@pytest.mark.parametrize("given", [0, 0.5, -1, float("nan"), "many", True, [3]])
def test_limits_that_are_none(tmp_path: Path, given: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = points_file(tmp_path, ".npz")
    said = "expected a number of at least 1"
    for call in (read, read_ground_truth, tonari.KNNGraph.load):
        with pytest.raises(ValueError, match=f"^max_expansion=.*{said}"):
            call(path, max_expansion=given)
    monkeypatch.setenv("TONARI_MAX_EXPANSION", str(given))
    if given is not True:
        with pytest.raises(ValueError, match=f"^TONARI_MAX_EXPANSION=.*{said}"):
            read(path)
