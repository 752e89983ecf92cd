"""Graphs by clusters: overlap, recall and blocks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tonari
from tests.helpers import checks
from tests.helpers.checks import assert_same_neighbors
from tests.helpers.shards import built, by_shards, check_built, clustered, lists, tight_memory
from tonari.metrics.recall import neighbors_recall
from tonari.shards import tasks, tuning
from tonari.shards.build import _room_of
from tonari.shards.directory.workspace import Workspace
from tonari.shards.plan import ShardPlan
from tonari.shards.routes import cluster_route
from tonari.shards.routes.registry import ROUTES


def test_a_recall_that_is_not_reached_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_shards(monkeypatch, 60)
    points = checks.gaussian(600, 40)  # without clusters: no margin covers the neighbours
    with pytest.warns(UserWarning, match=r"graph: recall 0\.\d+ .*of 0.99 not reached"):
        graph = built(points, 10, tmp_path, "clusters", recall=0.99)
    truth = check_built(graph, points)
    assert graph.report is not None
    assert not graph.report.reached
    assert graph.report.estimate.by_index == neighbors_recall(lists(graph), truth).by_index < 0.99


@pytest.mark.parametrize("block", [33, 700])
def test_blocks_do_not_change_a_graph_by_clusters(block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = clustered(700)
    made = []
    for at, size in enumerate((150, block)):
        by_shards(monkeypatch, 150, block=size)
        made.append(tonari.build_graph(points, 5, tmp_path / str(at), method="clusters", recall=0.9))
    assert_same_neighbors(*map(lists, made))


def _room(folder: Path) -> int:
    return sum(_room_of(path) for path in folder.rglob("*") if path.is_file())


def test_the_disk_holds_no_more_than_the_plan_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lists of shards go as the rows of the result come, and no room is taken for rows that are not written yet."""
    n, k, out, peaks, needed = 9000, 48, tmp_path / "graph", [0], list[int]()
    points, stages = clustered(n, 4), cluster_route.CLUSTERS.stages
    memory = tight_memory(points, k, "clusters", recall=0.9) * 3 // 2  # about five shards
    monkeypatch.setattr(tuning, "SEGMENT_ROWS", 1000)
    monkeypatch.setattr(tuning, "MOST_BLOCK", 500)

    def noted(files: Workspace, plan: ShardPlan) -> Iterator[tasks.Stage]:
        for stage in stages(files, plan):
            needed.append(stage.disk_bytes)
            yield stage

    def measured(usual: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            made = usual(*arguments, **named)
            peaks.append(_room(out))
            return made

        return call

    monkeypatch.setitem(ROUTES, "clusters", cluster_route.CLUSTERS._replace(stages=noted))
    for name in ("save_all", "write_rows", "drop_all", "finish", "begin"):
        monkeypatch.setattr(Workspace, name, measured(getattr(Workspace, name)))
    graph = tonari.build_graph(points, k, out, method="clusters", recall=0.9, memory=memory, threads=1)
    result = graph.indices.nbytes + graph.distances.nbytes
    assert max(peaks) <= max(needed)  # with the copies that there are
    assert max(peaks) > max(needed) - result * 3 // 4, "with room for the whole result, it would be more"


def test_more_copies_than_expected_need_room_before_shards_are_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "COPIES", 0.2)
    points, out = clustered(4000), tmp_path / "graph"
    given = {"method": "clusters", "recall": 0.9, "memory": tight_memory(points, 5, "clusters", recall=0.9)}

    def usage(folder: Path) -> Any:
        free = json.loads((out / "manifest.json").read_text())["plan"]["disk_bytes"] - _room(out)
        return type("Usage", (), {"free": free})

    with monkeypatch.context() as full:
        full.setattr("shutil.disk_usage", usage)
        with pytest.raises(OSError, match=r"the build needs \d+ bytes of disk at its peak, \d+ are free and \d+ are"):
            tonari.build_graph(points, 5, out, threads=1, **given)
    assert list((out / "done").glob("members-*"))
    assert not list((out / "done").glob("shard-*"))
    graph = tonari.build_graph(points, 5, out, threads=1, **given)
    assert graph.record is not None
    assert ("resumed", "sample: 1 of 1 were done") in graph.record.choices


def test_shards_that_are_read_together_are_those_that_are_read_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    points, read, made = clustered(900), [], []
    usual = cluster_route.CLUSTERS.steps["shard"]

    def noted(worker: tasks.Worker, several: list[Any]) -> list[Any]:
        read.append(len(several))
        assert usual.together is not None
        return usual.together(worker, several)

    monkeypatch.setitem(cluster_route.CLUSTERS.steps, "shard", usual._replace(together=noted))
    for group in (1, 3, 100):
        by_shards(monkeypatch, 150, group=group)
        made.append(tonari.build_graph(points, 5, tmp_path / str(group), method="clusters", recall=0.9))
        assert_same_neighbors(lists(made[0]), lists(made[-1]))
        assert max(read, default=1) == min(group, sum(read) or 1)
        read.clear()
