"""Memory of a plan: budgets are kept, used, or refused with the smallest sufficient budget."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tonari


def test_output_bytes_are_those_of_the_result() -> None:
    for dtype in ("float32", "float64", "uint8"):
        plan = tonari.plan(50, 10, 4, 3, dtype=dtype)
        found = tonari.search(np.ones((10, 4), dtype), np.ones((50, 4), dtype), 3)
        assert plan.output_bytes == sum(part.nbytes for part in found)


def test_a_budget_is_kept_or_refused_with_the_least_that_works() -> None:
    problem = {"n": 200_000, "m": 1000, "d": 64, "k": 10, "threads": 2, "point_chunk": 960, "query_block": 32}
    free = tonari.plan(**problem)
    assert free.resident
    assert tonari.plan(**problem, memory=10 * free.total_bytes) == free
    steady = tonari.plan(**problem, memory=free.total_bytes - 1)
    assert steady.resident
    assert not steady.adaptive
    thrifty = tonari.plan(**problem, memory=steady.total_bytes - 1)
    assert thrifty.resident
    assert thrifty.stream_blocks < steady.stream_blocks == free.stream_blocks
    assert free.resident_memory < thrifty.total_bytes < steady.total_bytes < free.total_bytes
    assert tonari.plan(**problem, memory=free.resident_memory).resident
    tight = tonari.plan(**problem, memory=free.resident_memory - 1)
    assert 0 < tight.resident_points < tight.n
    assert tight.total_bytes < free.resident_memory
    with pytest.raises(ValueError, match=r"budget of 1000000 bytes cannot hold") as refused:
        tonari.plan(**problem, memory="1MB")
    least = int(re.search(r"allow at least (\d+)", str(refused.value))[1])  # type: ignore[index]
    assert tonari.plan(**problem, memory=least).total_bytes <= least
    with pytest.raises(ValueError, match="cannot hold"):
        tonari.plan(**problem, memory=least - 1)


@pytest.mark.parametrize("m", [1, 100, 10_000])
@pytest.mark.parametrize("k", [1, 10, 300])
@pytest.mark.parametrize("threads", [1, 2, 8])
def test_every_budget_is_kept_and_used(m: int, k: int, threads: int) -> None:
    problem: dict[str, Any] = {"n": 200_000, "m": m, "d": 128, "k": k, "threads": threads}
    enough, row = tonari.plan(**problem).resident_memory, 128 + 24
    refused = 0
    for percent in (*range(5, 100, 5), 99):
        budget = enough * percent // 100
        try:
            plan = tonari.plan(**problem, memory=budget)
        except ValueError:
            refused += 1
            continue
        assert plan.total_bytes <= budget
        assert plan.resident_points % plan.point_chunk == 0
        assert not plan.resident
        if plan.precisions[0] == "int8":  # there is no memory for another slice
            assert budget - plan.total_bytes < plan.point_chunk * row
    assert refused < 19
    assert tonari.plan(**problem, memory=enough).resident


def test_100_mb_hold_what_takes_80() -> None:
    problem: dict[str, Any] = {"n": 200_000, "d": 384, "threads": 2, "memory": "100MB", "dtype": "uint8"}
    for m, k in ((1, 1), (1, 10), (1000, 100)):
        plan = tonari.plan(m=m, k=k, **problem)
        if plan.precisions[0] == "int8":
            assert plan.resident
