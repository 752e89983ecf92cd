"""The formulas of costs, compared with sums by hand and with counted operations."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from tonari.costs import tuning
from tonari.costs.formulas import TOP_LEVELS, BruteCosts, DescentCosts, DirectCosts, MeanVisits, TreeCosts

N, M, D, K = 1000, 30, 8, 5
MIB = 1 << 20


def only(costs: type[Any], **given: float) -> Any:
    """Make costs that are 0 except for these."""
    return costs(**{field.name: 0.0 for field in fields(costs)} | given)


@pytest.mark.parametrize(
    ("name", "times"),
    [
        ("start", 1),
        ("point", N),
        ("point_value", N * D),
        ("query", M),
        ("query_neighbour", M * K),
        ("neighbour_value", M * K * D),
        ("pair", M * N),
        ("pair_value", M * N * D),
        ("crowd", 0),
        ("coarse", 0),
        ("blurred", 0),
    ],
)
def test_each_cost_of_brute_force_counts_what_it_names(name: str, times: int) -> None:
    assert only(BruteCosts, **{name: 2.0}).seconds(N, M, D, K, 1) == 2.0 * times


def test_workers_share_all_but_the_start() -> None:
    costs = only(BruteCosts, start=7.0, point=1.0, pair=0.5)
    assert costs.seconds(N, M, D, K, 4) == 7.0 + (N + 0.5 * M * N) / 4
    assert only(DescentCosts, start=7.0, point=1.0).seconds(N, D, 1, 4) == 7.0 + N * math.log2(N + 1) / 4


@pytest.mark.parametrize(("m", "d", "crowd"), [(30, 3, 30 / 9), (5000, 2, 1000 / 4), (5000, 4, 0)])
def test_the_first_thousand_queries_crowd_in_fewer_than_four_dimensions(m: int, d: int, crowd: float) -> None:
    assert only(BruteCosts, crowd=1.0).answering(N, m, d, K) == pytest.approx(N * crowd)


def test_points_are_packed_again_where_neighbours_are_near() -> None:
    costs = only(BruteCosts, point=1.0, coarse=0.1)
    assert costs.answering(N, M, 1, 1) == N  # 1 / 1000 of the width
    assert costs.answering(N, M, 8, 1) == 0  # 0.42 of the width


def test_pairs_near_the_errors_of_the_screen_cost_a_hundred_times_more_at_most() -> None:
    costs = only(BruteCosts, pair=1.0, blurred=1e-3)
    assert costs.answering(N, 1, 3, 1) == pytest.approx(N * (1 + 1e-3 * N))
    assert costs.answering(10**9, 1, 1, 1) == pytest.approx(10**9 * 101)


def test_points_that_are_among_the_nearest_so_far_are_counted() -> None:
    """In a random order, a point is kept if it is among the k nearest of itself and all points before it."""
    rng = np.random.default_rng(3)
    counts = []
    for _ in range(200):
        ranks = rng.permutation(N)
        before = np.array([np.count_nonzero(ranks[:j] < ranks[j]) for j in range(N)])
        counts.append(np.count_nonzero(before < K))
    expected = only(DirectCosts, kept=1.0).seconds(N, 1, D, K)
    spread = np.std(counts) / math.sqrt(len(counts))
    assert abs(np.mean(counts) - expected) < 4 * spread + 0.5  # the harmonic sum is within 1 / 2 of the logarithm
    assert only(DirectCosts, kept=1.0).seconds(N, 3, D, K) == pytest.approx(3 * expected)
    assert only(DirectCosts, neighbour=1.0).seconds(N, 3, D, K) == 3 * K
    assert only(DirectCosts, neighbour_value=1.0).seconds(N, 3, D, K) == 3 * D * K


def test_cores_that_are_slower_take_longer_for_everything() -> None:
    costs = DirectCosts(*range(1, 8))
    assert costs.slower(3.0) == DirectCosts(*range(3, 24, 3))
    tree = only(
        TreeCosts, start=1.0, split=1.0, placed=1.0, far=1.0, miss=1.0, double=1.0, leaf=1.0, near=1.0, query=1.0
    )
    assert tree.slower_search(2.0) == only(
        TreeCosts, start=1.0, split=1.0, placed=1.0, far=1.0, miss=1.0, double=1.0, leaf=2.0, near=2.0, query=2.0
    )


def test_a_tree_of_one_task_is_built_by_one_core() -> None:
    costs = only(TreeCosts, start=5.0, split=1.0, placed=1.0)
    for workers in (1, 8):
        assert costs.build(tuning.TASK_POINTS, D, 10, workers) == 5.0 + tuning.TASK_POINTS * (10 + D)


def test_cores_share_tasks_and_long_passes() -> None:
    costs, height = only(TreeCosts, split=1.0, placed=1.0), 14
    two_tasks = 2 * tuning.TASK_POINTS
    assert two_tasks < tuning.SHARED_ROWS  # so that one core is slower at it than at the pass
    assert costs.build(two_tasks, D, height, 8) == two_tasks * (1 + (height - 1 + D) / 2)
    many = tuning.TASK_POINTS << TOP_LEVELS + 1
    assert costs.build(many, D, height, 8) == many * (TOP_LEVELS / 8 + (height - TOP_LEVELS + D) / 8)
    assert costs.build(many, D, height, 10**6) == many * (TOP_LEVELS / 10**6 + (height - TOP_LEVELS + D) / 256)


@pytest.mark.parametrize(
    ("name", "times"),
    [
        ("query", 1),
        ("neighbour", K * math.log2(K + 1)),
        ("neighbour_value", K * math.log2(K + 1) * D),
        ("leaf", 3),
        ("node", 7),
        ("node_value", 7 * D),
        ("point", 100),
        ("value", 100 * D),
    ],
)
def test_each_cost_of_a_query_in_a_tree_counts_what_it_names(name: str, times: float) -> None:
    seen, costs = MeanVisits(3, 7, 100), only(TreeCosts, double=4.0, ordered=math.inf, **{name: 1.0})

    def seconds(workers: int, double: bool) -> float:
        return float(costs.search(M, D, K, seen, workers, double=double, tree_bytes=1))

    assert seconds(1, False) == pytest.approx(M * times)
    assert seconds(5, False) == pytest.approx(M * times / 5)
    assert seconds(1, True) == pytest.approx(M * times * (1.0 if name == "query" else 4.0))


def test_long_lists_of_a_tree_are_not_kept_in_order() -> None:
    costs, seen = only(TreeCosts, double=1.0, ordered=32.0, neighbour=1.0), MeanVisits(0, 0, 0)
    for k in (32, 33, 1000):
        seconds = costs.search(M, D, k, seen, 1, double=False, tree_bytes=1)
        assert seconds == pytest.approx(M * k * math.log2(33))


def test_reading_a_tree_costs_by_the_cache_that_holds_it() -> None:
    seen = MeanVisits(2, 5, 64)
    read = 64 * D * 4

    def wait(tree_bytes: int, **given: float) -> float:
        return float(only(TreeCosts, **given).search(1, D, K, seen, 1, double=False, tree_bytes=tree_bytes))

    moved = read * read / (read + MIB)
    assert wait(MIB, near=1.0) == wait(16 * MIB, far=1.0, miss=1.0) == 0  # in a core's own cache, and in the shared one
    assert wait(5 * MIB, near=1.0) == pytest.approx(moved / 2)
    assert wait(100 * MIB, near=1.0) == pytest.approx(moved)
    assert wait(64 * MIB, far=1.0) == pytest.approx(moved * 3 / 4)
    assert wait(64 * MIB, miss=1.0) == pytest.approx(2 * 3 / 4)


def test_a_graph_by_nn_descent_costs_by_its_points_and_their_lists() -> None:
    costs = only(DescentCosts, point=1.0, value=0.25)
    assert costs.seconds(1023, D, 20, 1) == 1023 * 10 * (1 + 0.25 * D) * 20
