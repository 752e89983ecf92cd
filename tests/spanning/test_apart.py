"""Bounds by projections: never above the returned distance, and near it if clusters are far apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers import checks
from tonari.metrics.reference import brute
from tonari.spanning import tuning
from tonari.spanning.apart import Projections

N = 80


def nearest_outside(points: Any, labels: Any, component: int, metric: str) -> Any:
    """Return the returned distance from each point of a component to the nearest point outside of it."""
    inside = labels == component
    return brute(points[inside], points[~inside], 1, metric).distances[:, 0]


def by_side(points: Any, count: int) -> Any:
    """Labels that follow a coordinate, so that components have gaps between them."""
    labels = np.empty(len(points), np.int64)
    labels[np.argsort(points[:, 0].astype(np.float64), kind="stable")] = np.arange(len(points)) * count // len(points)
    return labels


@pytest.mark.parametrize("maker", checks.HOSTILE)
@pytest.mark.parametrize("d", [1, 5])
@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_no_bound_is_above_a_distance(
    maker: str, d: int, metric: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "VALUES", 37 * d)
    points = checks.HOSTILE[maker](N, d, 0).astype(dtype)
    labels = by_side(points, 8)
    projections = Projections(points, squared=metric == "sqeuclidean")
    for merged in (labels, labels // 2, labels // 4, labels % 2):
        for component in range(int(merged.max()) + 1):
            found = projections.bounds(merged, component)
            with np.errstate(over="ignore"):
                found = found.astype(dtype)
            assert (found <= nearest_outside(points, merged, component, metric)).all()


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
def test_bounds_on_a_line_are_distances_but_for_a_millionth(metric: str) -> None:
    points = np.array([[0.0, 0.0], [2.0, 2.0], [5.0, 5.0], [6.0, 6.0], [30.0, 30.0]])
    projections = Projections(points, squared=metric == "sqeuclidean")
    for labels in (np.array([0, 0, 1, 1, 2]), np.array([0, 0, 0, 0, 1])):
        for component in range(labels.max() + 1):
            found = projections.bounds(labels, component)
            np.testing.assert_allclose(found, nearest_outside(points, labels, component, metric), rtol=5e-6)


def test_a_budget_makes_blocks_smaller_and_no_bound_another() -> None:
    points, labels = checks.gaussian(N, 5), np.arange(N) % 4
    whole, parts = Projections(points, squared=False), Projections(points, squared=False, memory=35 * 32)
    assert max(block.stop - block.start for block in parts._blocks) == 7
    for component in range(4):
        found, expected = (made.bounds(labels, component) for made in (parts, whole))
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_few_points_of_a_far_cluster_may_be_the_nearest() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(6, size=600)
    points = (15 * rng.standard_normal((6, 20)))[labels] + rng.standard_normal((600, 20))
    projections = Projections(points.astype(np.float32), squared=False)
    for merged in (labels, labels // 2):
        for component in range(int(merged.max()) + 1):
            true = nearest_outside(points, merged, component, "euclidean")
            assert (projections.bounds(merged, component) <= true.min()).mean() < 0.1
