"""Overrides of a plan: impossible ones, and unusual ones that work."""

from __future__ import annotations

from typing import Any

import pytest

import tonari
from tests.helpers import checks
from tests.helpers.checks import assert_same_neighbors
from tonari.metrics.reference import brute


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ({"tile": 3}, r"cannot override tile; these can be: .*capacity, direct, form_dim, isa, .*precisions"),
        ({"isa": "sse9"}, r"cannot run the instruction set 'sse9'; it can run generic"),
        ({"precisions": ("float8",)}, r"precisions=\('float8',\): expected a tuple in the order int8"),
        ({"precisions": ("int8",), "metric": "l1"}, r"no int8 kernel for l1"),
        ({"precisions": "float32"}, "precisions"),
        ({"point_chunk": 100}, r"point_chunk must be a multiple of 96, got 100"),
        ({"point_chunk": -96}, "point_chunk"),
        ({"point_chunk": 0}, "point_chunk"),
        ({"query_block": -1}, "query_block"),
        ({"query_block": 0}, "query_block"),
        ({"capacity": -5}, "capacity"),
        ({"capacity": 0}, "capacity"),
        ({"point_splits": -1}, "point_splits"),
        ({"point_splits": 0}, "point_splits"),
        ({"sample_rank": 5, "sample_stride": 0}, "sample_"),
        ({"sample_rank": 5, "sample_stride": -3}, "sample_"),
        ({"sample_rank": -1, "sample_stride": 3}, "sample_"),
        ({"n": 0}, r"n=0: expected a whole number of at least 1"),
        ({"m": 0}, r"m=0: expected a whole number of at least 1"),
        ({"d": -1}, r"d=-1: expected a whole number of at least 1"),
        ({"k": 501}, r"k=501: the largest k is 500, as there are 500 points"),
        ({"dtype": "int32"}, r"dtype int32 is not supported; expected one of float32, float16"),
    ],
    ids=str,
)
def test_what_cannot_work_is_refused(override: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tonari.plan(**({"n": 500, "m": 500, "d": 4, "k": 9} | override))


@pytest.mark.parametrize(
    "override", [{"query_block": 1.5}, {"point_chunk": "many"}, {"capacity": 3.5}, {"point_splits": "2"}], ids=str
)
def test_overrides_of_a_wrong_type_are_refused_by_name(override: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError), match=next(iter(override))):
        tonari.plan(500, 500, 4, 9, **override)


@pytest.mark.parametrize(
    "override",
    [{"sample_rank": 10**6, "sample_stride": 4}, {"point_splits": 100, "threads": 2}, {"query_block": 10**6}],
    ids=str,
)
def test_odd_overrides_that_work(override: dict[str, Any]) -> None:
    rows = checks.gaussian(500, 4)
    plan = tonari.plan(500, 500, 4, 9, **override)
    assert_same_neighbors(tonari.search(rows, rows, 9, plan=plan), brute(rows, rows, 9))
