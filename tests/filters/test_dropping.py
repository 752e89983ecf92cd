"""More neighbours are searched than wanted, and forbidden ones are dropped: the number of neighbours to search."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers.filter_checks import assert_equal, nearest_allowed
from tonari.filters import tuning
from tonari.filters.dropping import _length

FEW, MANY = 2, tuning.MANY_QUERIES


def scope(n: int, *devices: str, fitting: int | None = None) -> Any:
    """Make a scope whose memory holds searches for at most this number of points."""
    place = SimpleNamespace(devices=devices)

    def seconds(m: int, k: int) -> float:
        assert fitting is not None
        return 1.0 if k <= fitting else math.inf

    points = SimpleNamespace(call=SimpleNamespace(place=place))
    rows = np.empty((1, 4), np.float32)
    memory = None if fitting is None else 1 << 30
    return SimpleNamespace(n=n, points=points, memory=memory, room=1 << 30, rows=rows, seconds=seconds)


@pytest.mark.parametrize(
    ("m", "lengths"), [(FEW, {32, 128, 512, 1000}), (MANY, {32, 64, 128, 256, 512, 1000})], ids=["few", "many"]
)
def test_devices_are_asked_for_few_lengths(m: int, lengths: set[int]) -> None:
    asked = {size: _length(scope(1000, "cuda:0"), m, size) for size in range(1, 1001)}
    assert set(asked.values()) == lengths
    assert all(size <= length for size, length in asked.items())
    assert all(length == min(of for of in lengths if of >= size) for size, length in asked.items())


def test_few_points_are_asked_for_all() -> None:
    assert _length(scope(20, "cuda:0"), FEW, 7) == 20


@pytest.mark.parametrize("m", [FEW, MANY])
@pytest.mark.parametrize("fitting", [0, 31, 40, 47, 127, 128, 999])
def test_memory_that_holds_no_such_length_is_asked_for_the_longest_that_it_holds(m: int, fitting: int) -> None:
    unlimited = {size: _length(scope(1000, "cuda:0"), m, size) for size in (33, 40, 200, 1000)}
    for size, length in unlimited.items():
        asked = _length(scope(1000, "cuda:0", fitting=fitting), m, size)
        assert asked == (length if length <= fitting else max(size, fitting))


@pytest.mark.parametrize("m", [FEW, MANY])
def test_the_cpu_is_asked_for_no_more_than_is_wanted(m: int) -> None:
    assert [_length(scope(1000), m, size) for size in (1, 9, 33, 1000)] == [1, 9, 33, 1000]


def test_queries_whose_neighbours_are_all_excluded_ask_again() -> None:
    """The first guess fails if the forbidden points are the near ones."""
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
