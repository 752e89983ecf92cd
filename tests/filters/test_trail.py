"""Decisions about rules of a search are recorded, and attempts answer every row once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tonari.core.trail import Record, recording
from tonari.filters import dropping, tuning
from tonari.filters.scope import Scope
from tonari.filters.searches import nearest

N, M, D, K = 1200, 60, 12, 5
POINTS = checks.gaussian(N, D)
GROUPS = np.arange(N) % 3


def ran(points: Any = POINTS, **rules: Any) -> Record:
    with recording("search", M) as record:
        tonari.search(POINTS[:M], points, K, method="exact", **rules)
    assert record.proved == record.rows == M
    return record


def names(record: Record) -> list[str]:
    return [attempt.name for attempt in record.attempts]


def why(record: Record) -> list[str]:
    return [choice.why for choice in record.choices if choice.what == "rules"]


def test_allowed_points_are_copied() -> None:
    mask = np.arange(N) % 2 == 0
    assert why(ran(where=mask)) == ["a copy of the 600 allowed points is searched, of 1,200"]
    both = ran(where=mask, exclude=[[0]] * M)
    assert why(both) == ["a copy of the 600 points that the mask allows is searched, of 1,200"]


def test_forbidden_points_are_dropped() -> None:
    record = ran(exclude=[list(range(30))] * M)
    assert names(record)[0].startswith("the nearest ")
    assert names(record)[0].endswith(", less forbidden ones")
    assert record.parts[0].title.endswith(" without rules")
    assert record.parts[0].proved == record.parts[0].rows >= M


def test_exact_values_of_lists_and_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    same = ran(query_groups=GROUPS[:M], point_groups=GROUPS)
    assert names(same) == ["exact values of the points of each group"]
    few = np.ones((M, N), bool)
    few[:, 20:] = False
    assert names(ran(where=few)) == ["exact values of all allowed points"]


def test_large_groups_are_searched_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "LARGE_PAIRS", 0)
    monkeypatch.setattr(Scope, "listed_seconds", lambda *_: 1e9)
    record = ran(query_groups=GROUPS[:M], point_groups=GROUPS)
    assert why(record) == ["large groups are copied, each searched by itself; small ones by exact values"]


def test_other_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest, "_is_complement_faster", lambda *_: True)
    record = ran(query_groups=GROUPS[:M], point_groups=GROUPS, groups="other")
    assert why(record) == ["the points of other groups are copied and searched for each group of queries"]


def test_memory_for_tables_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from tonari.core.errors import BudgetExceeded

    def refused(*_: Any, **__: Any) -> Any:
        raise BudgetExceeded("too little", least=1)

    monkeypatch.setattr(dropping, "_cut", refused)
    record = ran(exclude=[list(range(30))] * M)
    assert "exact values of allowed points: memory holds no search for the nearest" in why(record)[0]


def test_rows_that_may_find_nothing() -> None:
    far = np.where(np.arange(M) < 20, 9, GROUPS[:M])
    record = ran(query_groups=far, point_groups=GROUPS)
    assert record.proved == M
    assert names(ran(where=np.zeros(N, bool)))[-1] == "no point is allowed"


def test_graphs_have_a_record() -> None:
    graph = tonari.knn_graph(POINTS, K, where=np.arange(N) % 2 == 0)
    assert graph.record is not None
    assert graph.record.proved == N
    batches = tonari.knn_graph(POINTS, K, batch=GROUPS).record
    assert batches is not None
    assert batches.proved == N
    alone = tonari.knn_graph(POINTS, 1, include_self=True).record
    assert alone is not None
    assert alone.proved == N
