"""Arguments of approximate graphs."""

from __future__ import annotations

from typing import Any

import pytest

import tonari
from tests.helpers import checks
from tonari.graph.approximate import entries_of_start, kind_of_start, may_miss
from tonari.methods.place import CpuPlace

GRAPH = tonari.knn_graph(checks.gaussian(30, 3), 4)
PLAN = tonari.plan(30, 30, 3, 4, method="nn-descent")
NOTHING: dict[str, Any] = dict.fromkeys(("recall", "seed", "start", "update", "plan"))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"method": "auto"}, False),
        ({"method": "exact"}, False),
        ({"method": "auto", "recall": 0.9}, True),
        ({"method": "nn-descent"}, True),
        ({"method": "auto", "plan": PLAN}, True),
    ],
)
def test_which_graphs_may_miss_neighbours(given: dict[str, Any], expected: bool) -> None:
    assert may_miss(**NOTHING | given) is expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"method": "exact", "recall": 0.9}, "recall"),
        ({"method": "auto", "seed": 3}, "seed"),
        ({"method": "auto", "start": "random"}, "start"),
        ({"method": "exact", "update": "pull"}, "update"),
        ({"method": "nn-descent", "recall": 1.5}, "recall"),
        ({"method": "nn-descent", "update": "push"}, "update"),
        ({"method": "auto", "plan": PLAN, "recall": 0.9}, "recall=0.9: a plan has its own recall"),
        ({"method": "auto", "plan": PLAN, "start": "random"}, "start='clusters', this call start='random'"),
        ({"method": "nn-descent", "start": "anywhere"}, "start='anywhere': expected"),
    ],
)
def test_arguments_that_do_not_apply_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        may_miss(**NOTHING | given)


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
