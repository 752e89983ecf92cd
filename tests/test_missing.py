"""Rows with missing values: the plan, the products whose sign tells the distance, and the reference."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import plans
from tests.helpers.missing import DATA, with_gaps
from tonari.core import _native
from tonari.core.errors import BudgetExceeded, Unsupported
from tonari.missing.memory import GROUP
from tonari.missing.plan import plan_missing, refusal
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
def test_the_screen_keeps_pairs_at_the_limit(name: str, scale: float) -> None:
    """The limit is the returned distance of each pair itself, where rounding decides."""
    rows = DATA[name].astype(np.float64)
    with np.errstate(over="ignore"):
        rows = rows / max(1.0, np.nanmax(np.abs(rows))) * scale
    queries = np.concatenate([rows[:20], np.clip(rows[:5] * 2.0**40, -1e150, 1e150)])
    values, points = pairwise(queries, rows), _native.MissingPoints(rows)
    for column in range(0, len(rows), 3):
        there = np.flatnonzero(~np.isnan(values[:, column]))
        if not len(there):
            continue
        block = _native.MissingBlock(
            "generic", points, queries[there], 0, values[there, column].copy(), None, False, True
        )
        block.scan(0, -(-len(rows) // GROUP))
        counts = np.empty(len(there), np.int64)
        block.count(counts)
        assert counts.tolist() == (values[there] <= values[there, column, None]).sum(axis=1).tolist()


def test_the_plan_and_its_memory() -> None:
    problem = plans.problem(2000, 300, 20, 5, dtype="float32", **NAN)
    plan = plan_missing(problem)
    assert (plan.method, plan.query_block) == ("missing", 256)
    assert plan.packed_bytes == _native.MissingPoints(with_gaps(np.zeros((2000, 20), np.float32), 0.2)).bytes()
    assert plan_missing(problem, query_block=7).query_block == 7
    least = plan_missing(problem, query_block=1).total_bytes
    small = plan_missing(dataclasses.replace(problem, memory=least))
    assert small.query_block < 256
    assert small.total_bytes == least
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
