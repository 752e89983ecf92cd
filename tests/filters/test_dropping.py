"""More neighbours than are wanted, less those that are not allowed."""

from __future__ import annotations

import numpy as np

import tonari
from tests.helpers.filter_checks import assert_equal, nearest_allowed


def test_queries_whose_neighbours_are_all_excluded_ask_again() -> None:
    """The first guess of how many to ask for fails where what is forbidden is what is near."""
    points = np.arange(6_000, dtype=np.float32)[:, None]
    lists = [list(range(40)), list(range(3_000)), []]
    allowed = np.ones((3, 6_000), bool)
    for row, own in zip(allowed, lists, strict=True):
        row[own] = False
    queries = np.zeros((3, 1), np.float32)
    assert_equal(tonari.search(queries, points, 2, exclude=lists), nearest_allowed(queries, points, 2, allowed))
    groups = np.arange(6_000) // 2_000
    found = tonari.search(queries, points, 2, point_groups=groups, query_groups=[0, 1, 2], groups="other")
    assert found.indices.tolist() == [[2000, 2001], [0, 1], [0, 1]]
