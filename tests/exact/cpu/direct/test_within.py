"""Everything within a radius by exact values alone, against the plain float64 definition, bit for bit."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.checks import DTYPES, HOSTILE
from tests.helpers.filter_checks import cut
from tests.helpers.radius_checks import assert_same_within, hard_limits, later_than
from tonari.core import _native
from tonari.core.results.radius_neighbors import Within
from tonari.exact.cpu.direct.within import Unpacked, count_directly, find_directly
from tonari.exact.cpu.method import ExactOnCpu
from tonari.exact.cpu.rows.prepared import PreparedPoints
from tonari.filters.rules import Rules
from tonari.inputs import held
from tonari.metrics import METRICS
from tonari.metrics.problem import make_problem
from tonari.metrics.reference import brute_within

METHOD = ExactOnCpu()


def made(maker: str, n: int, d: int, metric: str, seed: int = 0) -> checks.Array:
    rows = HOSTILE[maker](n, d, seed)
    return np.abs(rows) if METRICS[metric].nonnegative else rows


def plan_for(queries: Any, points: Any, metric: str, **given: Any) -> Any:
    facts: dict[str, Any] = {"dtype": points.dtype, "query_dtype": queries.dtype, "metric": metric, "threads": 1}
    return METHOD.plan(make_problem(len(points), len(queries), points.shape[1], 1, **facts | given))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("maker", HOSTILE)
@pytest.mark.parametrize("m", [1, 9])
def test_hostile_data(metric: str, maker: str, m: int) -> None:
    points = made(maker, 40, 5, metric)
    queries = np.concatenate([points[:2], made(maker, 7, 5, metric, 1)])[:m]
    limits, plan = hard_limits(queries, points, metric), plan_for(queries, points, metric)
    truth = brute_within(queries, points, limits, metric)
    assert_same_within(find_directly(Within(queries, limits), points, plan), truth)
    assert count_directly(Within(queries, limits), points, plan).tolist() == np.diff(truth.indptr).tolist()


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("maker", HOSTILE)
@pytest.mark.parametrize("n", [1, 2, 3, 8, 9])
def test_graphs_and_pairs(metric: str, maker: str, n: int) -> None:
    points, own = made(maker, n, 3, metric), np.arange(n)
    limits, plan = hard_limits(points, points, metric), plan_for(points, points, metric)
    truth = brute_within(points, points, limits, metric, self_ids=own)
    assert_same_within(find_directly(Within(points, limits, own), points, plan), truth)
    assert_same_within(find_directly(Within(points, limits, own, later=True), points, plan), later_than(truth))


@pytest.mark.parametrize("m", [1, 9])
def test_rules(m: int) -> None:
    points, queries = made("duplicates", 40, 5, "euclidean"), made("duplicates", m, 5, "euclidean", 1)
    mask = np.random.default_rng(0).random((m, 40)) < 0.5
    limits, plan = hard_limits(queries, points, "euclidean"), plan_for(queries, points, "euclidean")
    truth = cut(brute_within(queries, points, limits, "euclidean"), mask)
    request = Within(queries, limits, allowed=Rules(m=m, n=40, mask=mask).as_allowed())
    assert_same_within(find_directly(request, points, plan), truth)
    assert count_directly(request, points, plan).tolist() == np.diff(truth.indptr).tolist()


def test_pairs_of_some_rows() -> None:
    points, own = checks.duplicates(30, 2), np.arange(4, 11)
    limits = np.full(7, 1.0, np.float32)
    truth = later_than(brute_within(points, points, np.full(30, 1.0, np.float32), "euclidean", self_ids=np.arange(30)))
    request = Within(points[4:11], limits, own, later=True)
    found = find_directly(request, points, plan_for(points, points, "euclidean"))
    begin, end = truth.indptr[4], truth.indptr[11]
    assert (found.indptr + begin).tolist() == truth.indptr[4:12].tolist()
    assert found.indices.tolist() == truth.indices[begin:end].tolist()


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_pair_has_one_value(metric: str, dtype: str) -> None:
    rows = np.clip(checks.gaussian(30, 19) * 20, -120, 120)
    rows = held((np.abs(rows) if dtype == "uint8" or METRICS[metric].nonnegative else rows).astype(dtype))
    values = np.empty((30, 30))
    _native.exact_values(metric, rows, rows, np.tile(np.arange(30), (30, 1)), values)
    assert values.tobytes() == values.T.copy().tobytes()


def test_few_pairs_are_not_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    def packed(*_: Any, **__: Any) -> Any:
        raise AssertionError("packed")

    monkeypatch.setattr(PreparedPoints, "__init__", packed)
    points = checks.gaussian(1000, 3)
    tonari.radius_search(points[:1], points, 0.3)
    tonari.radius_count(points[:1], points, 0.3)
    tonari.pairs(points[:50], 0.3)
    tonari.radius_graph(points[:50], 0.3)
    with pytest.raises(AssertionError, match="packed"):
        tonari.radius_search(points, points, 0.3, method="exact")


def test_pairs_beyond_the_memory_of_the_plan_are_screened() -> None:
    points = checks.gaussian(1000, 3)
    plan = plan_for(points[:1], points, "euclidean")
    assert isinstance(METHOD.prepare_within(points, plan), Unpacked)
    tight = dataclasses.replace(plan, packed_bytes=36_000, working_bytes=11_999)  # pairs take 48 bytes
    assert (tight.direct_within, plan.direct_within < 1e-3) == (math.inf, True)
    assert isinstance(METHOD.prepare_within(points, tight), PreparedPoints)
