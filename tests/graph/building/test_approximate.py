"""Arguments of approximate graphs."""

from __future__ import annotations

from typing import Any

import pytest

import tonari
from tests.helpers import checks
from tonari.graph.building.build import GraphOptions, entries_of_start, kind_of_start, may_miss
from tonari.methods.places.place import CpuPlace

GRAPH = tonari.knn_graph(checks.gaussian(30, 3), 4)
PLAN = tonari.plan(30, 30, 3, 4, method="nn-descent")


@pytest.mark.parametrize(
    ("method", "given", "expected"),
    [
        ("auto", {}, False),
        ("exact", {}, False),
        ("auto", {"recall": 0.9}, True),
        ("nn-descent", {}, True),
        ("auto", {"plan": PLAN}, True),
    ],
)
def test_which_graphs_may_miss_neighbours(method: str, given: dict[str, Any], expected: bool) -> None:
    assert may_miss(method, GraphOptions(**given)) is expected


@pytest.mark.parametrize(
    ("method", "given", "message"),
    [
        ("exact", {"recall": 0.9}, "recall"),
        ("auto", {"seed": 3}, "seed"),
        ("auto", {"start": "random"}, "start"),
        ("exact", {"update": "pull"}, "update"),
        ("nn-descent", {"recall": 1.5}, "recall"),
        ("nn-descent", {"update": "push"}, "update"),
        ("auto", {"plan": PLAN, "recall": 0.9}, "recall=0.9: a plan has its own recall"),
        ("auto", {"plan": PLAN, "start": "random"}, "start='clusters', this call start='random'"),
        ("nn-descent", {"start": "anywhere"}, "start='anywhere': expected"),
    ],
)
def test_arguments_that_do_not_apply_are_refused(method: str, given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        may_miss(method, GraphOptions(**given))


def test_starts_have_a_kind_and_entries() -> None:
    assert [kind_of_start(start) for start in (None, "random", "clusters", GRAPH.lists)] == [
        "clusters",
        "random",
        "clusters",
        "graph",
    ]
    assert entries_of_start(CpuPlace(), "random", 30) is None
    assert entries_of_start(CpuPlace(), GRAPH.lists, 30).tolist() == GRAPH.indices.tolist()
    with_self = tonari.knn_graph(checks.gaussian(30, 3), 5, include_self=True)
    assert entries_of_start(CpuPlace(), with_self.lists, 30).tolist() == GRAPH.indices.tolist()
    with pytest.raises(ValueError, match="start is a graph of 30 points, but there are 31"):
        entries_of_start(CpuPlace(), GRAPH.lists, 31)
