"""Lists of a graph: the method that built them, the fallback if recall is missed, and graphs of one point."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers.checks import gaussian
from tonari.core.errors import Unsupported
from tonari.core.method import GraphLists
from tonari.graph.building import build
from tonari.methods.decision import Decision
from tonari.metrics.reference import brute

POINTS = gaussian(40, 3)
TRUTH = brute(POINTS, POINTS, 4, self_ids=np.arange(40))


def test_lists_name_the_method_that_built_them() -> None:
    for given, method in (("auto", "exact"), ("exact", "exact"), ("kdtree", "kdtree")):
        made = tonari.knn_graph(POINTS, 4, method=given)
        assert (made.method, made.metric, made.include_self, made.report) == (method, "euclidean", False, None)
        assert made.indices.tolist() == TRUTH.indices.tolist()


@pytest.mark.parametrize("reached", [True, False])
def test_a_method_that_misses_its_recall_leaves_the_graph_to_the_fallback(
    reached: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    class Fake:
        def __init__(self, name: str) -> None:
            self.name = name

        def build_graph(self, points: Any, plan: Any, **given: Any) -> GraphLists:
            asked.append((self.name, given["start"], given["patience"]))
            report = type("Report", (), {"reached": reached, "taken": lambda self, _: self})()
            return GraphLists(TRUTH, report, 3)

    plan = type("Plan", (), {"seconds": 2.0})()
    first = Decision(Fake("hasty"), plan, instead=Decision(Fake("sure"), plan, seconds=1.0))
    monkeypatch.setattr(build, "choose_or_plan", lambda *_, **__: first)
    made = tonari.knn_graph(POINTS, 4, recall=0.9)
    assert made.method == ("hasty" if reached else "sure")
    assert asked == [("hasty", None, 1.0), ("sure", None, None)][: 2 - reached]


def test_a_graph_of_self_alone_is_refused_where_a_search_would_be() -> None:
    for where in (None, np.ones(40, bool)):
        made = tonari.knn_graph(POINTS, 1, method="kdtree", include_self=True, where=where)
        assert made.indices.ravel().tolist() == list(range(40))
        with pytest.raises(Unsupported, match="method='kdtree' supports"):
            tonari.knn_graph(POINTS, 1, method="kdtree", metric="cosine", include_self=True, where=where)


def test_neighbours_by_rules_are_those_that_are_allowed() -> None:
    mask = np.arange(40) % 2 == 0
    made = tonari.knn_graph(POINTS, 3, where=mask, include_self=True)
    assert made.indices[:, 0].tolist() == list(range(40))
    assert mask[made.indices[:, 1:]].all()
    assert made.method == "exact"
    with pytest.raises(ValueError, match="start: where, batch and exclude_within are for exact graphs alone"):
        tonari.knn_graph(POINTS, 3, where=mask, start="random")
