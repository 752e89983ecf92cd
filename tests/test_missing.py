"""Rows with missing values: the plan, the products whose sign tells the distance, and the reference."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import plans
from tests.helpers.missing import DATA, with_gaps
from tonari.core.errors import BudgetExceeded, Unsupported
from tonari.missing.plan import plan_missing, refusal
from tonari.missing.products import ALL, point_rows, query_rows
from tonari.missing.reference import brute, pairwise

NAN: dict[str, Any] = {"metric": "nan_euclidean", "threads": 1}


def test_the_reference_is_scikit_learns() -> None:
    pairs = pytest.importorskip("sklearn.metrics.pairwise", reason="the definition is scikit-learn's")
    rows = with_gaps(np.random.default_rng(0).standard_normal((80, 7)), 0.5)
    ours, theirs = pairwise(rows[:20], rows), pairs.nan_euclidean_distances(rows[:20], rows)
    assert np.array_equal(np.isnan(ours), np.isnan(theirs))
    assert np.isnan(ours).any()
    np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-7)


def test_rows_without_gaps_have_the_bits_of_euclidean() -> None:
    rows = np.random.default_rng(0).standard_normal((60, 9)).astype(np.float32)
    assert brute(rows, rows, 5).distances.tobytes() == tonari.search(rows, rows, 5).distances.tobytes()


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("scale", [1.0, 1e-170, 1e-100, 1e120, 1e148])
def test_products_of_pairs_within_a_limit_are_at_least_the_least(name: str, scale: float) -> None:
    """The limit is the returned distance of each pair itself, where rounding decides."""
    rows = DATA[name].astype(np.float64)
    with np.errstate(over="ignore"):
        rows = rows / max(1.0, np.nanmax(np.abs(rows))) * scale
    queries = np.concatenate([rows[:20], np.clip(rows[:5] * 2.0**40, -1e150, 1e150)])
    form, points = point_rows(rows)
    those, values = query_rows(queries, form), pairwise(queries, rows)
    for column in range(len(rows)):
        limits = values[:, column]
        there = np.flatnonzero(~np.isnan(limits))
        wide, least = those.some(there).with_means(those.some(there).means_of(limits[there]))
        assert np.isfinite(wide).all()
        assert (wide @ points[column] >= least - abs(least) * 2.0**-40).all()
    wide, least = those.with_means(np.full(len(queries), np.inf))
    apart = np.isnan(values)
    assert (least > 0).all()
    assert ((wide @ points.T >= least[:, None]) | apart).all()
    assert (those.means_of(np.full(len(queries), np.inf)) >= ALL).all()


def test_pairs_without_a_common_column_are_left_out() -> None:
    rows = with_gaps(np.random.default_rng(0).standard_normal((90, 6)), 0.7)
    form, points = point_rows(rows)
    means = np.full(90, 0.1)
    wide, least = query_rows(rows, form).with_means(means)
    assert not ((wide @ points.T >= least[:, None]) & np.isnan(pairwise(rows, rows))).any()


def test_the_plan_and_its_memory() -> None:
    problem = plans.problem(2000, 300, 20, 5, dtype="float32", **NAN)
    plan = plan_missing(problem)
    assert (plan.method, plan.query_block, plan.sample) == ("missing", 300, 512)
    assert plan.copied_bytes == 2000 * 61 * 8
    assert plan_missing(problem, query_block=7).query_block == 7
    least = plan_missing(problem, query_block=1).total_bytes
    assert plan_missing(dataclasses.replace(problem, memory=least)).query_block == 1
    with pytest.raises(BudgetExceeded, match=f"allow at least {least}"):
        plan_missing(dataclasses.replace(problem, memory=least - 1))


def test_other_metrics_and_devices_are_refused() -> None:
    assert refusal(plans.problem(9, 9, 3, 1, dtype="float32", **NAN)) is None
    euclidean = plans.problem(9, 9, 3, 1, dtype="float32", metric="euclidean")
    with pytest.raises(Unsupported, match="method='missing' supports nan_euclidean, not euclidean"):
        plan_missing(euclidean)
    on_cuda = dataclasses.replace(plans.problem(9, 9, 3, 1, dtype="float32", **NAN), devices=("cuda:0",), threads=None)
    assert "runs on the CPU alone" in str(refusal(on_cuda))
    for method in ("exact", "kdtree"):
        with pytest.raises(Unsupported, match="compares rows with missing values: use method='missing' or 'auto'"):
            tonari.plan(9, 9, 3, 1, metric="nan_euclidean", method=method)
    assert "rows with missing values are all compared" in str(
        tonari.explain((9, 3), (20, 3), 2, metric="nan_euclidean")
    )
