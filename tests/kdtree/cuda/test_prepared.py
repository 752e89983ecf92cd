"""Prepared trees, kept in host memory if there is room."""

from __future__ import annotations

from typing import Any

import pytest

from tests.helpers import checks
from tests.helpers.checks import assert_same_neighbors
from tests.helpers.devices import HAS_TORCH, needs_torch, on_gpu
from tests.helpers.tree_search import plan_for
from tonari.kdtree import plan as planning
from tonari.metrics.reference import brute

if HAS_TORCH:
    import tonari
    from tonari.kdtree.cuda import dispatch as run
    from tonari.kdtree.cuda import prepared
    from tonari.kdtree.cuda import prepared as kept

pytestmark = [needs_torch]


def no_build(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("a tree was built")

    for module in (kept, prepared):
        monkeypatch.setattr(module, "build_checked", refuse)


def test_without_host_memory_every_search_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "free_host_memory", lambda: 0)
    points, queries = checks.gaussian(15, 2), checks.gaussian(2, 2, 1)
    plan = plan_for(queries, points, 4, point_slab=7)
    ready = run.prepare(points, plan)
    assert ready.kept is None
    assert_same_neighbors(run.search(queries, ready, plan), brute(queries, points, 4))
    no_build(monkeypatch)
    with pytest.raises(AssertionError, match="a tree was built"):
        run.search(queries, ready, plan)


@on_gpu
def test_an_index_larger_than_its_budget_keeps_its_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    points, queries = checks.gaussian(2_000_000, 5), checks.gaussian(300_000, 5, 1)
    index = tonari.Index(points, method="kdtree", device="cuda", memory="300MB")
    truth = tonari.search(queries, points, 10, method="kdtree", device="cuda")
    no_build(monkeypatch)
    for given in (queries[:1], queries):
        found = index.search(given, 10)
        assert_same_neighbors(found, type(truth)(*(part[: len(given)] for part in truth)))
