"""Memory of trees and of their searches."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tests.helpers import plans
from tonari.kdtree.memory import tree_bytes
from tonari.kdtree.plan import TreePlan
from tonari.kdtree.reference import build_reference

DEVICES = ("cuda:0",)


def made(n: int = 1000, m: int = 100, d: int = 5, k: int = 4, **choices: Any) -> TreePlan:
    return plans.tree(n, m, d, k, **{"dtype": "float32", "metric": "euclidean"} | choices)


def on_cuda(n: int = 10**6, m: int = 10**5, d: int = 5, k: int = 4, **choices: Any) -> TreePlan:
    return made(n, m, d, k, **{"devices": DEVICES, "free_bytes": 80 * 10**9} | choices)


@pytest.mark.parametrize(("n", "d", "height"), [(1, 2, 0), (1000, 3, 4), (4097, 5, 8), (100, 1, 6)])
def test_bytes_of_the_tree_are_counted(n: int, d: int, height: int) -> None:
    for double in (False, True):
        tree = build_reference(np.random.default_rng(0).random((n, d)), height, double)
        assert tree_bytes(n, d, height, 8 if double else 4) == tree.nbytes


def test_a_budget_is_kept_or_refused_with_the_least_that_works() -> None:
    free = made(n=100_000)
    assert made(n=100_000, memory=free.total_bytes) == free
    with pytest.raises(ValueError, match="cannot hold") as refused:
        made(n=100_000, memory=free.total_bytes - 1)
    assert int(re.search(r"allow at least (\d+)", str(refused.value))[1]) == free.total_bytes  # type: ignore[index]


def test_queries_between_rounds_are_counted() -> None:
    """Values, lists, keys and records of queries, and the buffers of every thread, stay within the plan."""
    sizes = {"n": 10**6, "m": 10**7, "d": 10, "k": 10, "threads": 3}
    walk, buffered = made(**sizes), made(**sizes, traversal="buffered")
    row = 10 * 4 + 10 * 8 + 4 * 4
    assert 10 * walk.query_block < buffered.query_block < 2 * 2**20 / row
    assert buffered.packed_bytes <= walk.packed_bytes
    larger = made(**sizes, traversal="buffered", query_block=10**6)
    assert larger.working_bytes - buffered.working_bytes > 3 * (10**6 - buffered.query_block) * row
    assert made(**sizes | {"k": 10**5}, traversal="buffered").query_block == walk.query_block
    low, tall = (made(**sizes, height=height, query_block=512, traversal="buffered") for height in (14, 19))
    assert tall.working_bytes - low.working_bytes >= 3 * 8 * (2**19 - 2**14)
    assert made(m=7, traversal="buffered", threads=2).query_block == 1


def test_queries_between_rounds_are_counted_on_cuda() -> None:
    sizes = {"n": 2 * 10**6, "m": 10**8, "d": 10, "k": 10, "host_queries": False}
    walk, buffered = on_cuda(**sizes), on_cuda(**sizes, traversal="buffered")
    assert buffered.query_block == walk.query_block == 10**8
    assert buffered.working_bytes >= walk.working_bytes + 10**8 * 100
    tight = on_cuda(**sizes, traversal="buffered", memory=2 * 10**10)
    assert tight.query_block < on_cuda(**sizes, memory=2 * 10**10).query_block
    assert tight.total_bytes <= 2 * 10**10
