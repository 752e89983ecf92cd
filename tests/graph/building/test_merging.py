"""Two merged graphs: no neighbour is lost, neighbours in the other half are found, and ids are those of both."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.checks import assert_same_neighbors, assert_valid_neighbors
from tests.helpers.devices import HAS_TORCH, needs_torch
from tonari.core.results.neighbors import Neighbors
from tonari.graph import tuning
from tonari.graph.building import merging
from tonari.graph.knn_graph import KNNGraph
from tonari.metrics import METRICS, reference
from tonari.nn_descent.driver import build
from tonari.nn_descent.entries import NEW
from tonari.nn_descent.report import DescentReport

if HAS_TORCH:
    import torch

POINTS = checks.gaussian(1400, 6)


@pytest.fixture
def by_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Avoid the brute-force join that small graphs would get."""
    monkeypatch.setattr(tuning, "MERGE_SHARE", 0.0)


@pytest.fixture
def by_force(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "MERGE_SHARE", np.inf)


def lists(graph: KNNGraph) -> Neighbors:
    return Neighbors(graph.distances, graph.indices)


def halves(points: Any = POINTS, at: int = 700, k: int = 8, **given: Any) -> tuple[KNNGraph, KNNGraph, Any, Any]:
    """Return the arguments of merge."""
    a, b = points[:at], points[at:]
    return tonari.knn_graph(a, k, **given), tonari.knn_graph(b, k, **given), a, b


def reported(graph: KNNGraph) -> DescentReport:
    assert graph.report is not None
    return graph.report


@pytest.mark.usefixtures("by_force")
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("include_self", [False, True])
def test_exact_graphs_by_brute_force_give_the_exact_graph(metric: str, include_self: bool) -> None:
    points = np.abs(checks.duplicates(300, 4)) if metric != "l1" else checks.gaussian(300, 4)
    given: dict[str, Any] = {"metric": metric, "include_self": include_self}
    made = tonari.merge(*halves(points, 120, 5, **given))
    wanted = tonari.knn_graph(points, 5, **given)
    np.testing.assert_array_equal(made.indices, wanted.indices)
    np.testing.assert_array_equal(made.distances, wanted.distances)
    assert (made.method, made.metric, made.include_self, made.report) == ("exact", metric, include_self, None)
    assert made.seed is None


@pytest.mark.usefixtures("by_rounds")
@pytest.mark.parametrize("metric", ["euclidean", "inner_product", "l1"])
@pytest.mark.parametrize("include_self", [False, True])
def test_halves_by_rounds(metric: str, include_self: bool) -> None:
    parts = halves(metric=metric, include_self=include_self)
    made = tonari.merge(*parts, recall=0.97, seed=2)
    assert (made.n, made.k, made.method, made.metric, made.seed) == (1400, 8, "nn-descent", metric, 2)
    assert made.include_self is include_self
    report = reported(made)
    assert (report.start, report.target, report.reached) == ("graph", 0.97, True)
    first = int(include_self)
    found = Neighbors(*(np.ascontiguousarray(part[:, first:]) for part in lists(made)))
    assert_valid_neighbors(found, m=1400, n=1400, k=8 - first, metric=metric, self_ids=np.arange(1400))
    values = reference.values_at(POINTS, POINTS, made.indices, metric)
    np.testing.assert_array_equal(made.distances, reference.returned(values, np.float32))
    assert made.recall(POINTS, sample=1400).by_index >= 0.97


@pytest.mark.usefixtures("by_rounds")
def test_exact_halves_lose_nothing() -> None:
    parts = halves()
    own = np.concatenate([graph.distances for graph in parts[:2]])
    for recall in (0.5, 0.99):
        made = tonari.merge(*parts, recall=recall)
        assert (made.distances <= own).all()
        assert (made.distances < own).mean() > 0.3  # and neighbours in the other half are found
    truth = reference.brute(POINTS, POINTS, 8, self_ids=np.arange(1400))
    same_side = (truth.indices < 700) == (np.arange(1400) < 700)[:, None]
    found = (truth.indices[:, :, None] == made.indices[:, None, :]).any(axis=2)
    assert found[same_side].all()  # a true neighbour in the own half was there from the start


@pytest.mark.usefixtures("by_rounds")
def test_what_was_known_is_not_new_and_what_was_missing_stays_so(monkeypatch: pytest.MonkeyPatch) -> None:
    graph_a, graph_b, a, b = halves()
    graph_b.indices[5, -2:], graph_b.distances[5, -2:] = -1, np.inf
    graph_b = dataclasses.replace(graph_b, method="imported")
    given: list[Any] = []

    def spy(steps: Any, plan: Any, progress: Any, begin: Any, boundary: int, measure: Any) -> Any:
        entries = begin()
        given.append((entries.copy(), boundary))
        return build(steps, plan, progress, lambda: entries, boundary, measure=measure)

    monkeypatch.setattr(merging, "build", spy)
    made = tonari.merge(graph_a, graph_b, a, b, recall=0.9)
    (entries, boundary), k = given[0], 8
    assert boundary == 700
    np.testing.assert_array_equal(entries[:700, :k], graph_a.indices)
    np.testing.assert_array_equal(entries[700:, :k], np.where(graph_b.indices < 0, -1, graph_b.indices + 700))
    assert ((entries[:, k:] < 0) | (entries[:, k:] & NEW != 0)).all()
    assert (made.indices >= 0).all()


@pytest.mark.usefixtures("by_rounds")
def test_the_seed_and_not_the_threads_decide() -> None:
    parts = halves(checks.gaussian(20_000, 20))
    made = [tonari.merge(*parts, recall=0.6, seed=seed, threads=threads) for seed, threads in ((1, 1), (1, 3), (2, 1))]
    assert_same_neighbors(lists(made[0]), lists(made[1]))
    assert (made[0].indices != made[2].indices).any()


@pytest.mark.usefixtures("by_rounds")
@pytest.mark.parametrize("at", [30, 3000])
def test_very_unequal_sides_by_rounds(at: int) -> None:
    points = checks.gaussian(3030, 5)
    made = tonari.merge(*halves(points, at, 6), recall=0.97)
    assert reported(made).reached
    small = np.arange(30) if at == 30 else np.arange(3000, 3030)
    truth = reference.brute(points[small], points, 6, self_ids=small)
    assert np.mean([np.isin(*pair).mean() for pair in zip(truth.indices, made.indices[small], strict=True)]) > 0.9
    who = np.isin(tonari.knn_graph(points, 6).indices, small)
    assert np.isin(made.indices, small)[who].mean() > 0.9


def test_a_small_side_is_joined_exactly() -> None:
    points = checks.gaussian(3030, 5)
    made = tonari.merge(*halves(points, 3000, 6))
    assert made.method == "exact"
    assert_same_neighbors(lists(made), lists(tonari.knn_graph(points, 6)))


@pytest.mark.parametrize("share", [0.0, np.inf])
def test_many_parts_in_sequence_lose_no_recall(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "MERGE_SHARE", share)
    points, step = checks.gaussian(1600, 6), 200
    made = tonari.knn_graph(points[:step], 8, method="nn-descent", recall=0.98)
    for end in range(2 * step, 1601, step):
        part = points[end - step : end]
        other = tonari.knn_graph(part, 8, method="nn-descent", recall=0.98)
        made = tonari.merge(made, other, points[: end - step], part, recall=0.98)
        assert (made.n, made.method) == (end, "nn-descent")
        assert reported(made).reached
        assert len(reported(made).rounds) == 0 if share else len(reported(made).rounds) > 0
    assert made.recall(points, sample=1600).by_index >= 0.98


@pytest.mark.usefixtures("by_rounds")
def test_points_of_the_second_side_follow_those_of_the_first() -> None:
    left = np.array([[0.0], [10.0], [20.0], [30.0]], np.float32)
    right = left[:3] + 1
    parts = tonari.knn_graph(left, 2), tonari.knn_graph(right, 2), left, right
    assert tonari.merge(*parts).indices.tolist() == [[4, 1], [5, 4], [6, 5], [6, 2], [0, 1], [1, 2], [2, 3]]


def test_approximate_graphs_joined_by_force_are_measured(by_force: None) -> None:
    parts = halves(method="nn-descent", recall=0.9)
    made = tonari.merge(*parts, recall=0.9, seed=3)
    assert (made.method, made.seed, reported(made).rounds, reported(made).reached) == ("nn-descent", 3, (), True)
    again = tonari.merge(*parts, recall=0.9, seed=3)
    assert reported(again).estimate == reported(made).estimate


def poor(graph: KNNGraph, points: Any) -> KNNGraph:
    """Return the same with the farthest points in each row."""
    far = reference.brute(points, points, graph.n - 1, self_ids=np.arange(graph.n))
    last = (np.ascontiguousarray(part[:, -graph.k :]) for part in (far.indices, far.distances))
    return KNNGraph(*last, "euclidean", "by hand")


@pytest.mark.parametrize("share", [0.0, np.inf])
def test_what_is_missed_on_a_side_is_told(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "MERGE_SHARE", share)
    _, good, a, b = halves()
    with pytest.warns(UserWarning, match="of 0.99 not reached"):
        made = tonari.merge(poor(good, a), good, a, b)
    assert not reported(made).reached
    assert reported(made).estimate.by_distance < 0.9


def changed(**fields: Any) -> Any:
    return lambda parts: (dataclasses.replace(parts[0], **fields), *parts[1:])


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (changed(metric="l1"), ValueError, "graph_a has metric='l1', graph_b metric='euclidean': they must agree"),
        (lambda p: (tonari.knn_graph(p[2], 7), *p[1:]), ValueError, "graph_a has k=7, graph_b k=8"),
        (lambda p: (tonari.knn_graph(p[2], 8, include_self=True), *p[1:]), ValueError, "graph_a has include_self=True"),
        (lambda p: (*p[:2], p[2][:-1], p[3]), ValueError, "graph_a has 700 rows, points_a 699: they must be the same"),
        (lambda p: (*p[:2], p[2], p[3][1:]), ValueError, "graph_b has 700 rows, points_b 699"),
        (lambda p: (*p[:3], p[3][:, :5]), ValueError, r"points_a is float32 of shape \(700, 6\), points_b float32 of"),
        (lambda p: (*p[:3], p[3].astype(np.float16)), ValueError, "points_b float16"),
        (lambda p: (*p[:3], p[3] * np.nan), ValueError, "points_b"),
        (lambda p: (*p[:2], p[2].astype(np.float64), p[3].astype(np.float64)), ValueError, "distances in float32, but"),
    ],
)
def test_what_does_not_fit_is_refused(change: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        tonari.merge(*change(halves()))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"recall": 1.0}, "recall=1.0: expected a number between 0 and 1"),
        ({"seed": -1}, "seed=-1"),
        ({"memory": "1MB"}, "memory budget of 1000000 bytes"),
        ({"device": "gpu"}, "device='gpu'"),
    ],
)
def test_arguments_are_used_or_refused(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tonari.merge(*halves(), **given)


def test_float64_and_self_alone() -> None:
    points = checks.offset_float64(200, 3)
    assert_same_neighbors(lists(tonari.merge(*halves(points, 90, 4))), lists(tonari.knn_graph(points, 4)))
    alone = tonari.merge(*halves(POINTS[:9], 4, 1, include_self=True))
    assert alone.indices.tolist() == [[i] for i in range(9)]


@needs_torch
@pytest.mark.parametrize("share", [0.0, np.inf])
def test_graphs_of_tensors_in_host_memory(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "MERGE_SHARE", share)
    points = torch.from_numpy(POINTS)
    for kinds in ((points, points), (POINTS, points), (points, POINTS)):
        left, right = (x[part] for x, part in zip(kinds, (slice(700), slice(700, None)), strict=True))
        graphs = tonari.knn_graph(left, 8), tonari.knn_graph(right, 8)
        made, wanted = tonari.merge(*graphs, left, right), tonari.merge(*halves())
        added = graphs[0].add(left, right[:4])
        for graph in (made, added):
            assert isinstance(graph.indices, torch.Tensor) == isinstance(left, torch.Tensor)
            assert isinstance(graph.distances, torch.Tensor) == isinstance(left, torch.Tensor)
        np.testing.assert_array_equal(made.to_numpy().indices, wanted.indices)
        np.testing.assert_array_equal(added.to_numpy().indices, tonari.knn_graph(POINTS[:704], 8).indices)


@pytest.mark.parametrize("new", [1, 2, 5])
@pytest.mark.parametrize("method", ["exact", "nn-descent"])
@pytest.mark.parametrize("metric", ["euclidean", "inner_product"])
def test_points_are_added_to_a_graph_of_self_alone(metric: str, method: str, new: int) -> None:
    points = checks.gaussian(40, 4)
    graph = tonari.knn_graph(points[:-new], 1, metric=metric, method=method, include_self=True)
    made, wanted = (
        graph.add(points[:-new], points[-new:]),
        tonari.knn_graph(points, 1, metric=metric, include_self=True),
    )
    np.testing.assert_array_equal(made.indices, wanted.indices)
    np.testing.assert_array_equal(made.distances, wanted.distances)
    assert (made.n, made.include_self) == (40, True)


@pytest.mark.parametrize("new", [1, 2, 8, 9, 40])
@pytest.mark.parametrize("include_self", [False, True])
@pytest.mark.parametrize("metric", ["euclidean", "inner_product"])
def test_few_new_points_are_added_exactly(new: int, include_self: bool, metric: str) -> None:
    points = checks.gaussian(500, 4)
    given: dict[str, Any] = {"metric": metric, "include_self": include_self}
    graph = tonari.knn_graph(points[:-new], 8, **given)
    made, wanted = graph.add(points[:-new], points[-new:]), tonari.knn_graph(points, 8, **given)
    np.testing.assert_array_equal(made.indices, wanted.indices)
    np.testing.assert_array_equal(made.distances, wanted.distances)
    assert (made.method, made.report, made.include_self) == ("exact", None, include_self)


@pytest.mark.usefixtures("by_rounds")
def test_many_new_points_are_merged() -> None:
    a, b = POINTS[:900], POINTS[900:]
    made = tonari.knn_graph(a, 8).add(a, b, recall=0.97, seed=6, threads=1)
    assert (made.n, made.method, made.seed, reported(made).target) == (1400, "nn-descent", 6, 0.97)
    assert made.recall(POINTS, sample=1400).by_index >= 0.97


def test_what_is_added_to_an_approximate_graph_is_measured() -> None:
    a, b = POINTS[:-5], POINTS[-5:]
    made = tonari.knn_graph(a, 8, method="nn-descent", recall=0.9).add(a, b, recall=0.9)
    assert (made.n, made.method) == (1400, "nn-descent")
    assert reported(made).estimate.low >= 0.9
    assert made.recall(POINTS, sample=1400).by_index >= 0.9


def test_the_record_of_a_merge_by_force_proves_each_row_once(by_force: None) -> None:
    record = tonari.merge(*halves()).record
    assert record is not None
    assert (record.title, record.rows, record.proved, record.method) == ("merge", 1400, 1400, "")
    assert [choice.what for choice in record.choices] == ["sides"]
    assert record.seconds > 0


def test_the_record_of_a_merge_by_rounds_has_each_round(by_rounds: None) -> None:
    record = tonari.merge(*halves(), recall=0.9).record
    assert record is not None
    assert record.plan is not None
    assert (record.rows, record.method, record.plan.as_dict()["recall"]) == (1400, "nn-descent", 0.9)
    assert "s by rounds of NN-Descent" in record.reason
    assert [attempt.name for attempt in record.attempts] == [f"round {at + 1}" for at in range(len(record.attempts))]
    assert record.choices[0].what == "rounds"


def test_the_record_of_an_addition_says_how_points_were_added() -> None:
    few = tonari.knn_graph(POINTS[:-5], 8).add(POINTS[:-5], POINTS[-5:]).record
    assert few is not None
    assert (few.title, few.rows, few.proved) == ("add", 1400, 1400)
    assert few.choices[0].why == "5, at most 8 columns: all are compared with the others"
    assert [(part.title, part.proved) for part in few.parts] == [("knn_graph", 5)]
    many = tonari.knn_graph(POINTS[:-9], 8).add(POINTS[:-9], POINTS[-9:]).record
    assert many is not None
    assert many.choices[0].why == "9, more than 8 columns: their graph is built and merged"
    assert [(part.title, part.proved) for part in many.parts] == [("knn_graph", 9), ("merge", 1400)]
    alone = tonari.knn_graph(POINTS[:3], 1, include_self=True).add(POINTS[:3], POINTS[3:9]).record
    assert alone is not None
    assert (alone.proved, alone.rows) == (9, 9)


def test_points_that_are_not_the_graphs_are_refused() -> None:
    graph = tonari.knn_graph(POINTS[:50], 8)
    for new in (POINTS[50:53], POINTS[50:90]):
        with pytest.raises(ValueError, match="the graph has 50 rows, points 49: they must be"):
            graph.add(POINTS[:49], new)
