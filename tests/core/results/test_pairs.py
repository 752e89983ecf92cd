"""Pairs of lists, and their records in files."""

from __future__ import annotations

import numpy as np
import pytest

from tonari.core.results.pairs import pairs_of, record_dtype
from tonari.core.results.radius_neighbors import RadiusNeighbors


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("first", [0, 3])
def test_each_entry_of_a_list_is_a_pair_of_its_row(dtype: str, first: int) -> None:
    found = RadiusNeighbors(np.array([0, 2, 2, 3]), np.array([7, 5, 9], dtype), np.array([0.5, 1.0, 2.0], np.float32))
    left, right, distances = pairs_of(found, first)
    assert left.tolist() == [first, first, first + 2]
    assert left.dtype == dtype
    assert right is found.indices
    assert distances is found.distances


def test_lists_of_nothing_are_no_pairs() -> None:
    none = pairs_of(RadiusNeighbors(np.zeros(4, np.int64), np.empty(0, np.int32), np.empty(0)), 5)
    assert [len(part) for part in none] == [0, 0, 0]


def test_records_are_packed() -> None:
    assert record_dtype("int32", "float32").itemsize == 12
    assert record_dtype("int64", "float64").itemsize == 24
