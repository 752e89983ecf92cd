"""The k-d tree on CUDA as a method: searches that share a tree, and memory that stays on the device."""

from __future__ import annotations

from typing import Any

from tests.helpers import plans
from tests.helpers.devices import HAS_TORCH, needs_torch
from tonari.cuda import tuning

if HAS_TORCH:
    from tonari.kdtree.cuda.method import TreeOnCuda

pytestmark = needs_torch


def test_searches_that_a_tree_holds_exactly_share_it() -> None:
    cases: list[Any] = [
        ("float32", "float32", "float32"),
        ("float32", "float64", "float64"),
        ("uint8", "float16", "float32"),
    ]
    for points, queries, kind in cases:
        problem = plans.problem(100, 5, 3, 2, dtype=points, query_dtype=queries, devices=("cuda:0",))
        assert TreeOnCuda().kind(problem) == kind


def test_a_tree_of_slabs_holds_nothing_between_searches() -> None:
    for free, whole in ((10**10, True), (10**9 // 2, False)):
        plan = plans.tree(10**7, 10**4, 3, 5, devices=("cuda:0",), free_bytes=tuning.RESERVE + free)
        assert (plan.point_slab == plan.n) == whole
        held = TreeOnCuda().held_bytes(None, plan)  # type: ignore[arg-type]
        assert held == (plan.packed_bytes + plan.copied_bytes if whole else 0)
