"""Memory of a graph by NN-Descent."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.helpers import plans
from tonari.nn_descent.plan import DescentPlan

GIB = 1 << 30


def made(n: int = 100_000, d: int = 32, k: int = 10, **given: Any) -> DescentPlan:
    return plans.descent(n, d, k, **{"dtype": "float32", "metric": "euclidean", "threads": 2} | given)


def on_cuda(n: int = 10**6, d: int = 128, k: int = 10, **given: Any) -> DescentPlan:
    usual = {"dtype": "float32", "metric": "euclidean", "devices": ("cuda:0",), "free_bytes": 70 * GIB}
    return plans.descent(n, d, k, **usual | given)


def test_a_budget_is_kept_or_refused_with_the_least_that_works() -> None:
    free = made()
    assert made(memory=free.total_bytes) == free
    with pytest.raises(ValueError, match="cannot hold a graph by NN-Descent") as refused:
        made(memory=free.total_bytes - 1)
    assert re.findall(r"allow at least (\d+)", str(refused.value)) == [str(free.total_bytes)]
    assert made(list_size=10).total_bytes < free.total_bytes


def test_memory_counts_lists_twice_and_the_graph() -> None:
    one, more = (made(list_size=size, start="random") for size in (32, 64))
    assert more.working_bytes - one.working_bytes >= 2 * 100_000 * 32 * 4
    assert one.output_bytes == 100_000 * 10 * 8
    assert made(dtype="float64").output_bytes == 100_000 * 10 * 12
    for plan in (one, on_cuda()):
        parts = (plan.packed_bytes, plan.copied_bytes, plan.working_bytes, plan.output_bytes)
        assert plan.total_bytes == sum(parts) == plan.as_dict()["total_bytes"]
