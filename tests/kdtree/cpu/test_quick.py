"""Searches of a few queries in one native call: the bits of the definition, or no answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.checks import assert_same_neighbors
from tests.helpers.radius_checks import assert_same_within
from tonari.core.results.neighbors import Neighbors
from tonari.core.results.radius_neighbors import Within, limits_for
from tonari.kdtree import tuning
from tonari.kdtree.cpu.method import quick_count_tree, quick_in_tree, quick_within_tree
from tonari.kdtree.cpu.prepared import PreparedTree
from tonari.metrics.reference import brute, brute_within


def prepared(points: Any, queries: Any, k: int, metric: str) -> tuple[PreparedTree, Any]:
    plan = tonari.plan(
        len(points), len(queries), points.shape[1], k, dtype=points.dtype, metric=metric, method="kdtree"
    )
    return PreparedTree(points, plan, False), plan


@pytest.mark.parametrize("maker", checks.HOSTILE)
@pytest.mark.parametrize("metric", ["euclidean", "l1", "power:3"])
def test_answers_are_those_of_the_definition(maker: str, metric: str) -> None:
    for n, m, d, k in ((1, 1, 1, 1), (17, 3, 2, 17), (300, 2, 3, 5)):
        points = checks.HOSTILE[maker](n, d, 0)
        queries = np.ascontiguousarray(np.resize(points, (m, d)))
        tree, plan = prepared(points, queries, k, metric)
        search = quick_in_tree(queries, tree, plan)
        assert search is not None
        found = search(queries, None)
        assert found is not None
        truth = brute(queries, points, k, metric)
        assert_same_neighbors(found[0], truth, metric=metric)
        low, high = abs(truth.distances).min(), abs(truth.distances).max()
        assert found[1] == (low > 1e-37 and high < 3e38)
        radius = float(np.nan_to_num(np.median(truth.distances), posinf=1e30))
        limits = limits_for(radius, m, truth.distances.dtype, closed=True, descending=False)
        lists, count = (quick(Within(queries, limits), tree, plan) for quick in (quick_within_tree, quick_count_tree))
        assert lists is not None
        assert count is not None
        near = brute_within(queries, points, limits, metric)
        within, counts = lists(queries, None), count(queries, None)
        assert within is not None
        assert counts is not None
        assert_same_within(within[0], near)
        assert counts.tolist() == np.diff(near.indptr).tolist()


@pytest.mark.parametrize(("dtype", "bad"), [("f4", np.nan), ("f4", np.inf), ("f8", -np.inf), ("f8", 1e200)])
def test_refused_values_have_no_answer(dtype: str, bad: float) -> None:
    points, queries = (checks.gaussian(rows, 3, rows).astype(dtype) for rows in (300, 2))
    tree, plan = prepared(points, queries, 4, "euclidean")
    request = Within(queries, limits_for(1.0, 2, dtype, closed=True, descending=False))
    ways: list[Any] = [quick_in_tree(queries, tree, plan)]
    ways += [quick_within_tree(request, tree, plan), quick_count_tree(request, tree, plan)]
    assert all(way(queries, None) is not None for way in ways)
    queries[1, 2] = bad
    assert all(way(queries, None) is None for way in ways)


def test_many_queries_and_wider_answers_take_the_usual_way(monkeypatch: pytest.MonkeyPatch) -> None:
    points = checks.gaussian(300, 3)
    tree, plan = prepared(points, points[:2], 4, "euclidean")
    narrow = limits_for(1.0, 2, "f4", closed=True, descending=False)
    wide = narrow.astype("f8")
    assert quick_in_tree(points[:2].astype("f8"), tree, plan) is None
    assert quick_within_tree(Within(points[:2], wide), tree, plan) is None
    assert quick_within_tree(Within(points[:2], narrow, range(2)), tree, plan) is None
    monkeypatch.setattr(tuning, "QUICK_PAIRS", 599)
    assert quick_within_tree(Within(points[:2], narrow), tree, plan) is None
    assert quick_count_tree(Within(points[:2], narrow), tree, plan) is not None
    monkeypatch.setattr(tuning, "QUICK_QUERIES", 1)
    assert quick_in_tree(points[:2], tree, plan) is None
    assert quick_count_tree(Within(points[:2], narrow), tree, plan) is None
    one = quick_in_tree(points[:1], tree, plan)
    assert one is not None
    found = one(points[:1], None)
    assert found is not None
    assert isinstance(found[0], Neighbors)
