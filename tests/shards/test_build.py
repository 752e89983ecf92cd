"""Resumed builds: what they refuse, and what they keep."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers.checks import gaussian
from tests.helpers.shards import (
    SMALL,
    api,
    assert_exact,
    by_shards,
    clustered,
    contents,
    small,
    small_points,
    stopped,
)
from tonari.core.errors import BudgetExceeded
from tonari.core.trail import Record
from tonari.graph.knn_graph import KNNGraph
from tonari.shards import build
from tonari.shards.directory.done import sealed
from tonari.shards.directory.workspace import Workspace
from tonari.shards.state import read_state
from tonari.shards.workers import local


@pytest.fixture
def points(tmp_path: Path) -> Path:
    return small_points(tmp_path)


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
    if complete:  # starting over does not replace a finished graph either
        with pytest.raises(ValueError, match=said):
            tonari.build_graph(points, out=out, **given, resume=False)
    assert {name: (out / name).read_bytes() for name in contents(out)} == before
    made = tonari.build_graph(points, out=out, **given, overwrite=True)
    assert (made.k, made.metric) == (given["k"], given.get("metric", "euclidean"))


def age(out: Path) -> None:
    """Give a directory the format version of earlier releases."""
    manifest = out / "manifest.json"
    manifest.write_text(re.sub(r'"version": \d+', '"version": 1', manifest.read_text()))


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
    """The manifest of a complete graph can be read by an earlier release."""
    out = tmp_path / "graph"
    truth = small(points, out)
    assert '"version": 1' in (out / "manifest.json").read_text()
    age(out)
    for found in (tonari.KNNGraph.open(out), small(points, out)):
        assert np.array_equal(found.indices, truth.indices)


@pytest.mark.parametrize("route", ["exact", "clusters", "ggm"])
def test_the_record_of_a_resumed_build_is_that_of_all_its_tasks(
    route: str, points: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "graph"
    stopped(points, out, route, "rows-000001", monkeypatch)
    unfinished = read_state(out).record
    with monkeypatch.context() as patched:
        by_shards(patched, SMALL[route])
        whole = small(points, tmp_path / "whole", route).record
    record = small(points, out, route).record
    assert unfinished is not None
    assert whole is not None
    assert record is not None
    assert str(KNNGraph.open(out).record) == str(record)
    assert (record.title, record.rows, record.method) == ("build_graph", 240, route)
    assert record.plan is not None
    assert record.plan.as_dict()["route"] == route
    assert [(part.title, part.rows, part.proved) for part in record.parts] == [
        (part.title, part.rows, part.proved) for part in whole.parts
    ]
    assert all(part.seconds > 0 for part in record.parts)
    if route == "exact":  # every row is proved in every slab
        assert [(part.title, part.proved) for part in record.parts] == [("rows", 4 * 240)]
    parts = {part.title: part for part in record.parts}
    assert all(0 < part.rows <= parts[part.title].rows for part in unfinished.parts if parts[part.title].rows)
    why = dict(record.choices)["resumed"]
    assert why.endswith("were done")
    assert whole.choices == []


def test_a_build_without_records_is_resumed_without(
    points: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As earlier releases left it."""
    out = tmp_path / "graph"
    stopped(points, out, "exact", 2, monkeypatch)
    for path in (out / "done").iterdir():
        facts = json.loads(path.read_text())
        del facts["checksum"], facts["record"]
        path.write_text(json.dumps(sealed(facts)))
    assert read_state(out).record is None
    graph = small(points, out)
    assert graph.record is not None
    assert 0 < graph.record.parts[0].proved < 4 * 240


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


def test_less_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, out = gaussian(3000, 16), tmp_path / "graph"
    stopped(rows, out, "exact", 2, monkeypatch, memory="20MB")
    needed = json.loads((out / "manifest.json").read_text())["plan"]["host_bytes"]
    with pytest.raises(
        BudgetExceeded, match=rf"begun with a plan for {needed} bytes of memory, now it is {needed - 1}"
    ):
        small(rows, out, memory=needed - 1)
    small(rows, out, memory=needed)
    small(rows, out, memory=1)  # no work is left


def test_a_complete_graph_is_returned_without_work(
    points: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small(points, tmp_path / "graph")
    monkeypatch.setattr(local.LocalExecutor, "run", lambda *_: pytest.fail("it is complete"))
    assert_exact(small(points, tmp_path / "graph"), np.load(points), 4)


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


@pytest.mark.parametrize(
    ("wish", "devices", "expected"),
    [
        ("cuda:all", ("cuda:0", "cuda:1", "cuda:2"), ("cuda:0", "cuda:1")),
        (["cuda:0", "cuda:1", "cuda:2"], ("cuda:0", "cuda:1", "cuda:2"), ("cuda:0", "cuda:1", "cuda:2")),
        ("cuda:all", ("cuda:0",), ("cuda:0",)),
    ],
)
def test_devices_are_chosen_only_for_all_of_several(
    wish: Any, devices: tuple[str, ...], expected: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "devices_for_shards", lambda sizes, plan: (2, "2 of 3: said"))
    ran: list[Any] = []

    def chosen(request: build.Request, out: Path, executor: Any, **_: Any) -> None:
        record = Record("build_graph", 0)
        plan: Any = None
        ran.append((build._chosen(executor, request, plan, record).devices, [one.why for one in record.choices]))  # type: ignore[attr-defined]

    monkeypatch.setattr(api, "build", chosen)
    monkeypatch.setattr(api.KNNGraph, "open", lambda out: None)
    monkeypatch.setattr(api.inputs, "devices_for", lambda device: devices)
    tonari.build_graph(gaussian(30, 3), 2, "graph", device=wish)
    assert ran == [(expected, ["2 of 3: said"] if len(expected) < len(devices) else [])]
