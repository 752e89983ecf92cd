"""How many points are asked for where some of what is found will be dropped."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tonari.filters import tuning
from tonari.filters.dropping import _length

FEW, MANY = 2, tuning.MANY_QUERIES


def scope(n: int, *devices: str) -> Any:
    place = SimpleNamespace(devices=devices)
    return SimpleNamespace(n=n, points=SimpleNamespace(call=SimpleNamespace(place=place)))


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
def test_the_cpu_is_asked_for_no_more_than_is_wanted(m: int) -> None:
    assert [_length(scope(1000), m, size) for size in (1, 9, 33, 1000)] == [1, 9, 33, 1000]
