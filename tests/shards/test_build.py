"""Directories: what a resumed build refuses, and what it leaves alone."""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers.checks import gaussian
from tests.helpers.shards import (
    COMPLETE,
    ROUTES,
    SMALL,
    assert_exact,
    by_shards,
    clustered,
    contents,
    small,
    small_points,
    stopped,
)
from tonari.core.errors import BudgetExceeded
from tonari.shards import local
from tonari.shards.source import FileSource
from tonari.shards.state import read_state
from tonari.shards.workspace import Lock, Workspace


@pytest.fixture
def points(tmp_path: Path) -> Path:
    return small_points(tmp_path)


# ---------------------------------------------------------------- what a resumed build refuses


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k": 5}, "k=4, not 5"),
        ({"metric": "l1"}, "metric='euclidean', not 'l1'"),
        ({"method": "auto"}, "method='exact', not 'auto'"),
        ({"seed": 1}, "seed=0, not 1"),
    ],
)
@pytest.mark.parametrize("complete", [False, True])
def test_another_request(
    complete: bool, change: dict[str, Any], message: str, points: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "graph"
    if complete:
        small(points, out)
    else:
        stopped(points, out, "exact", 2, monkeypatch)
    before = {name: (out / name).read_bytes() for name in contents(out)}
    given: dict[str, Any] = {"k": 4, "method": "exact", "threads": 1} | change
    replacing = "overwrite=True" if complete else "resume=False"
    said = rf"graph: holds a graph of {message}; name another directory, or use {replacing} \(--force\)"
    with pytest.raises(ValueError, match=said):
        tonari.build_graph(points, out=out, **given)
    if complete:  # starting over replaces no finished graph either
        with pytest.raises(ValueError, match=said):
            tonari.build_graph(points, out=out, **given, resume=False)
    assert {name: (out / name).read_bytes() for name in contents(out)} == before
    made = tonari.build_graph(points, out=out, **given, overwrite=True)
    assert (made.k, made.metric) == (given["k"], given.get("metric", "euclidean"))


def age(out: Path) -> None:
    """Give a directory the version of format that earlier releases wrote."""
    manifest = out / "manifest.json"
    manifest.write_text(re.sub(r'"version": \d+', '"version": 1', manifest.read_text()))


@pytest.mark.parametrize("route", ["exact", "clusters"])
def test_what_an_earlier_release_left_unfinished(
    route: str, points: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lists were drawn and computed in another way: they are not mixed with those of this release."""
    truth, out = small(points, tmp_path / "whole", route), tmp_path / "graph"
    stopped(points, out, route, 2, monkeypatch)
    age(out)
    before = {name: (out / name).read_bytes() for name in contents(out)}
    said = (
        rf"{out}: holds an unfinished graph of an earlier release, whose results would differ from those of this one; "
        r"name another directory, or use resume=False \(--force\)"
    )
    with pytest.raises(ValueError, match=said):
        small(points, out, route)
    assert {name: (out / name).read_bytes() for name in contents(out)} == before
    assert read_state(out).tasks_done == 2
    made = small(points, out, route, resume=False)
    assert all(np.array_equal(*pair) for pair in zip(made.lists.found, truth.lists.found, strict=True))


def test_searches_that_an_earlier_release_left_unfinished(
    points: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "found"
    with monkeypatch.context() as patched:
        patched.setattr(Workspace, "finish", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            tonari.build_neighbors(points, points, 4, out, threads=1)
    age(out)
    with pytest.raises(ValueError, match="found: holds an unfinished search of an earlier release"):
        tonari.build_neighbors(points, points, 4, out, threads=1)
    tonari.build_neighbors(points, points, 4, out, threads=1, overwrite=True)


def test_what_an_earlier_release_finished_stays(points: Path, tmp_path: Path) -> None:
    """And the manifest of a complete graph is one that an earlier release reads."""
    out = tmp_path / "graph"
    truth = small(points, out)
    assert '"version": 1' in (out / "manifest.json").read_text()
    age(out)
    for found in (tonari.KNNGraph.open(out), small(points, out)):
        assert np.array_equal(found.indices, truth.indices)


@pytest.mark.parametrize("complete", [False, True])
def test_other_points(complete: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, out = clustered(240), tmp_path / "graph"
    other = rows.copy()
    other[17, 3] += 1
    if complete:
        small(rows, out)
    else:
        stopped(rows, out, "exact", 2, monkeypatch)
    for given, message in (
        (other, r"other points \(their values differ\)"),
        (rows[:-1], "n=240, not 239"),
        (rows[:, :-1], "d=8, not 7"),
        (rows.astype(np.float64), "dtype='float32', not 'float64'"),
    ):
        with pytest.raises(ValueError, match=f"graph: holds a graph of {message}"):
            small(given, out)
    assert_exact(small(rows, out), rows, 4)
    assert_exact(small(other, out, overwrite=True), other, 4)


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
    assert len(done) < 7  # what was under way, and no more


def test_a_source_that_travels_is_compared(points: Path) -> None:
    source = FileSource([points])
    text = pickle.dumps(source)
    assert len(text) < 1000  # no values
    np.testing.assert_array_equal(pickle.loads(text).rows(3, 9), source.rows(3, 9))
    os.utime(points, ns=(0, 0))
    with pytest.raises(ValueError, match=r"points\.npy: has changed since"):
        pickle.loads(text)


def test_less_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, out = gaussian(3000, 16), tmp_path / "graph"
    stopped(rows, out, "exact", 2, monkeypatch, memory="20MB")
    needed = json.loads((out / "manifest.json").read_text())["plan"]["host_bytes"]
    with pytest.raises(
        BudgetExceeded, match=rf"begun with a plan for {needed} bytes of memory, now it is {needed - 1}"
    ):
        small(rows, out, memory=needed - 1)
    small(rows, out, memory=needed)
    small(rows, out, memory=1)  # nothing is left to do


# ---------------------------------------------------------------- the directory


def test_what_others_hold_there_is_not_touched(points: Path, tmp_path: Path) -> None:
    out = tmp_path / "graph"
    out.mkdir()
    (out / "thesis.txt").write_text("years of work")
    for resume in (True, False):
        with pytest.raises(FileExistsError, match=r"graph: is not empty \(thesis.txt and 0 more\) and holds no graph"):
            small(points, out, resume=resume)
    assert (out / "thesis.txt").read_text() == "years of work"
    assert set(contents(out)) <= {"thesis.txt", "lock"}


@pytest.mark.parametrize("complete", [False, True])
def test_starting_over_removes_only_what_builds_leave(
    complete: bool, points: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "graph"
    if complete:
        small(points, out)
    else:
        stopped(points, out, "clusters", "rows-000001", monkeypatch)
    (out / "notes.txt").write_text("mine")
    assert_exact(small(points, out, overwrite=True, metric="l1"), np.load(points), 4, "l1")
    assert contents(out) == sorted([*COMPLETE, "notes.txt"])
    assert (out / "notes.txt").read_text() == "mine"


def test_a_complete_graph_is_returned_without_work(
    points: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small(points, tmp_path / "graph")
    monkeypatch.setattr(local.LocalExecutor, "run", lambda *_: pytest.fail("it is complete"))
    assert_exact(small(points, tmp_path / "graph"), np.load(points), 4)


def test_two_builds_at_once(points: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, met = tmp_path / "graph", []
    by_shards(monkeypatch, 60)
    finish = Workspace.finish

    def meanwhile(files: Workspace, task: str, made: Any) -> None:
        for resume in (True, False):
            with pytest.raises(BlockingIOError, match="graph: another process is building a graph there"):
                small(points, out, resume=resume)
        met.append(task)
        finish(files, task, made)

    monkeypatch.setattr(Workspace, "finish", meanwhile)
    assert_exact(small(points, out), np.load(points), 4)
    assert len(met) == 4
    with Lock(out):
        pass  # it was released


def test_a_disk_without_room_is_said_before_the_start(
    points: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda folder: type("Usage", (), {"free": 1000}))
    with pytest.raises(
        OSError, match=r"the build needs \d+ bytes of disk at its peak, 1000 are free and \d+ are taken"
    ):
        small(points, tmp_path / "graph")
    monkeypatch.undo()
    assert_exact(small(points, tmp_path / "graph"), np.load(points), 4)


def test_checksums_are_crc_32_of_little_endian_rows(points: Path, tmp_path: Path) -> None:
    graph = small(points, tmp_path / "graph")
    ((begin, end, indices, distances),) = json.loads((tmp_path / "graph" / "manifest.json").read_text())["rows"]
    assert (begin, end) == (0, 240)
    assert indices == zlib.crc32(np.ascontiguousarray(graph.indices).astype("<i4").tobytes())
    assert distances == zlib.crc32(np.ascontiguousarray(graph.distances).astype("<f4").tobytes())


# ---------------------------------------------------------------- names in the directory that lead elsewhere


@pytest.mark.parametrize("name", ["indices.npy.part", "distances.npy.part", "done", "parts", "lock", "manifest.json"])
@pytest.mark.parametrize("dangling", [False, True])
def test_links_are_not_followed(
    name: str, dangling: bool, points: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, elsewhere = tmp_path / "graph", tmp_path / "elsewhere"
    stopped(points, out, "exact", 2, monkeypatch)
    if dangling:
        (out / name).unlink() if (out / name).is_file() else shutil.rmtree(out / name)
    else:
        (out / name).rename(elsewhere)
        if elsewhere.is_dir():
            (elsewhere / f".{name}.0123abcd.tmp").write_bytes(b"precious")
        else:
            elsewhere.write_bytes(elsewhere.read_bytes() + b"precious")
    (out / name).symlink_to(elsewhere)
    before = _bytes_of(elsewhere)
    said = rf"graph/{re.escape(name)}: exists and is a symbolic link, which is not followed; remove it"
    with pytest.raises(FileExistsError, match=said):
        small(points, out)
    assert _bytes_of(elsewhere) == before
    if name in ("lock", "manifest.json"):  # they say whose the directory is
        with pytest.raises(FileExistsError, match=said):
            small(points, out, resume=False)
        (out / name).unlink()
        if name == "manifest.json":
            return
    assert_exact(small(points, out, resume=False), np.load(points), 4)
    assert contents(out) == COMPLETE
    assert not any((out / name).is_symlink() for name in COMPLETE)
    assert _bytes_of(elsewhere) == before


def _bytes_of(path: Path) -> dict[str, bytes]:
    files = [path] if path.is_file() else sorted(path.glob("*"))
    return {file.name: file.read_bytes() for file in files}


def test_links_to_records_and_second_names_of_files_are_kept(
    points: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, elsewhere = tmp_path / "graph", tmp_path / "elsewhere"
    stopped(points, out, "exact", 2, monkeypatch)
    os.link(out / "indices.npy.part", elsewhere)
    before = elsewhere.read_bytes()
    with pytest.raises(FileExistsError, match=r"indices.npy.part: has another name as well \(a hard link\)"):
        small(points, out)
    assert elsewhere.read_bytes() == before
    (out / "indices.npy.part").unlink()
    (out / "indices.npy.part").write_bytes(before)
    target = tmp_path / "target"
    left = list((out / "done").iterdir())
    for path in left:
        path.unlink()
        path.symlink_to(target)
    with pytest.raises(FileExistsError, match=r"done/rows-\d+\.json: exists and is a symbolic link"):
        small(points, out)
    assert not target.exists()


@pytest.mark.parametrize("name", ["indices.npy.part", "lock", "manifest.json"])
def test_pipes_are_not_opened(name: str, points: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "graph"
    stopped(points, out, "exact", 2, monkeypatch)
    (out / name).unlink()
    os.mkfifo(out / name)
    with pytest.raises(FileExistsError, match=rf"graph/{re.escape(name)}: exists and is not a regular file"):
        small(points, out)
