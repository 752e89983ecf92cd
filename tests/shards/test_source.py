"""Sources of points: files that change, and sources that are sent to workers."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.shards import (
    ROUTES,
    SMALL,
    by_shards,
    small,
    small_points,
    stopped,
)
from tonari.shards.directory.workspace import Workspace
from tonari.shards.source import FileSource


@pytest.fixture
def points(tmp_path: Path) -> Path:
    return small_points(tmp_path)


@pytest.mark.parametrize("method", ROUTES)
def test_a_file_that_changed_before_it_was_resumed(
    method: str, points: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped(points, tmp_path / "graph", method, 2, monkeypatch)
    about = points.stat()
    os.utime(points, ns=(about.st_atime_ns, about.st_mtime_ns + 1))  # the same values
    with pytest.raises(ValueError, match="graph: holds a graph of files that have changed since"):
        small(points, tmp_path / "graph", method)
    os.utime(points, ns=(about.st_atime_ns, about.st_mtime_ns))
    points.rename(tmp_path / "elsewhere.npy")
    with pytest.raises(FileNotFoundError, match=r"points\.npy"):
        small(points, tmp_path / "graph", method)
    (tmp_path / "elsewhere.npy").rename(points)
    small(points, tmp_path / "graph", method)


@pytest.mark.parametrize("method", ROUTES)
@pytest.mark.parametrize("gone", [False, True])
def test_a_file_that_changes_between_tasks(
    gone: bool, method: str, points: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_shards(monkeypatch, 20 if method == "exact" else SMALL[method])
    finish, done = Workspace.finish, []

    def meddle(files: Workspace, task: str, made: Any) -> None:
        finish(files, task, made)
        done.append(task)
        if len(done) == 2:
            if gone:
                points.rename(tmp_path / "elsewhere.npy")
            else:
                os.utime(points, ns=(0, 0))

    monkeypatch.setattr(Workspace, "finish", meddle)
    error, message = (FileNotFoundError, "is gone; put it back") if gone else (ValueError, "has changed since")
    with pytest.raises(error, match=rf"points\.npy: {message}"):
        small(points, tmp_path / "graph", method)
    assert len(done) < 7  # the ranges in progress, and no more


def test_a_source_that_travels_is_compared(points: Path) -> None:
    source = FileSource([points])
    text = pickle.dumps(source)
    assert len(text) < 1000  # no values
    np.testing.assert_array_equal(pickle.loads(text).rows(3, 9), source.rows(3, 9))
    os.utime(points, ns=(0, 0))
    with pytest.raises(ValueError, match=r"points\.npy: has changed since"):
        pickle.loads(text)


@pytest.mark.parametrize("name", ["none.fvecs", "none.csv", "blank.tsv", "none.npy"])
def test_a_file_without_rows_is_refused(name: str, tmp_path: Path) -> None:
    path, points = tmp_path / name, tmp_path / "points.npy"
    np.save(points, checks.gaussian(40, 3))
    if name == "none.npy":
        np.save(path, np.empty((0, 3), np.float32))
    else:
        path.write_text("\n" if name.startswith("blank") else "")
    for source, queries in ((points, path), (path, points), ([points, path], points)):
        with pytest.raises(ValueError, match=rf"{name}: has no rows, expected at least one"):
            tonari.build_neighbors(source, queries, 2, tmp_path / "found")
