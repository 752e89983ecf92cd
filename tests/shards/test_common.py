"""Shared parts of the routes: ids of the source in lists of parts of it."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.helpers.devices import HAS_TORCH, needs_torch
from tonari.core.results.neighbors import Neighbors
from tonari.shards import common, tuning
from tonari.shards.directory.done import Done
from tonari.shards.directory.workspace import Workspace

if HAS_TORCH:
    import torch


@pytest.mark.parametrize("there", [False, pytest.param(True, marks=needs_torch)])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize(
    ("first", "size", "second"), [(0, 1, 1), (30, 4, 7), (7, 4, 30), (0, 9, 9), (2**31 - 12, 4, 0)]
)
def test_numbers_of_two_ranges(
    first: int, size: int, second: int, dtype: Any, there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "RENUMBERED_AT_ONCE", 2)
    rng = np.random.default_rng(0)
    places = rng.integers(-1, 10, (5, 4)).astype(np.int32)
    distances = rng.random((5, 4), np.float32)
    given = Neighbors(*map(torch.from_numpy, (distances, places))) if there else Neighbors(distances, places)
    source, plan = SimpleNamespace(n=2**31 if dtype is np.int64 else 99), SimpleNamespace(staged_bytes=0)
    worker: Any = SimpleNamespace(job=SimpleNamespace(source=source, plan=plan))
    found = common.shifted(worker, given, slice(first, first + size), slice(second, second + 10 - size))
    expected = [
        [-1 if at < 0 else first + at if at < size else second + at - size for at in row] for row in places.tolist()
    ]
    assert isinstance(found.indices, np.ndarray)
    assert found.indices.dtype == dtype
    np.testing.assert_array_equal(found.indices, expected)
    np.testing.assert_array_equal(found.distances, distances)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
def test_new_lists_are_merged_as_empty_ones_are(
    threads: int, descending: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This includes rows without a list; several threads clear and merge blocks of rows."""
    monkeypatch.setattr(tuning, "MERGED_AT_ONCE", 4)
    rng = np.random.default_rng(0)
    source = SimpleNamespace(n=99, dtype="float32")
    job = SimpleNamespace(k=3, source=source, record=SimpleNamespace(descending=descending))
    worker: Any = SimpleNamespace(job=job, threads=threads)
    parts = []
    for rows in ([0, 1, 4, 9, 21], [1, 2, 3, 4, 5, 6, 7, 8], []):
        distances = np.sort(rng.random((len(rows), 3), np.float32), axis=1)[:, :: -1 if descending else 1]
        ids = np.argsort(rng.random((len(rows), 99)), axis=1)[:, :3].astype(np.int32)
        parts.append((np.array(rows, np.int64), Neighbors(distances, ids)))
    expected = common.empty_lists(worker, 22)
    for rows, found in parts:
        common.merge_into(worker, expected, rows, found)
    made = common.joined(worker, 22, parts)
    assert made.distances.dtype == np.float32
    assert made.indices.dtype == np.int32
    np.testing.assert_array_equal(made.distances, expected.distances)
    np.testing.assert_array_equal(made.indices, expected.indices)
    assert (made.indices[10:21] == -1).all()
    assert (made.distances[10:21] == (-np.inf if descending else np.inf)).all()


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
