"""The directory of a build: locks, checksums, links, and files of other programs."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.shards import (
    COMPLETE,
    assert_exact,
    by_shards,
    contents,
    small,
    small_points,
    stopped,
)
from tonari.shards.directory.disk import Lock
from tonari.shards.directory.done import Done
from tonari.shards.directory.workspace import Workspace


@pytest.fixture
def points(tmp_path: Path) -> Path:
    return small_points(tmp_path)


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
        pass  # the lock was released


def test_checksums_are_crc_32_of_little_endian_rows(points: Path, tmp_path: Path) -> None:
    graph = small(points, tmp_path / "graph")
    ((begin, end, indices, distances),) = json.loads((tmp_path / "graph" / "manifest.json").read_text())["rows"]
    assert (begin, end) == (0, 240)
    assert indices == zlib.crc32(np.ascontiguousarray(graph.indices).astype("<i4").tobytes())
    assert distances == zlib.crc32(np.ascontiguousarray(graph.distances).astype("<f4").tobytes())


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
    if name in ("lock", "manifest.json"):  # they name the owner of the directory
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


def test_headers_of_parts_are_read_by_one_thread_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks are read and written by different threads; before Python 3.11.8 two parsers interfere with each other."""
    names = [f"part-{number}" for number in range(6)]
    for folder in ("parts", "done"):
        (tmp_path / folder).mkdir()
    written = Workspace(tmp_path, 9, 2, np.dtype(np.float32), 9)
    written.finish("all", Done({name: written.save(name, np.arange(9)) for name in names}))
    now, most, load = 0, 0, np.load

    def noted(*args: Any, **given: Any) -> Any:
        nonlocal now, most
        now += 1
        most = max(most, now)
        time.sleep(0.01)  # long enough for another thread to arrive
        now -= 1
        return load(*args, **given)

    monkeypatch.setattr(np, "load", noted)
    found = Workspace(tmp_path, 9, 2, np.dtype(np.float32), 9)
    with ThreadPoolExecutor(3) as threads:
        assert [part.tolist() for part in threads.map(lambda name: found.load(name, "all"), names)] == [
            list(range(9))
        ] * 6
    assert most == 1


@pytest.mark.parametrize("threads", [1, 3])
def test_parts_are_removed_by_several_threads(threads: int, tmp_path: Path) -> None:
    for folder in ("parts", "done"):
        (tmp_path / folder).mkdir()
    files = Workspace(tmp_path, 9, 2, np.dtype(np.float32), 9)
    names = [f"part-{number}" for number in range(6)]
    files.finish("all", Done(files.save_all({name: np.arange(9) for name in names}, threads)))
    assert [files.load(name, "all").tolist() for name in names] == [list(range(9))] * 6
    files.drop_all([*names[:4], "part-that-is-gone"], threads)
    assert sorted(path.stem for path in (tmp_path / "parts").iterdir()) == names[4:]
    with pytest.raises(FileNotFoundError):
        files.load(names[0], "all")
    assert files.load(names[5], "all").tolist() == list(range(9))
