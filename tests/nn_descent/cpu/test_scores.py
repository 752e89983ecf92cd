"""Scores of pairs within blocks of clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers import checks, plans
from tonari.core import _native
from tonari.core.process.workers import Workers
from tonari.metrics import METRICS
from tonari.metrics.reference import brute, pairwise
from tonari.nn_descent.cpu.init import best_of_clusters
from tonari.nn_descent.cpu.scores import Scores
from tonari.nn_descent.plan import DescentPlan

Array = npt.NDArray[Any]

ISAS = _native.supported_isas()


def plan_for(points: Array, metric: str = "sqeuclidean", **overrides: Any) -> DescentPlan:
    n, d = points.shape
    return plans.descent(n, d, 1, dtype=points.dtype, metric=metric, **{"threads": 2, "list_size": 1} | overrides)


def whole_numbers(n: int, d: int, seed: int) -> Array:
    """Make rows that every kernel scores without rounding, many of them equal."""
    return np.random.default_rng(seed).integers(-3, 4, (n, d)).astype(np.int8)


def first_by_score(queries: Array, points: Array, count: int) -> Array:
    """Return places by (squared distance, place)."""
    return np.argsort(pairwise(queries, points, "sqeuclidean"), axis=1, kind="stable")[:, :count].astype(np.int32)


@pytest.mark.parametrize("isa", ISAS)
def test_the_best_scores_in_order(isa: str) -> None:
    for n, d, m in ((1, 1, 1), (7, 3, 40), (13, 5, 300), (500, 64, 33), (1000, 17, 600)):
        points, queries = whole_numbers(n, d, 0), whole_numbers(m, d, 1)
        scores = Scores(points, "sqeuclidean", plan_for(np.vstack([points, points]), isa=isa))
        parts = np.array_split(points, min(3, n))
        for kernel in {scores.coarse, scores.fine}:
            assert isa in kernel or kernel == scores.fine
            packed = [scores.pack(kernel, part) for part in parts]
            for count in {1, min(9, n), n}:
                found = scores.best(kernel, queries, packed, count, Workers(2))
                np.testing.assert_array_equal(found, first_by_score(queries, points, count))


@pytest.mark.parametrize("metric", METRICS)
def test_scores_that_round_find_nearly_the_same(metric: str) -> None:
    points = np.abs(checks.gaussian(900, 24))
    truth = brute(points[:200], points, 10, metric)
    for isa in ISAS:
        scores = Scores(points, metric, plan_for(points, metric, isa=isa))
        for kernel in {scores.coarse, scores.fine}:
            found = scores.best(kernel, points[:200], [scores.pack(kernel, points)], 20, Workers(1))
            assert (found[:, :, None] == truth.indices[:, None, :]).any(axis=1).mean() > 0.98


def test_coarse_scores_are_refused_where_they_cannot_tell_points_apart() -> None:
    rng = np.random.default_rng(0)
    near = (rng.choice([-1.0, 1.0], (600, 1)) + 1e-3 * rng.standard_normal((600, 8))).astype(np.float32)
    for points, enough in ((checks.gaussian(600, 8), True), (near, False)):
        scores = Scores(points, "euclidean", plan_for(points))
        if scores.coarse == scores.fine:
            enough = True
        assert (scores.coarse_share(points[:60], points, 5, 10, Workers(1)) >= 0.95) == enough
    plan = plan_for(near, list_size=16, n_clusters=6, n_probe=6)
    entries, _ = best_of_clusters(near, plan, 16, Workers(1))
    truth = brute(near, near, 5, self_ids=np.arange(600))
    assert ((entries & 0xFFFFFF)[:, :, None] == truth.indices[:, None, :]).any(axis=1).mean() > 0.9
