"""Starts on the CPU: by clusters, random, and by reverse neighbours."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers import checks
from tests.helpers.checks import DTYPES, HOSTILE
from tests.helpers.descent import as_dtype, groups, plan_for, shared
from tonari import exact
from tonari.core.process.isa import chosen_isa
from tonari.inputs import held
from tonari.metrics import METRICS
from tonari.metrics.reference import brute, returned, values_at
from tonari.nn_descent.backend import Known
from tonari.nn_descent.cpu import init as start
from tonari.nn_descent.cpu.backend import CpuBackend
from tonari.nn_descent.cpu.cluster_blocks import search_clusters
from tonari.nn_descent.entries import ID, MISSING, NEW

Array = npt.NDArray[Any]


def assert_start(entries: Array, n: int, size: int) -> None:
    assert entries.shape == (n, size)
    assert entries.dtype == np.int32
    assert ((entries >= 0) & (entries & NEW != 0)).all()
    ids = np.sort(entries & ID, axis=1)
    assert ids.max() < n
    assert (ids[:, 1:] != ids[:, :-1]).all(), "an id twice in a row"
    assert (ids != np.arange(n)[:, None]).all(), "a point among its own"


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_start_finds_most_neighbours(metric: str, dtype: str) -> None:
    points = as_dtype(groups(3000, 12), dtype, metric)
    plan = plan_for(points, 10, metric, n_clusters=40, n_probe=8)
    points = held(points)
    entries = CpuBackend(points, plan).start("clusters")
    assert_start(entries, 3000, plan.list_size)
    truth = exact.neighbors(points, points, 10, metric=metric, self_ids=np.arange(3000), threads=1)
    assert shared(entries & ID, truth) > 0.8


def test_the_start_takes_the_best_of_what_it_meets() -> None:
    points = np.round(checks.gaussian(700, 6) * 20).astype(np.int8)  # whole numbers, of which few scores are rounded
    plan = plan_for(points, 6, n_clusters=7, n_probe=7)  # all of them
    truth = brute(points, points, plan.list_size, self_ids=np.arange(700))
    entries = CpuBackend(points, plan).start("clusters")
    values = values_at(points, points, entries & ID, "euclidean")
    found = returned(values, np.dtype(np.float32))
    if chosen_isa() == "avx2":  # with 7 bits of a query, 0.4 of a value, or about 2 % of a square, is lost
        np.testing.assert_allclose(np.sort(found, axis=1), truth.distances, rtol=0.01)
    else:
        np.testing.assert_array_equal(found, truth.distances)


@pytest.mark.parametrize("maker", ["all_equal", "duplicates", "one_hot", "tight_far_clusters", "huge", "zero_rows"])
@pytest.mark.parametrize("metric", ["euclidean", "cosine", "inner_product", "l1"])
def test_the_start_copes_with_any_data(maker: str, metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    points = HOSTILE[maker](2500, 7, 0)
    plan = plan_for(points, 10, metric, n_clusters=50, n_probe=2)
    seen: list[dict[str, Any]] = []

    def spy(*given: Any, **named: Any) -> None:
        seen.append({"seekers": given[2], "members": given[3].pieces, "most": given[4].most})
        search_clusters(*given, **named)

    monkeypatch.setattr(start, "search_clusters", spy)
    entries = CpuBackend(points, plan).start("clusters")
    assert_start(entries, 2500, plan.list_size)
    assert np.diff(seen[0]["seekers"].begins).max() <= 32
    assert np.diff(seen[0]["members"].begins).max() <= 4 * 50
    assert seen[0]["most"] == 2 * 2 * 50  # number of points in this many average clusters


def test_all_equal_points_end_at_the_first_ids() -> None:
    points = checks.all_equal(600, 5)
    plan = plan_for(points, 8, n_clusters=12, n_probe=2)
    steps = CpuBackend(points, plan)
    entries, before = steps.start("clusters"), np.inf
    truth = brute(points, points, 8, self_ids=np.arange(600))
    for _ in range(20):
        made = steps.round(entries)
        entries = made.entries
        missed = 1 - shared(made.found.indices, truth)
        assert missed <= before
        before = missed
    assert before == 0


def test_another_seed_is_another_start() -> None:
    points = groups(1500, 9, 2)
    plan = plan_for(points, 10, n_clusters=20, n_probe=4)
    made, other = (CpuBackend(points, dataclasses.replace(plan, seed=seed)).start("clusters") for seed in (0, 1))
    assert (made != other).any()


def test_seeds_of_a_side_with_few_points() -> None:
    points = groups(400, 5)
    plan = plan_for(points, 6, n_clusters=10, n_probe=3)
    entries = CpuBackend(points, plan).seeds(3, 8)
    assert entries.shape == (400, 8)
    assert (entries[3:, 3:] == MISSING).all()
    np.testing.assert_array_equal(np.sort(entries[3:, :3] & ID, axis=1), np.tile([0, 1, 2], (397, 1)))
    assert (entries[:3] >= 3 + NEW).all()


def known_rows(points: Array, k: int) -> Known:
    rows = np.arange(0, len(points), 40)
    return Known(rows, exact.neighbors(points[rows], points, k, metric="euclidean", self_ids=rows, threads=1).indices)


def test_a_start_among_isotropic_points_meets_as_many_clusters_as_it_needs() -> None:
    points = checks.gaussian(4000, 12)
    plan = plan_for(points, 8, n_clusters=125, n_probe=2, recall=0.95)
    known = known_rows(points, 8)

    def found(widens: bool) -> float:
        entries = CpuBackend(points, dataclasses.replace(plan, widens=widens)).start("clusters", known)
        return float((known.indices[:, :, None] == (entries[known.rows] & ID)[:, None, :]).any(axis=2).mean())

    assert found(False) < 0.5
    assert found(True) > 0.85
