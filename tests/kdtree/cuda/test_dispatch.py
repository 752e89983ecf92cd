"""Searches divided among slabs of points, devices and brute force."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers import checks
from tests.helpers.devices import HAS_CUDA, HAS_TORCH, needs_torch
from tests.helpers.gpu_checks import GB
from tests.helpers.tree_search import DEVICE, check, plan_for
from tonari.core.trail import recording
from tonari.kdtree.traversal import TRAVERSALS

if HAS_TORCH:
    from tonari.cuda import memory as device_memory
    from tonari.kdtree.cuda import dispatch as run


pytestmark = [needs_torch]
# Queries, and points in three or five leaves.
M, N = (5, 300) if HAS_CUDA else (2, 130)


@pytest.mark.parametrize("traversal", TRAVERSALS)
@pytest.mark.parametrize("scale", [1e19, pytest.param(1e30, marks=pytest.mark.full)])
def test_rows_beyond_reach_are_answered_by_brute_force(
    scale: float, traversal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not HAS_CUDA:
        monkeypatch.setattr(device_memory, "free_memory", lambda devices: 8 * GB)
    points = checks.gaussian(20 if HAS_CUDA else 12, 3)
    queries = checks.gaussian(3, 3, 1)
    queries[2] = np.float32(scale)
    check(queries, points, 5, traversal=traversal)
    points[7] = np.float32(scale)
    check(queries, points, 5, traversal=traversal)
    check(points, points, 5, self_join=True, traversal=traversal)


@pytest.mark.parametrize(
    ("n", "point_slab"),
    [(3, 1), (20, 20), *(pytest.param(*each, marks=pytest.mark.full) for each in ((20, 19), (100, 64)))],
)
def test_slabs_of_points_have_a_tree_in_turn(n: int, point_slab: int) -> None:
    rows = checks.duplicates(n, 3)
    check(rows[:3], rows, min(n, 4), "l1", point_slab=point_slab)
    check(rows[:20], rows[:20], min(n, 20) - 1, self_join=True, point_slab=point_slab)
    few = rows[:6]
    check(few, few, min(n, 6) - 1, self_join=True, point_slab=min(point_slab, 4), traversal="buffered")


@pytest.mark.full
def test_slabs_hold_rows_beyond_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    if not HAS_CUDA:
        monkeypatch.setattr(device_memory, "free_memory", lambda devices: 8 * GB)
    rows = checks.gaussian(12, 3)
    rows[4] = 1e19
    check(rows[3:6], rows, 5, point_slab=8)
    check(rows, rows, 5, self_join=True, point_slab=8)


def test_slabs_are_planned_where_a_tree_of_all_does_not_fit() -> None:
    queries, points = np.empty((100_000, 10), np.float32), np.empty((4_000_000, 10), np.float32)
    whole = plan_for(queries, points, 10)
    assert whole.point_slab == len(points)
    for memory in ("400MB", "150MB"):
        plan = plan_for(queries, points, 10, memory=memory)
        assert plan.point_slab < len(points)
        assert plan.total_bytes <= int(memory[:-2]) * 10**6
    with pytest.raises(ValueError, match="a memory budget of 10000000 bytes cannot hold"):
        plan_for(queries, points, 10, memory="10MB")


def test_several_devices_share_the_queries() -> None:
    rows = checks.gaussian(66, 3)
    check(rows[:9], rows, 6, devices=(DEVICE, DEVICE))
    check(rows[:9], rows, 6, devices=(DEVICE, DEVICE), traversal="buffered")
    check(rows, rows, 6, self_join=True, devices=(DEVICE, DEVICE))
    check(rows[:1], rows, 6, devices=(DEVICE, DEVICE))


def test_graphs_leave_rows_to_brute_force(monkeypatch: pytest.MonkeyPatch) -> None:
    if not HAS_CUDA:
        monkeypatch.setattr(device_memory, "free_memory", lambda devices: 8 * GB)
    rows = checks.duplicates(N // 2, 3)
    with recording("knn_graph", len(rows), timed=True) as record:
        check(rows, rows, 4, self_join=True, most_visits=2)
    (attempt,), (part,), (choice,) = record.attempts, record.parts, record.choices
    assert attempt.name.startswith("k-d trees on ")
    assert attempt.rows == attempt.proved == len(rows)
    assert attempt.seconds is not None
    assert part.title == choice.why.partition(":")[0] == "brute force for queries that trees leave"
    assert part.proved == part.rows > 0
    check(rows, rows, 4, "l1", self_join=True, most_visits=1, query_block=50)


def test_a_probe_ends_with_the_visits_of_the_plan() -> None:
    points, queries = checks.gaussian(3000, 6), checks.gaussian(12, 6, 1)
    plan = plan_for(queries, points, 5, most_visits=7)
    seen = run.probe(run.prepare(points, plan), queries, plan)
    assert seen.leaves + seen.nodes <= 8  # a leaf may have one more
