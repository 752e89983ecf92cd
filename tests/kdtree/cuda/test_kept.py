"""Trees of slabs kept in host memory: the same trees, and no search builds one again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers import checks
from tests.helpers.checks import Array, assert_same_neighbors
from tests.helpers.devices import HAS_CUDA, HAS_TORCH, needs_torch, on_gpu
from tests.helpers.gpu_checks import GB
from tests.helpers.tree_search import DEVICE, plan_for, search
from tonari.metrics.reference import brute

if HAS_TORCH:
    import torch

    from tonari.cuda import memory as device_memory
    from tonari.kdtree.cuda import blocks, prepared
    from tonari.kdtree.cuda import dispatch as run
    from tonari.kdtree.cuda import prepared as kept
    from tonari.kdtree.cuda.build import build_on_device

pytestmark = [needs_torch]


def no_build(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("a tree was built")

    for module in (kept, prepared):
        monkeypatch.setattr(module, "build_checked", refuse)


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("slab", [1, 64, 500, pytest.param(1100, marks=pytest.mark.full), 1199, 1200])
def test_a_tree_comes_back_as_it_was_built(slab: int, double: bool) -> None:
    n = 3 * slab if slab < 100 else 1200
    points = checks.gaussian(n, 3).astype(np.float64 if double else np.float32)
    trees = kept.keep_trees(points, plan_for(points[:1], points, 1, point_slab=slab))
    count = 0
    for at, tree in zip(range(0, n, slab), trees.arriving(DEVICE), strict=True):
        assert tree is not None
        expected = build_on_device(torch.from_numpy(points[at : at + slab]).to(DEVICE), leaf=64, double=double)
        assert (tree.n, tree.d, tree.leaf, tree.levels) == (expected.n, 3, 64, expected.levels)
        for name in ("ids", "rows", "boxes"):
            ours, theirs = getattr(tree, name), getattr(expected, name)
            assert ours.dtype == theirs.dtype
            assert torch.equal(ours, theirs)
        count += 1
    assert count == -(-n // slab)


def test_kept_bytes_are_those_of_the_plan() -> None:
    points = checks.gaussian(300, 3)
    for slab in (100, 110):
        plan = plan_for(points, points, 1, point_slab=slab)
        assert kept.keep_trees(points, plan).memory.nbytes == plan.kept_bytes


@pytest.mark.parametrize("devices", [1, pytest.param(2, marks=pytest.mark.full)])
def test_a_search_of_prepared_slabs_builds_nothing(devices: int, monkeypatch: pytest.MonkeyPatch) -> None:
    points, queries = checks.gaussian(15, 2), checks.gaussian(2, 2, 1)
    plan = plan_for(queries, points, 4, point_slab=7, devices=(DEVICE,) * devices)
    ready = run.prepare(points, plan)
    no_build(monkeypatch)
    assert_same_neighbors(run.search(queries, ready, plan), brute(queries, points, 4))
    with pytest.raises(AssertionError, match="a tree was built"):
        run.search_once(queries, points, plan)


def test_searches_that_need_smaller_slabs_build_them() -> None:
    points, queries = checks.gaussian(15, 2), checks.gaussian(2, 2, 1)
    ready = run.prepare(points, plan_for(queries, points, 4, point_slab=7))
    for slab in (8, 15):
        found = run.search(queries, ready, plan_for(queries, points, 4, point_slab=slab))
        assert_same_neighbors(found, brute(queries, points, 4))


def far_in(points: Array, *rows: int) -> Array:
    points[list(rows), 0] = np.float32(1e19)
    return points


@pytest.mark.full
@pytest.mark.parametrize("far", [(20,), (0, 20, 59)])
def test_a_slab_beyond_reach_has_no_tree(far: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    if not HAS_CUDA:
        monkeypatch.setattr(device_memory, "free_memory", lambda devices: 8 * GB)
    points, queries = far_in(checks.gaussian(60, 2), *far), far_in(checks.gaussian(3, 2, 1), 1)
    plan = plan_for(queries, points, 4, point_slab=20)
    ready = run.prepare(points, plan)
    assert ready.kept is not None
    assert [place is None for place in ready.kept.places] == [any(at // 20 == slab for at in far) for slab in range(3)]
    for _ in range(2):
        assert_same_neighbors(run.search(queries, ready, plan), brute(queries, points, 4))


def test_a_slab_without_a_tree_takes_no_turn() -> None:
    points = far_in(checks.gaussian(60, 2), 20)
    trees = kept.keep_trees(points, plan_for(points, points, 4, point_slab=20))
    for _ in range(2):
        arrived = [None if tree is None else tree.ids[:20].sort().values.tolist() for tree in trees.arriving(DEVICE)]
        assert arrived == [list(range(20)), None, list(range(20))]


def test_a_point_that_is_no_number_is_named_by_its_row() -> None:
    points = checks.gaussian(60, 2)
    points[45, 1] = np.nan
    with pytest.raises(ValueError, match="points: row 45 has a value that is not finite"):
        run.prepare(points, plan_for(points, points, 4, point_slab=20))


def test_visits_are_those_of_all_slabs() -> None:
    points, queries = checks.gaussian(130, 2), checks.gaussian(1, 2, 1)
    plan = plan_for(queries, points, 1, point_slab=64)
    seen = run.probe(run.prepare(points, plan), queries, plan)
    assert seen == (3, 3, 3 * 64)  # every slab has one leaf


@on_gpu
def test_a_tree_does_not_come_before_the_last_one_has_been_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    points, queries = checks.gaussian(600_000, 3), checks.gaussian(200_000, 3, 1)
    truth = search(queries, points, 10)
    walk = blocks.walk_in_steps

    def late(*arguments: Any, **named: Any) -> None:
        torch.cuda._sleep(100_000_000)
        walk(*arguments, **named)

    monkeypatch.setattr(blocks, "walk_in_steps", late)
    there = torch.from_numpy(queries).to(DEVICE)
    for given in (queries, there):
        plan = plan_for(given, points, 10, point_slab=100_000)
        ready = run.prepare(points, plan)
        for _ in range(2):
            found = run.search(given, ready, plan)
            host = found if isinstance(given, np.ndarray) else type(found)(*(part.cpu().numpy() for part in found))
            assert_same_neighbors(host, truth)
