"""Searches of an Index continue with the current state while an update creates the next state."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.checks import assert_same_neighbors
from tests.helpers.device_rows import there
from tests.helpers.devices import on_gpu
from tonari import io
from tonari.core.results.neighbors import Neighbors

D = 3


def tied(rng: np.random.Generator, n: int, dtype: str = "float32") -> Any:
    """Make rows of few distinct values, so there are duplicates and ties; all but small integers are far from 0."""
    rows = rng.integers(0, 4, (n, D)) + (0 if dtype == "uint8" else 1000)
    return rows.astype(dtype)


def here_one(x: Any) -> Any:
    return x if isinstance(x, np.ndarray) else x.cpu().numpy()


def on_host(found: Neighbors) -> Neighbors:
    return Neighbors(*map(here_one, found))


def test_streams_see_the_index_as_it_was_when_they_began(tmp_path: Path) -> None:
    points, queries = checks.gaussian(50, D), checks.gaussian(9, D, 1)
    index = tonari.Index(points)
    index.remove([4])
    expected, within = index.search(queries, 3), index.radius_search(queries, 1.0)
    stream = index.search_chunks(queries, 3, chunk_rows=4)
    radii = index.radius_chunks(queries, 1.0, chunk_rows=4)
    index.remove(index.ids[:30])
    index.add(queries)
    assert np.concatenate([found.indices for found in stream]).tolist() == expected.indices.tolist()
    assert np.concatenate([found.indices for found in radii]).tolist() == within.indices.tolist()
    out = tonari.search_to_file(queries, index, 3, tmp_path / "found.ibin")
    assert io.read_ground_truth(out).indices.tolist() == index.search(queries, 3).indices.tolist()


def test_searches_while_another_thread_updates() -> None:
    """Each answer is that of one state of the Index, and states are seen in order."""
    points, queries = checks.gaussian(400, D), checks.gaussian(5, D, 1)
    states = [range(100), range(100, 200), range(200, 300), range(300, 400)]
    expected = []
    for ids in states:
        found = tonari.search(queries, points[ids.start : ids.stop], 6)
        expected.append((found.distances.tobytes(), (found.indices + np.int32(ids.start)).tobytes()))
    index = tonari.Index(points[:100], method="exact", threads=1)
    whole = threading.Event()
    failures: list[Any] = []

    def watch() -> None:
        last = 0
        while last < len(states) - 1 and not whole.wait(0):
            found = index.search(queries, 6)
            ids = np.unique(found.indices // 100)
            answer = found.distances.tobytes(), found.indices.tobytes()
            if answer in expected:
                at = expected.index(answer)
                if at < last:
                    failures.append((at, last))
                last = at
            elif len(ids) == 1:  # between add and remove the Index has two hundred points
                failures.append(found)

    watchers = [threading.Thread(target=watch) for _ in range(2)]
    for watcher in watchers:
        watcher.start()
    for ids in states[1:]:
        index.add(points[ids.start : ids.stop])
        index.remove(range(ids.start - 100, ids.start))
    whole.set()
    for watcher in watchers:
        watcher.join()
    assert not failures
    found = index.search(queries, 6)
    assert (found.distances.tobytes(), found.indices.tobytes()) == expected[-1]


def test_searches_do_not_wait_for_an_update_and_updates_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    points = checks.gaussian(30, D)
    index = tonari.Index(points, method="exact")
    before = index.search(points[:2], 3)
    begun, go_on, order = threading.Event(), threading.Event(), list[str]()
    make = tonari.Index._segment

    def slow(self: Any, *given: Any, **more: Any) -> Any:
        begun.set()
        assert go_on.wait(60)
        order.append("made")
        return make(self, *given, **more)

    monkeypatch.setattr(tonari.Index, "_segment", slow)
    update = threading.Thread(target=index.add, args=(points[:1],))
    update.start()
    assert begun.wait(60)
    assert_same_neighbors(index.search(points[:2], 3), before)
    other = threading.Thread(target=lambda: (index.remove([0]), order.append("removed")))
    other.start()
    assert len(index) == 30
    go_on.set()
    update.join()
    other.join()
    assert order == ["made", "removed"]
    assert index.ids.tolist() == list(range(1, 31))


@on_gpu
def test_searches_on_other_streams_wait_for_an_update() -> None:
    import torch

    rng = np.random.default_rng(3)
    points, queries = tied(rng, 20_000), tied(rng, 50)
    index = tonari.Index(there(points[:5000]), method="exact")
    there_queries = there(queries)
    torch.cuda.synchronize()
    for begin in range(5000, 20_000, 5000):
        with torch.cuda.stream(torch.cuda.Stream()):
            torch.cuda._sleep(10**8)  # cycles: about 50 ms, in which a search that did not wait would finish
            index.add(there(points[begin : begin + 5000]))
            index.remove([begin])
        with torch.cuda.stream(torch.cuda.Stream()):
            found = on_host(index.search(there_queries, 5))
        ids = np.delete(np.arange(begin + 5000), np.arange(5000, begin + 5000, 5000))
        truth = tonari.search(queries, points[ids], 5)
        assert found.distances.tobytes() == truth.distances.tobytes()
        assert found.indices.tolist() == ids[truth.indices].tolist()
