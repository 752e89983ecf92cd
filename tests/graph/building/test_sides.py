"""The two sides of a merge: graphs that fit their points, and refusals."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tonari.core.errors import Unsupported
from tonari.graph import tuning
from tonari.graph.building import sides as checking
from tonari.graph.knn_graph import KNNGraph
from tonari.metrics import METRICS

POINTS = checks.gaussian(1400, 6)


def halves(points: Any = POINTS, at: int = 700, k: int = 8, **given: Any) -> tuple[KNNGraph, KNNGraph, Any, Any]:
    """Return the arguments of merge."""
    a, b = points[:at], points[at:]
    return tonari.knn_graph(a, k, **given), tonari.knn_graph(b, k, **given), a, b


OTHERS = checks.gaussian(1400, 6, seed=9)


@pytest.mark.parametrize("given", [{}, {"include_self": True}, {"method": "nn-descent", "recall": 0.9}])
@pytest.mark.parametrize("share", [0.0, np.inf])
@pytest.mark.parametrize("metric", METRICS)
def test_a_graph_of_other_points_is_not_merged(
    metric: str, share: float, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "MERGE_SHARE", share)
    graph_a, graph_b, a, b = halves(np.abs(POINTS), metric=metric, **given)
    other = np.abs(OTHERS[:700])
    message = (
        rf"row \d+ lists point \d+ with {metric} [\d.e-]+, but rows \d+ and \d+ of points_{{}} have [\d.e-]+: pass"
    )
    for parts, name in (((graph_b, graph_a, a, b), "a"), ((graph_a, graph_b, a, other), "b")):
        with pytest.raises(ValueError, match=f"graph_{name}: " + message.format(name)):
            tonari.merge(*parts)
    for new in (b[:3], b):
        with pytest.raises(ValueError, match="the graph: " + message.format("").replace("points_", "points")):
            graph_a.add(other, new)


def test_points_in_another_order_are_not_the_graphs() -> None:
    graph_a, graph_b, a, b = halves()
    order = np.random.default_rng(5).permutation(700)
    with pytest.raises(ValueError, match=r"graph_b: row .* built, in the same order"):
        tonari.merge(graph_a, graph_b, a, b[order])
    with pytest.raises(ValueError, match=r"the graph: row .* built, in the same order"):
        graph_a.add(a[order], b[:2])


@pytest.mark.parametrize("dtype", ["float64", "float16", "uint8", "int8"])
@pytest.mark.parametrize("metric", ["euclidean", "cosine", "l1"])
def test_graphs_of_other_dtypes_are_of_their_points(metric: str, dtype: str) -> None:
    points = (30 * POINTS).clip(-120, 120).astype(np.int8 if dtype == "int8" else np.float64).astype(dtype)
    made = tonari.merge(*halves(points, 600, metric=metric))
    assert made.distances.dtype == (np.float64 if dtype == "float64" else np.float32)
    if dtype != "float64":  # the same points as float32, whose distances have the same bits
        graphs = halves(points.astype(np.float32), 600, metric=metric)[:2]
        again = tonari.merge(*graphs, points[:600], points[600:])
        np.testing.assert_array_equal(again.indices, made.indices)
    added = tonari.knn_graph(points[:-3], 4, metric=metric).add(points[:-3], points[-3:])
    np.testing.assert_array_equal(added.distances, tonari.knn_graph(points, 4, metric=metric).distances)


@pytest.mark.parametrize("name", checks.HOSTILE)
def test_a_graph_of_hostile_points_is_of_them(name: str) -> None:
    points = checks.HOSTILE[name](90, 5, 0)
    tonari.merge(*halves(points, 50, 4))


def test_rows_without_a_neighbour_say_nothing_of_the_points() -> None:
    graph_a, graph_b, a, b = halves(POINTS[:30], 15, 3)
    for graph in (graph_a, graph_b):
        graph.indices[::2], graph.distances[::2] = -1, np.inf
    parts = (dataclasses.replace(graph, method="imported") for graph in (graph_a, graph_b))
    with pytest.warns(UserWarning, match="not reached in 0 rounds"):  # the merge searches no neighbours of the own side
        assert tonari.merge(*parts, a, b).n == 30


def test_lists_that_were_spoilt_after_they_were_checked() -> None:
    graph_a, graph_b, a, b = halves(POINTS[:30], 15, 3)
    graph_b.indices[7, 2] = 99
    with pytest.raises(ValueError, match="graph_b: row 7 has an index outside -1 to 14"):
        tonari.merge(graph_a, graph_b, a, b)


@pytest.mark.parametrize("new", [3, 400])
def test_the_report_of_a_joined_graph_has_the_seconds_of_the_call(new: int, monkeypatch: pytest.MonkeyPatch) -> None:
    points = checks.gaussian(1_200, 8)
    first = len(points) - new
    graph = tonari.knn_graph(points[:first], 8, method="nn-descent", recall=0.9)
    taken, checked = time.perf_counter(), checking._check_distances

    def slowly(*arguments: Any) -> None:
        time.sleep(0.2)
        checked(*arguments)

    monkeypatch.setattr(checking, "_check_distances", slowly)
    report = graph.add(points[:first], points[first:], recall=0.9).report
    assert report is not None
    assert 0.2 < report.seconds <= time.perf_counter() - taken


GROUPS = np.arange(60) % 3
FILTERED: dict[str, dict[str, Any]] = {
    "batch=": {"batch": GROUPS},
    "where=": {"where": GROUPS > 0},
    "exclude_within=": {"exclude_within": 4},
    "where= and exclude_within=": {"exclude_within": 4, "where": GROUPS > 0},
}
VERBS: dict[str, Callable[[KNNGraph, Any], Any]] = {
    "add": lambda graph, points: graph.add(points, OTHERS[:2]),
    "add many": lambda graph, points: graph.add(points, OTHERS[:30]),
    "remove": lambda graph, points: graph.remove(points, [3]),
    "replace": lambda graph, points: graph.replace(points, [3], OTHERS[:1]),
    "recall": lambda graph, points: graph.recall(points),
    "page": lambda graph, points: graph.to_html(points),
}


@pytest.mark.parametrize("include_self", [False, True])
@pytest.mark.parametrize("by", FILTERED)
def test_full_lists_that_were_built_with_filters_are_neither_changed_nor_merged(by: str, include_self: bool) -> None:
    points = POINTS[:60]
    graph = tonari.knn_graph(points, 4, include_self=include_self, **FILTERED[by])
    plain = tonari.knn_graph(OTHERS[:60], 4, include_self=include_self)
    assert (graph.indices >= 0).all()
    for verb in VERBS.values():
        with pytest.raises(Unsupported, match=f"the graph: was built with {by}, so its lists leave out points"):
            verb(graph, points)
    with pytest.raises(Unsupported, match=f"graph_a: was built with {by}, .* by knn_graph with the same filters"):
        tonari.merge(graph, plain, points, OTHERS[:60])
    with pytest.raises(Unsupported, match=f"graph_b: was built with {by}, "):
        tonari.merge(plain, graph, OTHERS[:60], points)


def test_short_lists_of_an_exact_graph_are_not_merged() -> None:
    part = tonari.knn_graph(POINTS, 8).subset(np.arange(30))
    graph_a, graph_b = part, tonari.knn_graph(OTHERS, 8)
    with pytest.raises(ValueError, match=r"graph_a: row \d+ has 0 neighbours, expected 8: an exact graph"):
        tonari.merge(graph_a, graph_b, POINTS[:30], OTHERS)
    with pytest.raises(ValueError, match=r"graph_b: row \d+ has 0 neighbours, expected 8"):
        tonari.merge(graph_b, graph_a, OTHERS, POINTS[:30])
    imported = dataclasses.replace(part, method="imported")  # its report measures what it lacks
    assert tonari.merge(imported, graph_b, POINTS[:30], OTHERS).report is not None
