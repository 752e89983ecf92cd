"""The choice of a traversal."""

from __future__ import annotations

from typing import Any

import pytest

from tests.helpers import plans
from tonari.kdtree.plan import TreePlan

DEVICES = ("cuda:0",)


def made(n: int = 1000, m: int = 100, d: int = 5, k: int = 4, **choices: Any) -> TreePlan:
    return plans.tree(n, m, d, k, **{"dtype": "float32", "metric": "euclidean"} | choices)


def on_cuda(n: int = 10**6, m: int = 10**5, d: int = 5, k: int = 4, **choices: Any) -> TreePlan:
    return made(n, m, d, k, **{"devices": DEVICES, "free_bytes": 80 * 10**9} | choices)


@pytest.mark.parametrize("make", [made, on_cuda])
def test_the_walk_is_the_default_and_buffers_are_those_of_the_paper(make: Any) -> None:
    assert (make().traversal, make().buffer) == ("walk", 0)
    assert make(traversal="walk") == make()
    least = 64 if make is made else 1 << 18
    for height in (0, 2, 9):
        plan = make(height=height, traversal="buffered")
        assert (plan.traversal, plan.buffer) == ("buffered", max(least, 2 ** (22 - height)))
    assert make(n=2**24, height=20, traversal="buffered").buffer == least
    assert make(traversal="buffered", buffer=5).buffer == 5
