"""Few points for each query: lists by groups or tables, in blocks that fit in memory."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from tests.helpers.checks import gaussian
from tests.helpers.filter_checks import assert_equal, excluded_of, nearest_allowed
from tests.helpers.scopes import scope_of
from tonari.core.process.progress import Progress
from tonari.filters.listed import by_table, group_sizes, groups_of, in_room, lists_bytes, nothing
from tonari.filters.rules import Rules
from tonari.filters.searches.nearest import fill

N, M, K = 60, 9, 4
POINTS, QUERIES = gaussian(N, 3), gaussian(M, 3, 1)
GROUPS = np.random.default_rng(0).integers(0, 4, N)
ASKED = np.array([0, 1, 2, 3, 9, 0, 1, 2, 3])  # 9 has no points


def bar() -> Progress:
    return Progress(False, total=M, seconds=None, label="", unit="query")


def test_tables_find_the_nearest_of_what_is_allowed() -> None:
    for room in [1, 3000, 1 << 30]:
        mask = np.random.default_rng(1).random((M, N)) < 0.1
        mask[2] = False
        scope = dataclasses.replace(scope_of(POINTS, method="exact", threads=1), room=room)
        found = nothing(M, K, scope, QUERIES, N)
        by_table(scope, QUERIES, K, Rules(m=M, n=N, mask=mask), found, bar(), np.arange(M))
        assert_equal(found, nearest_allowed(QUERIES, POINTS, K, mask))


def test_lists_by_groups_find_the_nearest_of_each() -> None:
    for room in [1, 1 << 30]:
        for excluded in [False, True]:
            pairs = np.arange(M * N)[::5] if excluded else None
            lists = None if pairs is None else excluded_of(pairs, M, N)
            rules = Rules(m=M, n=N, query_groups=ASKED, point_groups=GROUPS, same=True, excluded=lists)
            scope = dataclasses.replace(scope_of(POINTS, method="exact", threads=1), room=room)
            found = nothing(M, K, scope, QUERIES, N)
            fill(scope, QUERIES, K, rules, found, bar())
            allowed = ASKED[:, None] == GROUPS
            if excluded:
                allowed.ravel()[pairs] = False
            assert_equal(found, nearest_allowed(QUERIES, POINTS, K, allowed))


def test_groups_are_those_of_the_points_and_queries_that_are_searched() -> None:
    rules = Rules(m=M, n=N, query_groups=ASKED, point_groups=GROUPS)
    rows, ids = np.array([1, 4, 5]), np.arange(10, 30)
    order, begins, ends = groups_of(rules.part(rows, ids))
    for row, begin, end in zip(rows, begins, ends, strict=True):
        assert order[begin:end].tolist() == np.flatnonzero(GROUPS[ids] == ASKED[row]).tolist()


@pytest.mark.parametrize("apart", [1, 1 << 20])
def test_sizes_of_groups_are_those_of_the_points_that_are_searched(apart: int) -> None:
    """Groups with 16-bit numbers and others; a query of a group without points, below and above all others."""
    asked = np.concatenate([ASKED, [-7, 99]]) * apart
    rules = Rules(m=M + 2, n=N, query_groups=asked, point_groups=GROUPS * apart)
    rows, ids = np.array([1, 4, M, M + 1]), np.arange(10, 30)
    for part, mine, there in ((rules, asked, GROUPS), (rules.part(rows, ids), asked[rows], GROUPS[ids])):
        assert group_sizes(part).tolist() == [(there * apart == group).sum() for group in mine]


def test_missing_lists_take_what_is_said() -> None:
    cases: list[Any] = [("euclidean", "float32"), ("inner_product", "float64")]
    for metric, dtype in cases:
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
