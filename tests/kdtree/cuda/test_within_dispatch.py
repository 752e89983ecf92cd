"""Queries that a tree on CUDA leaves to other methods in radius searches, and the division of queries among devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers import checks
from tests.helpers.checks import Array
from tests.helpers.devices import HAS_CUDA, HAS_TORCH, needs_torch
from tests.helpers.radius_checks import assert_same_within
from tests.helpers.radius_on_cuda import check_within, limits_at, on_host
from tests.helpers.tree_search import DEVICE, plan_for
from tonari.core.results.radius_neighbors import RadiusNeighbors, Within, later_points
from tonari.kdtree import tuning
from tonari.metrics.reference import brute_within

if HAS_TORCH:
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    from tests.helpers.launches import launched
    from tonari.kdtree.cuda.method import TreeOnCuda

pytestmark = [needs_torch]
# Queries, and points in three or five leaves.
M, N = (5, 300) if HAS_CUDA else (2, 130)


def check(
    queries: Array, points: Array, metric: str = "euclidean", limits: Any = 0.3, **choices: Any
) -> RadiusNeighbors:
    """Compare a search with the reference; `limits` may be the share of the points that is within them."""
    if isinstance(limits, float):
        limits = limits_at(queries, points, metric, limits)
    given = {name: choices.pop(name) for name in ("counted", "self_join", "as_searched") if name in choices}
    asked, rows = given.get("as_searched", (queries, points))
    plan = plan_for(asked, rows, 1, metric, self_join=given.get("self_join", False), **choices)
    return check_within(TreeOnCuda(), plan, queries, points, limits, **given)


def test_several_devices_share_the_queries() -> None:
    points = checks.duplicates(N, 2)
    check(points[:3], points, "linf", devices=(DEVICE, DEVICE))


@pytest.mark.parametrize("far", ["queries", "points", "both"])
@pytest.mark.parametrize("self_join", [False, True])
@pytest.mark.parametrize("counted", [False, True])
def test_values_that_a_tree_cannot_compare(far: str, self_join: bool, counted: bool) -> None:
    points = checks.duplicates(9, 2)
    queries = points if self_join else points[:4].copy()
    for rows in (queries, points):
        if far == "both" or (rows is points) == (far == "points"):
            rows[-2] = 1e25
    slabs = {"point_slab": 5} if far == "points" else {}
    check(queries, points, limits=0.6, self_join=self_join, counted=counted, query_block=4, **slabs)


def test_a_query_that_is_not_finite_is_refused() -> None:
    queries, points = checks.gaussian(3, 2), checks.gaussian(9, 2)
    queries[1, 0] = np.nan
    method, plan = TreeOnCuda(), plan_for(queries, points, 1)
    with pytest.raises(ValueError, match=r"queries.*row 1"):
        method.find_within(Within(queries, np.ones(3, np.float32)), method.prepare(points, plan), plan, False)


def operations(monkeypatch: pytest.MonkeyPatch, points: Array, self_join: bool, counted: bool) -> tuple[int, list[str]]:
    """Count the torch operations of a search among a tree's own points, and the kernels that it launches."""
    # Operations of the interpreter itself for a launch are not counted.
    aside = {"empty", "new_empty", "set_", "copy_"}

    class Counting(TorchDispatchMode):
        count = 0

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.count += not func.is_view and func.overloadpacket.__name__ not in aside
            return func(*args, **(kwargs or {}))

    monkeypatch.setattr(tuning, "PILOT_QUERIES", len(points) // 3)
    method, rows = TreeOnCuda(), torch.from_numpy(points).to(DEVICE)
    asked = rows if self_join else rows.clone()
    plan = plan_for(asked, rows, 1, self_join=self_join)
    prepared = method.prepare(rows, plan)
    # the same radius for all queries
    one = np.ndarray((len(points),), np.float32, np.array([0.4], np.float32), 0, (0,))
    verb = method.count_within if counted else method.find_within
    request = Within(asked, one, range(len(points)) if self_join else None)
    verb(request, prepared, plan, False)
    with launched() as kernels, Counting() as seen:
        verb(request, prepared, plan, False)
    return seen.count, [kernel[0].__name__ for kernel in kernels]


def test_a_graph_leaves_out_what_the_tree_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows have already been checked, and are in the order of their leaves."""
    points = np.random.default_rng(0).random((150, 2)).astype(np.float32) * 20
    count, kernels = operations(monkeypatch, points, True, True)
    assert count <= 10
    assert kernels == ["within_kernel"]
    count, kernels = operations(monkeypatch, points, True, False)
    assert count <= 24
    assert kernels == ["within_kernel", "within_kernel", "order_lists_kernel"]
    _, kernels = operations(monkeypatch, points, False, False)
    assert kernels == ["home_kernel", "within_kernel", "within_kernel", "order_lists_kernel"]


@pytest.mark.parametrize("choices", [{"query_block": 4}, {"point_slab": 5, "query_block": 20}, {"point_slab": 5}])
def test_parts_of_a_graph_are_not_taken_for_the_tree_s_points(choices: dict[str, int]) -> None:
    points = checks.duplicates(9, 2)
    points[3] = 1e25 if "point_slab" in choices else 7
    rows = torch.from_numpy(points).to(DEVICE)
    check(points, points, limits=0.6, self_join=True, as_searched=(rows, rows), **choices)


@pytest.mark.parametrize("rows", [slice(0, 9), slice(4, 9), slice(3, 7), slice(8, 9)])
@pytest.mark.parametrize("choices", [{}, {"query_block": 2}, {"point_slab": 5}, {"devices": (DEVICE, DEVICE)}])
@pytest.mark.parametrize("far", [False, True])
def test_pairs_are_those_with_later_points(rows: slice, choices: dict[str, Any], far: bool) -> None:
    points = checks.duplicates(9, 2)
    if far:
        points[5] = 1e25
    limits = np.full(9, 0.9, np.float32)
    there, method = torch.from_numpy(points).to(DEVICE), TreeOnCuda()
    plan = plan_for(there, there, 1, **choices)
    queries = there if rows == slice(0, 9) else there[rows]
    request = Within(queries, limits[rows], range(rows.start, rows.stop), later=True)
    found = method.find_within(request, method.prepare(there, plan), plan, False)
    truth = later_points(brute_within(points[rows], points, limits[rows], "euclidean"), rows.start)
    assert len(truth.indices) or rows.start > 4
    assert_same_within(on_host(found), truth)
