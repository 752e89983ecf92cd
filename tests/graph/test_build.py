"""Lists of a graph: who built them, the fallback of a method that misses its recall, and graphs of self alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers.checks import gaussian
from tonari.core.errors import Unsupported
from tonari.core.method import GraphLists
from tonari.filters.arguments import Given
from tonari.graph import build
from tonari.graph.build import build_allowed, build_lists
from tonari.methods.call import Call
from tonari.methods.decision import Decision
from tonari.metrics.reference import brute

POINTS = gaussian(40, 3)
TRUTH = brute(POINTS, POINTS, 4, self_ids=np.arange(40))


def call(**given: Any) -> Call:
    return Call.of({"points": POINTS}, graph=True, **given)


@pytest.mark.parametrize(
    ("given", "method"), [({}, "exact"), ({"method": "exact"}, "exact"), ({"method": "kdtree"}, "kdtree")]
)
def test_lists_name_the_method_that_built_them(given: dict[str, Any], method: str) -> None:
    made = build_lists(POINTS, 4, call(**given))
    assert (made.method, made.metric, made.include_self, made.report) == (method, "euclidean", False, None)
    assert made.found.indices.tolist() == TRUTH.indices.tolist()


@pytest.mark.parametrize("reached", [True, False])
def test_a_method_that_misses_its_recall_leaves_the_graph_to_the_fallback(
    reached: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    class Fake:
        def __init__(self, name: str, found: Any) -> None:
            self.name, self._found = name, found

        def build_graph(self, points: Any, plan: Any, **given: Any) -> GraphLists:
            asked.append((self.name, given["start"], given["patience"]))
            report = type("Report", (), {"reached": reached, "taken": lambda self, _: self})()
            return GraphLists(self._found, report, 3)

    plan = type("Plan", (), {"seconds": 2.0})()
    first = Decision(Fake("hasty", TRUTH), plan, instead=Decision(Fake("sure", TRUTH), plan, seconds=1.0))
    monkeypatch.setattr(build, "choose_or_plan", lambda *_: first)
    made = build_lists(POINTS, 4, call(), recall=0.9)
    assert made.method == ("hasty" if reached else "sure")
    assert asked == [("hasty", None, 1.0), ("sure", None, None)][: 2 - reached]


@pytest.mark.parametrize("given", [Given(), Given(where=np.ones(40, bool))])
def test_a_graph_of_self_alone_is_refused_where_a_search_would_be(given: Given) -> None:
    def built(asked: Call) -> Any:
        build = build_allowed if given else build_lists
        return build(POINTS, 1, asked, *([given] if given else []), include_self=True)  # type: ignore[operator]

    assert built(call(method="kdtree")).found.indices.ravel().tolist() == list(range(40))
    with pytest.raises(Unsupported, match="method='kdtree' supports"):
        built(call(method="kdtree", metric="cosine"))


def test_neighbours_by_rules_are_those_that_are_allowed() -> None:
    mask = np.arange(40) % 2 == 0
    made = build_allowed(POINTS, 3, call(), Given(where=mask), include_self=True)
    assert made.found.indices[:, 0].tolist() == list(range(40))
    assert mask[made.found.indices[:, 1:]].all()
    assert made.method == "exact"
    with pytest.raises(ValueError, match="start: where and batch are for exact graphs alone"):
        build_allowed(POINTS, 3, call(), Given(where=mask), recall=None, start="random")
