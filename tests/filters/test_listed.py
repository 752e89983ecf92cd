"""Few points for each query: lists by groups or by tables, in blocks that memory holds."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from tests.helpers.checks import gaussian
from tests.helpers.filter_checks import assert_equal, nearest_allowed
from tests.helpers.scopes import scope_of
from tonari.core.progress import Progress
from tonari.filters.listed import by_lists, by_table, groups_of, in_room, lists_bytes, nothing
from tonari.filters.rules import Rules
from tonari.filters.shared import SharedMask

N, M, K = 60, 9, 4
POINTS, QUERIES = gaussian(N, 3), gaussian(M, 3, 1)
GROUPS = np.random.default_rng(0).integers(0, 4, N)
ASKED = np.array([0, 1, 2, 3, 9, 0, 1, 2, 3])  # of which 9 has no points


def bar() -> Progress:
    return Progress(False, total=M, seconds=None, label="", unit="query")


@pytest.mark.parametrize("room", [1, 3000, 1 << 30])
def test_tables_find_the_nearest_of_what_is_allowed(room: int) -> None:
    mask = np.random.default_rng(1).random((M, N)) < 0.1
    mask[2] = False
    scope = dataclasses.replace(scope_of(POINTS, method="exact", threads=1), room=room)
    found = nothing(M, K, scope, QUERIES, N)
    by_table(scope, QUERIES, K, Rules(m=M, n=N, mask=mask), found, bar(), np.arange(M))
    assert_equal(found, nearest_allowed(QUERIES, POINTS, K, mask))


@pytest.mark.parametrize("room", [1, 1 << 30])
@pytest.mark.parametrize("shared", [False, True])
def test_lists_by_groups_find_the_nearest_of_each(shared: bool, room: int) -> None:
    mask = np.arange(N) % 3 > 0
    rules = Rules(
        m=M, n=N, query_groups=ASKED, point_groups=GROUPS, same=True, shared=SharedMask(mask) if shared else None
    )
    order, begins, ends = groups_of(rules)
    scope = dataclasses.replace(scope_of(POINTS, method="exact", threads=1), room=room)
    found = nothing(M, K, scope, QUERIES, N)
    rows = np.arange(M)[::-1]  # whatever the order of the queries
    lists: dict[str, Any] = {"order": order, "begins": begins[rows], "ends": ends[rows]}
    by_lists(scope, QUERIES, K, rules, found, bar(), rows=rows, **lists)
    allowed = (ASKED[:, None] == GROUPS) & (mask if shared else True)
    assert_equal(found, nearest_allowed(QUERIES, POINTS, K, allowed))


def test_groups_are_those_of_the_points_and_queries_that_are_searched() -> None:
    rules = Rules(m=M, n=N, query_groups=ASKED, point_groups=GROUPS)
    rows, ids = np.array([1, 4, 5]), np.arange(10, 30)
    order, begins, ends = groups_of(rules.part(rows, ids))
    for row, begin, end in zip(rows, begins, ends, strict=True):
        assert order[begin:end].tolist() == np.flatnonzero(GROUPS[ids] == ASKED[row]).tolist()


@pytest.mark.parametrize(("metric", "dtype"), [("euclidean", "float32"), ("inner_product", "float64")])
def test_missing_lists_take_what_is_said(metric: str, dtype: str) -> None:
    scope = scope_of(POINTS.astype(dtype), metric)
    made = nothing(5, 3, scope, QUERIES, N)
    assert made.distances.dtype == dtype
    assert (made.distances == (-np.inf if metric == "inner_product" else np.inf)).all()
    assert (made.indices == -1).all()
    assert made.distances.nbytes + made.indices.nbytes == lists_bytes(5, 3, scope, QUERIES)


def test_rows_that_fit_together_are_taken_together() -> None:
    blocks = list(in_room(np.array([3, 3, 3, 10, 1]), 6))
    assert [(block.start, block.stop) for block in blocks] == [(0, 2), (2, 3), (3, 4), (4, 5)]
    assert list(in_room(np.empty(0, np.int64), 6)) == []
