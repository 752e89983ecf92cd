"""Points that calls search: a decision that depends only on sizes is made once for all functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tonari.core.errors import Unsupported
from tonari.exact.cpu.method import ExactOnCpu
from tonari.kdtree.cpu.method import TreeOnCpu
from tonari.methods.call import Call
from tonari.methods.options import Options
from tonari.methods.places.points import Points

POINTS, QUERIES = checks.gaussian(90, 5), checks.gaussian(7, 5, 1)
VERBS: dict[str, Any] = {
    "search": lambda: tonari.search(QUERIES, POINTS, 3),
    "graph": lambda: tonari.knn_graph(POINTS, 3).indices,
    "radius_search": lambda: tonari.radius_search(QUERIES, POINTS, 2.0),
    "radius_count": lambda: (tonari.radius_count(QUERIES, POINTS, 2.0),),
    "radius_graph": lambda: tonari.radius_graph(POINTS, 2.0, max_neighbors=4),
    "pairs": lambda: tonari.pairs(POINTS, 2.0),
}


@pytest.mark.parametrize("verb", list(VERBS))
def test_nothing_is_planned_twice(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = VERBS[verb]()

    def plan(*_: Any, **__: Any) -> Any:
        raise AssertionError("planned again")

    for method in (ExactOnCpu, TreeOnCpu):
        monkeypatch.setattr(method, "plan", plan)
    for ours, theirs in zip(VERBS[verb](), first, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    with pytest.raises(AssertionError, match="planned again"):
        tonari.search(QUERIES, POINTS[1:], 3)


def test_a_method_that_does_not_serve_a_k_is_gone_around(monkeypatch: pytest.MonkeyPatch) -> None:
    those = Points(POINTS, Call.of({"points": POINTS}, Options(method="kdtree")))
    monkeypatch.setattr(TreeOnCpu, "refuses", lambda self, problem: "too many" if problem.k > 8 else None)
    assert those.decided(QUERIES, 8, False, around=True).plan.method == "kdtree"
    assert those.decided(QUERIES, 9, False, around=True).plan.method == "exact"
    with pytest.raises(Unsupported, match="too many"):
        those.refuse_unsupported(QUERIES, 9)


def test_other_memory_is_another_call() -> None:
    those = Points(POINTS, Call.of({"points": POINTS}, Options(threads=1, memory="1GB")))
    less = those.within_memory(10**6)
    assert (less.call.memory, those.call.memory, less.call.threads) == (10**6, 10**9, 1)
    assert less.rows is those.rows
    assert less.problem(QUERIES, 3).memory == 10**6
