"""Clusters of points on the CPU."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers import checks
from tests.helpers.descent import as_dtype, groups, plan_for
from tonari.core.process.workers import Workers
from tonari.metrics import METRICS
from tonari.nn_descent.cpu.clusters import Form, find_centres


@pytest.mark.parametrize("metric", METRICS)
def test_centres_are_where_points_are(metric: str) -> None:
    points = as_dtype(groups(1000, 6), "float32", metric)
    plan = plan_for(points, 5, metric, n_clusters=30)
    form = Form(points, metric)
    centres = find_centres(points, form, plan, Workers(1))
    rows = form.of_points(points).astype(np.float64)
    assert centres.shape == (30, rows.shape[1])
    spread = np.square(rows - rows.mean(axis=0)).sum()
    assert np.square(rows[:, None] - centres).sum(axis=2).min(axis=1).sum() < 0.6 * spread
    np.testing.assert_array_equal(centres, find_centres(points, form, plan, Workers(3)))


def test_products_are_largest_where_the_form_is_nearest() -> None:
    points = checks.gaussian(300, 5) * np.linspace(0.1, 3, 300, dtype=np.float32)[:, None]
    form = Form(points, "inner_product")
    rows, queries = (part.astype(np.float64) for part in (form.of_points(points), form.of_queries(points)))
    nearest = np.square(queries[:, None] - rows).sum(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(nearest, (points @ points.T).argmax(axis=1))
