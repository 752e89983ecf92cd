"""Information before a merge of two slabs: true neighbours of the sample that are in the other slab."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers.checks import Array, gaussian
from tests.helpers.devices import on_gpu
from tests.helpers.shards import api, by_shards, clustered
from tonari.core.results.neighbors import Neighbors
from tonari.graph import tuning as graph_tuning
from tonari.metrics import get_metric
from tonari.metrics.recall import Recall
from tonari.nn_descent.method import NnDescentOnCpu
from tonari.nn_descent.plan import DescentPlan
from tonari.shards.planning import planner as approximate
from tonari.shards.routes import merge_route
from tonari.shards.routes.merge_route import _Crossing

N, K = 60, 4
FIRST, SECOND = slice(10, 25), slice(40, 60)


def crossing(metric: str, monkeypatch: pytest.MonkeyPatch, points: Array) -> tuple[Any, Neighbors]:
    """Return the information about two slabs, with every third row sampled, and the lists of all rows among both
    slabs.
    """
    truth = tonari.knn_graph(points, K, metric=metric, method="exact")
    sample = np.arange(0, N, 3)
    known = Neighbors(np.array(truth.distances[sample]), np.array(truth.indices[sample]))
    monkeypatch.setattr(merge_route, "truth_of", lambda worker: (sample, known))
    worker: Any = type("Worker", (), {"place": type("Place", (), {"there": staticmethod(lambda x: x)})})
    worker.job = type("Job", (), {"metric": metric, "k": K, "target": 0.9})
    both = np.concatenate([points[FIRST], points[SECOND]])
    whole = tonari.knn_graph(both, K, metric=metric, method="exact")
    return _Crossing.of(worker, FIRST, SECOND), Neighbors(np.array(whole.distances), np.array(whole.indices))


@pytest.mark.parametrize("metric", ["euclidean", "inner_product"])
def test_true_lists_have_all_that_is_known(metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made, whole = crossing(metric, monkeypatch, gaussian(N, 3))
    assert len(made.rows) > 5
    found = made(whole)
    assert (found.by_distance, found.low, found.rows) == (1.0, 1.0, len(made.rows))
    sides = made.rows < FIRST.stop - FIRST.start, made.others < FIRST.stop - FIRST.start
    assert (sides[0] != sides[1]).all()
    assert sides[0].any()
    assert sides[1].any()


@pytest.mark.parametrize("metric", ["euclidean", "inner_product"])
def test_what_is_missing_counts(metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made, whole = crossing(metric, monkeypatch, gaussian(N, 3))
    lists = Neighbors(*map(np.copy, whole))
    row, other = int(made.rows[0]), int(made.others[0])
    place = lists.indices[row].tolist().index(other)
    worst = -np.inf if get_metric(metric).descending else np.inf
    for part, missing in ((lists.indices, -1), (lists.distances, worst)):
        part[row, place:-1], part[row, -1] = part[row, place + 1 :].copy(), missing
    found = made(lists)
    expected = 1 - 1 / len(made.rows)
    assert found.by_distance == found.by_index == pytest.approx(expected)
    assert found.low == min(1.0, expected + np.sqrt(0.9 * 0.1 / len(made.rows)))


def test_a_tie_with_the_last_is_no_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    made, whole = crossing("euclidean", monkeypatch, np.ones((N, 2), np.float32))
    assert made(Neighbors(whole.distances, whole.indices[::-1].copy())).by_distance == 1


def test_slabs_of_which_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    points = gaussian(N, 2)
    points[SECOND] += 1000
    made, whole = crossing("euclidean", monkeypatch, points)
    assert len(made.rows) == 0
    assert made(whole).low == 1


@pytest.mark.parametrize("missed", [0, 1])
def test_a_merge_goes_on_until_enough_is_found(missed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Neighbors] = []
    real = _Crossing.__call__

    def measured(crossing: _Crossing, found: Neighbors) -> Recall:
        asked.append(found)
        return Recall(0.0, 0.0, 0.0, 0.0, 1, 6) if len(asked) <= missed else real(crossing, found)

    monkeypatch.setattr(_Crossing, "__call__", measured)
    monkeypatch.setattr("tonari.graph.tuning.MERGE_SHARE", 0.0)  # by rounds, however small
    by_shards(monkeypatch, 700)
    graph = tonari.build_graph(clustered(1400), 6, tmp_path / "graph", method="ggm", recall=0.95)
    assert len(asked) == missed + 1
    assert graph.report is not None
    assert graph.report.reached


@pytest.mark.parametrize(
    ("shards", "workers", "group"), [(22, 1, 4), (22, 2, 3), (2, 1, 1), (3, 1, 2), (8, 2, 2), (5, 8, 1)]
)
def test_groups_give_all_workers_as_many_pairs(shards: int, workers: int, group: int) -> None:
    on_cuda: Any = SimpleNamespace(devices=("cuda:0",), workers=workers)
    assert approximate._group(on_cuda, shards) == group
    on_cpu: Any = SimpleNamespace(devices=(), workers=workers)
    assert approximate._group(on_cpu, shards) == 1


def named_updates(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str | None]]:
    """Let plans of NN-Descent on the CPU take an update, as on a device; return the starts and the updates of plans."""
    named: list[tuple[str, str | None]] = []
    plan = NnDescentOnCpu.plan

    def noted(method: NnDescentOnCpu, problem: Any, **given: Any) -> DescentPlan:
        named.append((given.get("start", "own"), given.pop("update", None)))
        return plan(method, problem, **given)

    monkeypatch.setattr(NnDescentOnCpu, "plan", noted)
    monkeypatch.setattr(api, "refuse_on_cpu", lambda update: None)
    return named


@pytest.mark.parametrize("method", ["ggm", "clusters"])
def test_all_graphs_of_shards_and_all_merges_are_by_the_named_update(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = named_updates(monkeypatch)
    by_shards(monkeypatch, 250)
    points, out = clustered(600), tmp_path / "graph"
    given: dict[str, Any] = {"method": method, "recall": 0.9, "device": "cpu", "threads": 1}
    usual = tonari.build_graph(points, 4, tmp_path / "usual", **given)
    assert {update for _, update in named} == {None}
    assert usual.report is not None
    assert (usual.report.start, usual.report.update) == ("clusters", "pull")
    named.clear()
    graph = tonari.build_graph(points, 4, out, update="gnnd", **given)
    assert set(named) == {("own", "gnnd"), *([("graph", "gnnd")] if method == "ggm" else [])}
    assert graph.record is not None
    (shards,) = (part for part in graph.record.parts if part.title == "shard")
    assert shards.method == "nn-descent", "even if the exact graph would be faster"
    assert usual.record is not None
    assert {part.method for part in usual.record.parts if part.title == "shard"} == {"exact"}
    again = tonari.KNNGraph.open(out)
    assert again.report is not None
    assert (again.report.start, again.report.update) == ("random", "gnnd")
    tonari.build_graph(points, 4, out, update="gnnd", **given)  # is complete
    with pytest.raises(ValueError, match="holds a graph of update='gnnd', not None"):
        tonari.build_graph(points, 4, out, **given)


def test_added_points_are_merged_by_the_named_update(monkeypatch: pytest.MonkeyPatch) -> None:
    named = named_updates(monkeypatch)
    monkeypatch.setattr(graph_tuning, "MERGE_SHARE", 0.0)
    points = clustered(900)
    graph = tonari.knn_graph(points[:500], 4, method="nn-descent", recall=0.9)
    named.clear()
    graph.add(points[:500], points[500:], update="gnnd")
    assert named == [("own", "gnnd"), ("graph", "gnnd")]
    exact = tonari.knn_graph(points[:500], 4)
    named.clear()
    assert exact.add(points[:500], points[500:], update="gnnd", recall=0.9).method == "nn-descent"
    assert named[-1] == ("graph", "gnnd")
    with pytest.raises(
        ValueError, match="update='gnnd': is for graphs that may miss neighbours, but this one is exact"
    ):
        exact.add(points[:500], points[500:], update="gnnd")


@on_gpu
def test_gnnd_and_ggm_over_shards_on_a_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_shards(monkeypatch, 2000)
    points = clustered(6000, 16)
    graph = tonari.build_graph(points, 8, tmp_path / "graph", method="ggm", update="gnnd", recall=0.9, device="cuda")
    assert graph.report is not None
    assert (graph.report.reached, graph.report.update) == (True, "gnnd")
    assert graph.recall(points).by_distance > 0.9
