"""Builds that end at any writing call, at any time, and in power cuts: resumed builds give the same bits.

With TONARI_KILLS=all (`make kills`) every call is tried, which takes minutes; otherwise only some calls.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers.checks import assert_same_neighbors
from tests.helpers.killing import Builds
from tests.helpers.shards import COMPLETE, ROUTES, SMALL, by_shards, clustered, contents, lists
from tonari.core.results.neighbors import Neighbors
from tonari.shards.directory.workspace import Workspace

N, K = 240, 4
EVERY = os.environ.get("TONARI_KILLS") == "all"
STEP, TIMES = (1, 60) if EVERY else (11, 6)

pytestmark = pytest.mark.process


def given(method: str) -> dict[str, Any]:
    return {"k": K, "method": method, "threads": 1} | ({} if method == "exact" else {"recall": 0.9})


@pytest.fixture(scope="module")
def builds() -> Iterator[Builds]:
    with Builds() as builds:
        yield builds


@pytest.fixture
def points(tmp_path: Path) -> Path:
    np.save(tmp_path / "points.npy", clustered(N))
    return tmp_path / "points.npy"


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Neighbors]:
    """Return the graphs of builds that nothing interrupted."""
    folder, made = tmp_path_factory.mktemp("undisturbed"), {}
    np.save(folder / "points.npy", clustered(N))
    for method in ROUTES:
        with pytest.MonkeyPatch.context() as monkeypatch:
            by_shards(monkeypatch, SMALL[method])
            made[method] = lists(tonari.build_graph(folder / "points.npy", out=folder / method, **given(method)))
    return made


class Resumed:
    """Builds that are ended, resumed in this process, and compared."""

    def __init__(self, builds: Builds, points: Path, truth: dict[str, Neighbors], patch: pytest.MonkeyPatch) -> None:
        self._builds, self._points, self._truth, self._patch = builds, points, truth, patch
        self._made = 0

    def __call__(self, method: str, **end: Any) -> int:
        """Build until an end, resume, and check; return how many tasks the first build had done."""
        self._made += 1
        out, log = (self._points.with_name(f"{name}-{self._made}") for name in ("graph", "log"))
        log.touch()
        self._builds.run(self._points, out, given=given(method), rows=SMALL[method], log=str(log), **end)
        told, computed = log.read_text().split(), []
        finish = Workspace.finish

        def watched(files: Workspace, task: str, done: Any) -> None:
            computed.append(task)
            finish(files, task, done)

        with self._patch.context() as patch:
            patch.setattr(Workspace, "finish", watched)
            by_shards(patch, SMALL[method])
            graph = tonari.build_graph(self._points, out=out, **given(method))
        assert not set(told) & set(computed), "what was done is lost"
        assert contents(out) == COMPLETE
        assert_same_neighbors(lists(graph), self._truth[method])
        return len(told)

    def calls(self, method: str) -> list[str]:
        """Return the calls of a build that nothing interrupts."""
        out = self._points.with_name("whole")
        told = self._builds.run(self._points, out, given=given(method), rows=SMALL[method])
        assert told["status"] == 0
        return list(told["calls"])


@pytest.fixture
def resumed(
    builds: Builds, points: Path, undisturbed: dict[str, Neighbors], monkeypatch: pytest.MonkeyPatch
) -> Resumed:
    return Resumed(builds, points, undisturbed, monkeypatch)


@pytest.mark.parametrize("method", ROUTES)
def test_a_build_that_ends_at_some_calls(method: str, resumed: Resumed) -> None:
    """The first and the last calls, and some of those between."""
    count = len(resumed.calls(method))
    done = [
        resumed(method, end_at=at, power_cut=cut)
        for at, cut in ((1, True), (count // 3, False), (count // 2, True), (count - 4, True), (count, False))
    ]
    assert done == sorted(done)
    assert done[0] == 0 < done[2] < done[-1]


@pytest.mark.full
@pytest.mark.parametrize("power_cut", [False, True])
@pytest.mark.parametrize("method", ROUTES)
def test_a_build_that_ends_at_any_call(method: str, power_cut: bool, resumed: Resumed) -> None:
    calls = resumed.calls(method)
    done = [resumed(method, end_at=at, power_cut=power_cut) for at in range(1, len(calls) + 1, STEP)]
    if EVERY:
        assert sorted(set(done)) == list(range(done[-1] + 1))  # between every two tasks
    assert min(done) == 0 < max(done)


@pytest.mark.full
@pytest.mark.parametrize("method", ROUTES)
def test_a_build_that_is_killed_at_random_times(method: str, resumed: Resumed) -> None:
    rng = np.random.default_rng(0)
    for seconds in rng.uniform(0.0, 0.4, TIMES).tolist():
        resumed(method, after=seconds)


def test_a_build_that_is_killed_again_and_again(builds: Builds, resumed: Resumed, points: Path) -> None:
    """Every run finishes at least one more task, and nothing is left for the last run."""
    out, runs = points.with_name("graph"), 0
    while True:
        told = builds.run(points, out, given=given("exact"), rows=SMALL["exact"], end_at=26, power_cut=bool(runs % 2))
        if told["status"] == 0:
            break
        runs += 1
        assert runs < 20
    assert runs >= 2
    assert_same_neighbors(lists(tonari.KNNGraph.open(out)), resumed._truth["exact"])


@pytest.mark.parametrize(
    "method", ["clusters", *(pytest.param(name, marks=pytest.mark.full) for name in ("exact", "ggm"))]
)
def test_a_build_advances_by_every_task_however_often_it_is_killed(
    method: str, builds: Builds, resumed: Resumed, points: Path
) -> None:
    """Each life is killed after one task; it repeats at most what was computed beside it: shards are read by twos."""
    out, logs = points.with_name("graph"), [points.with_name(name) for name in ("log", "begun")]
    lives, repeated = 0, 0
    while True:
        for log in logs:
            log.write_text("")
        more = {"rows": SMALL[method], "tasks": 1, "log": str(logs[0]), "begun": str(logs[1])}
        status = builds.run(points, out, given=given(method), **more)["status"]
        finished, begun = (set(log.read_text().split()) for log in logs)
        assert finished <= begun
        assert len(finished) == (status != 0)
        assert len(begun - finished) <= 2, "the task that is written, and the next one"
        repeated += len(begun - finished)
        if status == 0:
            break
        lives += 1
        assert lives < 100
    assert lives > (3 if method == "exact" else 15)  # a shard of an exact graph is one task
    assert repeated <= 2 * lives
    assert_same_neighbors(lists(tonari.KNNGraph.open(out)), resumed._truth[method])
