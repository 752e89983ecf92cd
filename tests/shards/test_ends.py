"""Builds that end because of a full disk or Ctrl-C, and resume."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers.checks import assert_same_neighbors, check_interrupt, gaussian
from tests.helpers.shards import (
    COMPLETE,
    ROUTES,
    SMALL,
    by_shards,
    contents,
    lists,
    small,
    small_points,
)


@pytest.fixture
def points(tmp_path: Path) -> Path:
    return small_points(tmp_path)


LIMITED = """
import resource, signal, sys
import tonari
from tests.helpers.shards import plans_of
from tonari.shards import build
build.plan_build = plans_of({rows})
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({bytes}, resource.RLIM_INFINITY))
try:
    tonari.build_graph({points!r}, 4, {out!r}, method={method!r}, recall={recall}, threads=1)
except OSError as error:
    print(error.errno, error)
"""


@pytest.mark.process
@pytest.mark.parametrize("method", ["exact", *(pytest.param(name, marks=pytest.mark.full) for name in ROUTES[1:])])
def test_a_limit_on_the_size_of_files(
    method: str, points: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "graph"
    recall = None if method == "exact" else 0.9
    # The rows of the result have 4 kB; the smallest limit is the size of a part, so that some work is done before.
    for size in (100, 3000):
        code = LIMITED.format(
            rows=SMALL[method], bytes=size, points=str(points), out=str(out), method=method, recall=recall
        )
        paths = os.pathsep.join([str(Path(tonari.__file__).parents[1]), str(Path(__file__).parents[2])])
        told = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": paths}
        )
        assert "27" in told.stdout, told.stderr
        assert "the disk is full (or a limit on the size of files is reached); everything done so" in told.stdout
    with monkeypatch.context() as patch:
        by_shards(patch, SMALL[method])
        again = small(points, out, method)
        assert_same_neighbors(lists(again), lists(small(points, tmp_path / "other", method)))
    assert contents(out) == COMPLETE


INTERRUPTED = """
import threading, time
import tonari
from tonari.core.errors import BudgetExceeded
class Started:
    def __call__(self, done, total):
        if done and not hasattr(self, "told"):
            self.told = print("started", flush=True)
try:
    tonari.build_graph({points!r}, 10, {out!r}, method={method!r}, recall={recall}, memory="40MB", progress=Started())
except KeyboardInterrupt:
    print("stopped", time.time(), flush=True)
until = time.monotonic() + 10
while threading.active_count() > 1 and time.monotonic() < until:
    time.sleep(0.01)
print("threads", threading.active_count(), flush=True)
"""


@pytest.mark.process
@pytest.mark.parametrize("method", ["exact", pytest.param("clusters", marks=pytest.mark.full)])
def test_ctrl_c_stops_within_a_second_and_keeps_what_is_done(method: str, tmp_path: Path) -> None:
    np.save(tmp_path / "points.npy", gaussian(120_000, 48))
    recall = None if method == "exact" else 0.9
    given: dict[str, Any] = {"points": str(tmp_path / "points.npy"), "out": str(tmp_path / "graph")}
    check_interrupt(INTERRUPTED.format(method=method, recall=recall, **given))
    assert json.loads((tmp_path / "graph" / "manifest.json").read_text())["state"] == "building"
    assert list((tmp_path / "graph" / "done").glob("*.json"))
