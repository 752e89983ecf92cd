"""Radius searches of an Index return ids, after any additions and removals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tonari

LINE = np.arange(10, dtype=np.float32)[:, None]


def changed() -> tonari.Index:
    """Make an Index of points 0 to 11 on a line: 2 and 3 are removed, 10 and 11 are added later."""
    index = tonari.Index(LINE, method="exact")
    index.add(np.array([[10.0], [11.0]], np.float32))
    index.remove([2, 3])
    return index


def test_ids_are_those_that_are_left() -> None:
    found = changed().radius_search(np.array([[3.0], [10.0]], np.float32), 2.0)
    assert found.indptr.tolist() == [0, 3, 7]
    assert found.indices.tolist() == [4, 1, 5, 10, 9, 11, 8]
    assert found.distances.tolist() == [1, 2, 2, 0, 1, 1, 2]


def test_counts_are_those_of_the_lists() -> None:
    cases: list[Any] = [(True, [3, 4]), (False, [1, 3])]
    for closed, counts in cases:
        queries = np.array([[3.0], [10.0]], np.float32)
        assert changed().radius_count(queries, 2.0, closed=closed).tolist() == counts
        assert np.diff(changed().radius_search(queries, 2.0, closed=closed).indptr).tolist() == counts


def test_the_nearest_so_many_and_rules_are_about_ids() -> None:
    index, queries = changed(), np.array([[3.0]], np.float32)
    assert index.radius_search(queries, 4.0, max_neighbors=2).indices.tolist() == [4, 1]
    mask = np.arange(index.next_id) > 4
    assert index.radius_search(queries, 4.0, where=mask).indices.tolist() == [5, 6, 7]
    assert index.radius_count(queries, 4.0, where=mask, exclude=[[6]]).tolist() == [2]
    with pytest.raises(ValueError, match="max_neighbors=0"):
        index.radius_search(queries, 4.0, max_neighbors=0)


def test_no_queries_find_nothing() -> None:
    index = changed()
    none = index.radius_search(LINE[:0], 1.0)
    assert (none.indptr.tolist(), len(none.indices)) == ([0], 0)
    assert index.radius_count(LINE[:0], 1.0).shape == (0,)
