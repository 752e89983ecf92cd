"""Rounds over a k-d tree compared with Prim's algorithm, bit for bit: short lists, ties, instruction sets and
metrics.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks, plans
from tests.helpers.trees import ISAS
from tests.helpers.trees import tree_of as kdtree_of
from tests.spanning.test_boruvka import DATA, same
from tonari.api import spanning as verb
from tonari.core.process.progress import Progress
from tonari.kdtree.plan import TREE_METRICS
from tonari.metrics.reference import brute
from tonari.spanning import by_tree, tuning
from tonari.spanning.by_tree import spanning_edges_by_tree
from tonari.spanning.reference import spanning_tree
from tonari.spanning.tree import SpanningTree, tree_of


def grown(
    points: Any, min_samples: int, k: int, metric: str = "euclidean", *, leaf: int = 8, **choices: Any
) -> SpanningTree:
    """Return the spanning tree that walks find, from lists of k neighbours and a k-d tree with leaves of `leaf`
    points.
    """
    n = len(points)
    lists = brute(points, points, min(k, n - 1), metric, self_ids=np.arange(n))
    core = lists.distances[:, min_samples - 2] if min_samples > 1 else np.zeros(n, lists.distances.dtype)
    choices = {"threads": 1, "isa": ISAS[-1]} | choices
    plan = plans.tree(n, n, points.shape[1], k, dtype=points.dtype, metric=metric, **choices)
    with Progress(False, total=n - 1, seconds=None, label="") as bar:
        found = spanning_edges_by_tree(kdtree_of(points, leaf=leaf), plan, lists, core, bar)
    assert bar.done == n - 1
    return tree_of(found, n)


@pytest.mark.parametrize("maker", DATA)
@pytest.mark.parametrize("min_samples", [1, 2, 5])
@pytest.mark.parametrize("more", [0, 1, 4])
def test_the_tree_is_that_of_prim(maker: str, min_samples: int, more: int) -> None:
    points = DATA[maker](70, 2, 0)
    same(grown(points, min_samples, max(1, min_samples - 1 + more)), spanning_tree(points, min_samples))


@pytest.mark.parametrize("n", [2, 3, 4, 7, 17])
@pytest.mark.parametrize("maker", DATA)
@pytest.mark.parametrize("leaf", [1, 8])
def test_few_points(n: int, maker: str, leaf: int) -> None:
    points = DATA[maker](n, 1, 0)
    for min_samples in {1, 2, n}:
        for k in {max(1, min_samples - 1), n - 1}:
            same(grown(points, min_samples, k, leaf=leaf), spanning_tree(points, min_samples))


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("metric", TREE_METRICS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_instruction_set_and_metric(isa: str, metric: str, dtype: str) -> None:
    for make in (checks.gaussian, checks.tight_far_clusters, checks.duplicates):
        points = checks.in_range(checks.accepted(make(90, 3, 0), metric), metric).astype(dtype)
        same(grown(points, 3, 3, metric, isa=isa), spanning_tree(points, 3, metric))


@pytest.mark.parametrize("d", [1, 2, 13, 16, 17, 40])
def test_every_number_of_columns(d: int) -> None:
    points = checks.tight_far_clusters(150, d)
    same(grown(points, 4, 4), spanning_tree(points, 4))


@pytest.mark.parametrize("maker", ["grid", "duplicates", "all_equal", "apart"])
def test_larger_sets_and_threads(maker: str) -> None:
    """Trees with more than two levels of boxes, with ties in and between leaves; lists lack most neighbours at a
    distance.
    """
    points = DATA[maker](1500, 2, 0)
    for min_samples in (1, 2, 4):
        truth = spanning_tree(points, min_samples)
        for threads in (1, 3):
            same(grown(points, min_samples, max(1, min_samples - 1), leaf=4, threads=threads), truth)


def test_a_walk_may_pause_after_every_leaf(monkeypatch: pytest.MonkeyPatch) -> None:
    points = checks.gaussian(200, 2)
    monkeypatch.setattr(tuning, "SLICE_VALUES", 0)
    same(grown(points, 3, 2, threads=2), spanning_tree(points, 3))


def test_equal_points_do_not_compare_every_pair() -> None:
    """All distances are 0: only the row numbers of ends distinguish edges, and they end the walks."""
    n = 60_000
    points = np.zeros((n, 2), np.float32)
    tree = tonari.mutual_reachability_tree(points, 5, method="kdtree")
    np.testing.assert_array_equal(tree.edges, np.stack([np.zeros(n - 1), np.arange(1, n)], axis=1))


def test_the_verb_walks_where_the_lists_are_of_a_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    called = []

    def counted(*args: Any) -> Any:
        called.append(args)
        return spanning_edges_by_tree(*args)

    monkeypatch.setattr(verb, "spanning_edges_by_tree", counted)
    points = checks.gaussian(500, 2)
    expected = spanning_tree(points, 4)
    same(tonari.mutual_reachability_tree(points, 4, method="kdtree"), expected)
    assert len(called) == 1
    same(tonari.mutual_reachability_tree(points, 4, method="exact"), expected)
    monkeypatch.setattr(verb, "MOST_POINTS", 499)
    same(tonari.mutual_reachability_tree(points, 4, method="kdtree"), expected)
    assert len(called) == 1
    assert by_tree.MOST_POINTS == 2**31 - 1
