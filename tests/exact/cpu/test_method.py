"""Brute force on the CPU as a method: the same bits once or prepared, and pairs of consecutive rows."""

from __future__ import annotations

import dataclasses

import numpy as np

from tests.helpers import plans
from tests.helpers.checks import assert_same_neighbors, gaussian
from tonari.core.results.radius_neighbors import Within
from tonari.exact.cpu.method import ExactOnCpu, plan_for
from tonari.metrics.reference import brute, brute_within

METHOD = ExactOnCpu()
POINTS = gaussian(90, 6)


def test_searches_once_and_of_prepared_points_are_the_same() -> None:
    for self_join in [False, True]:
        queries = POINTS if self_join else POINTS[:20]
        truth = brute(queries, POINTS, 4, self_ids=np.arange(90) if self_join else None)
        problem = plans.problem(90, len(queries), 6, 4, self_join=self_join, threads=1)
        plan = METHOD.plan(problem)
        prepared = METHOD.prepare(POINTS, plan)
        assert_same_neighbors(METHOD.search_once(queries, POINTS, plan, self_join=self_join), truth)
        assert_same_neighbors(METHOD.search(queries, prepared, plan, self_join=self_join), truth)


def test_what_is_packed_again_is_given_up() -> None:
    plan = dataclasses.replace(METHOD.plan(plans.problem(90, 20, 6, 4, threads=1, memory=10**8)), direct=False)
    prepared = METHOD.prepare(POINTS, plan)
    METHOD.search(POINTS[:20], prepared, plan)  # few points are packed at the first search
    assert METHOD.held_bytes(prepared, plan) > 0
    METHOD.release(prepared)
    assert METHOD.held_bytes(prepared, plan) == 0
    assert_same_neighbors(METHOD.search(POINTS[:20], prepared, plan), brute(POINTS[:20], POINTS, 4))


def test_pairs_are_of_later_points_only() -> None:
    plan = METHOD.plan(plans.problem(90, 90, 6, 1, threads=1))
    limits = np.full(5, 2.5, np.float32)
    found = METHOD.find_within(
        Within(POINTS[40:45], limits, range(40, 45), later=True), METHOD.prepare(POINTS, plan), plan
    )
    whole = brute_within(POINTS[40:45], POINTS, limits)
    for row in range(5):
        ids = whole.indices[whole.indptr[row] : whole.indptr[row + 1]]
        assert found.indices[found.indptr[row] : found.indptr[row + 1]].tolist() == ids[ids > 40 + row].tolist()


def test_a_plan_for_fewer_points_has_no_queries_among_them() -> None:
    plan = plans.exact(3000, 3000, 6, 4, self_join=True, threads=1)
    less = plan_for(plan, 100)
    assert (less.n, less.active_rows, less.sample_stride, less.sample_rank) == (100, 0, 0, 0)
    assert less.resident_points <= 100
    assert (less.m, less.k, less.threads) == (plan.m, plan.k, plan.threads)
