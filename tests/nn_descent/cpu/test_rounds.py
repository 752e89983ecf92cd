"""Rounds on the CPU, compared with the plain reference, bit for bit."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers import checks
from tests.helpers.checks import DTYPES, HOSTILE, assert_same_neighbors
from tests.helpers.descent import ISAS, SMALL, as_dtype, plan_for
from tonari.core.process.workers import Workers
from tonari.inputs import held
from tonari.metrics import METRICS
from tonari.metrics.reference import brute
from tonari.nn_descent import tuning
from tonari.nn_descent.backend import Known, Round
from tonari.nn_descent.cpu import rounds
from tonari.nn_descent.cpu.backend import CpuBackend
from tonari.nn_descent.cpu.short_rows import short_rows
from tonari.nn_descent.entries import ID, MISSING
from tonari.nn_descent.plan import DescentPlan
from tonari.nn_descent.reference import ReferenceBackend

Array = npt.NDArray[Any]


def assert_same_round(made: Round, truth: Round, metric: str) -> None:
    assert made.entries.dtype == np.int32
    np.testing.assert_array_equal(made.entries, truth.entries)
    assert_same_neighbors(made.found, truth.found, metric=metric)
    assert made.changed == truth.changed
    assert made.phi == pytest.approx(truth.phi, rel=1e-12, abs=0.0)


def assert_same_last_round(made: Round, truth: Round, metric: str) -> None:
    assert made.entries is None
    assert_same_neighbors(made.found, truth.found, metric=metric)
    assert (made.changed, made.phi) == (truth.changed, pytest.approx(truth.phi, rel=1e-12, abs=0.0))


def check_rounds(
    points: Array, plan: DescentPlan, entries: Array, *, count: int = 2, boundary: int | None = None
) -> Round:
    """Check that every instruction set, and two threads, give the result of the reference, also as the last round."""
    plain = ReferenceBackend(points, plan)
    for _ in range(count):
        truth = plain.round(entries, boundary)
        for isa, threads in [*((isa, 1) for isa in ISAS), (ISAS[-1], 2)]:
            steps = CpuBackend(held(points), dataclasses.replace(plan, isa=isa, threads=threads))
            assert_same_round(steps.round(entries, boundary), truth, plan.metric)
        for isa, threads in zip(ISAS, itertools.cycle((2, 1)), strict=False):
            given: dict[str, Any] = {"order": None, "boundary": boundary, "last": True}
            helps = rounds.Helps(rounds.point_terms(steps.points, plan.metric, Workers(1)))
            of_isa = dataclasses.replace(plan, isa=isa)
            made = rounds.run_round(steps.points, entries, of_isa, Workers(threads), helps=helps, **given)
            assert_same_last_round(made, truth, plan.metric)
        entries = truth.entries
    return truth


@pytest.mark.parametrize("maker", HOSTILE)
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("d", [1, 5, 33])
def test_rounds_on_hostile_data(maker: str, metric: str, d: int) -> None:
    points = as_dtype(HOSTILE[maker](90, d, 1), "float64" if maker == "offset_float64" else "float32", metric)
    plan = plan_for(points, 5, metric, **SMALL)
    check_rounds(points, plan, ReferenceBackend(points, plan).start("random"))


ROWS = [("gaussian", 3), ("gaussian", 16), ("gaussian", 47), ("gaussian", 64)]
ROWS += [("duplicates", 3), ("duplicates", 47), ("zero_rows", 16), ("zero_rows", 64)]


@pytest.mark.parametrize("rows", ROWS, ids="{0[0]}-{0[1]}".format)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("metric", METRICS)
def test_rounds_of_every_dtype(dtype: str, metric: str, rows: tuple[str, int]) -> None:
    maker, d = rows
    points = as_dtype(HOSTILE[maker](70, d, 2), dtype, metric)
    plan = plan_for(points, 6, metric, **SMALL)
    check_rounds(points, plan, ReferenceBackend(points, plan).start("random"))


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("metric", ["sqeuclidean", "inner_product", "l1", "linf", "cosine"])
def test_bytes_at_the_ends_of_their_range(dtype: str, metric: str) -> None:
    ends = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)
    points = np.random.default_rng(0).choice(ends, (40, 300))
    points[3], points[4] = ends[0], ends[1]
    plan = plan_for(points, 4, metric, **SMALL)
    check_rounds(points, plan, ReferenceBackend(points, plan).start("random"))


def test_more_columns_than_whole_numbers_can_sum() -> None:
    points = np.zeros((6, 33_100), np.uint8)  # 33,100 * 255^2 exceeds 2^31
    points[::2] = 255
    plan = plan_for(points, 3, "sqeuclidean", list_size=4)
    check_rounds(points, plan, ReferenceBackend(points, plan).start("random"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("metric", METRICS)
def test_values_that_float32_sums_cannot_hold(dtype: str, metric: str) -> None:
    rng = np.random.default_rng(3)
    for scale in (1e-44, 1e-30, 1e-22, 1e19, 3e38):
        points = (rng.uniform(-1, 1, (60, 20)) * scale).astype(dtype)
        points[::7] *= np.float32(1e-3)
        points[::5, 3:] = 0
        points = np.abs(points) if METRICS[metric].nonnegative else points
        plan = plan_for(points, 5, metric, **SMALL)
        check_rounds(points, plan, ReferenceBackend(points, plan).start("random"), count=1)


def test_products_beyond_float32_tie_at_infinity() -> None:
    points = np.random.default_rng(0).uniform(1e20, 2e20, (60, 9)).astype(np.float32)
    plan = plan_for(points, 5, "inner_product", **SMALL)
    truth = check_rounds(points, plan, ReferenceBackend(points, plan).start("random"), count=6)
    assert np.isinf(truth.found.distances).all()
    assert (truth.found.indices < 7).all()


def test_values_that_cancel() -> None:
    """Rows far from their own mean, and points that differ only in the last bits."""
    rng = np.random.default_rng(4)
    points = (1e4 + rng.integers(0, 3, (80, 40)) * 2.0**-10).astype(np.float32)
    for metric in ("correlation", "cosine", "inner_product", "euclidean", "chi2"):
        plan = plan_for(points, 6, metric, **SMALL)
        check_rounds(points, plan, ReferenceBackend(points, plan).start("random"))


@pytest.mark.parametrize("n", [2, 3, 7, 40])
def test_few_points(n: int) -> None:
    for maker in ("gaussian", "all_equal", "duplicates"):
        points = HOSTILE[maker](n, 2, 0)
        for k in {1, n - 1}:
            plan = plan_for(points, k, list_size=n - 1)
            truth = brute(points, points, k, self_ids=np.arange(n))
            steps = CpuBackend(points, plan)
            assert_same_neighbors(steps.round(steps.start("clusters")).found, truth)
            check_rounds(points, plan, ReferenceBackend(points, plan).start("random"))


def test_entries_that_are_missing() -> None:
    points = checks.gaussian(60, 4)
    plan = plan_for(points, 5, **SMALL)
    entries = ReferenceBackend(points, plan).start("random")
    entries[:20] = MISSING
    entries[20:40, ::2] = MISSING
    entries[entries[:, 1] % 3 == 0, 1] &= ID  # and some that are not new
    check_rounds(points, plan, entries)


def test_rows_without_any_neighbour_are_missing() -> None:
    points = checks.gaussian(30, 3)
    for metric, far in (("euclidean", np.inf), ("inner_product", -np.inf)):
        plan = plan_for(points, 5, metric, **SMALL)
        made = CpuBackend(points, plan).round(np.full((30, 9), MISSING, np.int32))
        assert (made.entries == MISSING).all()
        assert (made.found.indices == MISSING).all()
        assert (made.found.distances == far).all()
        assert (made.changed, made.phi) == (0, 0.0)


@pytest.mark.parametrize("boundary", [1, 20, 89])
def test_across_a_boundary(boundary: int) -> None:
    points = checks.gaussian(90, 6)
    plan = plan_for(points, 5, **SMALL)
    entries = CpuBackend(points, plan).seeds(boundary, plan.list_size)
    below = np.arange(90)[:, None] < boundary
    assert (((entries & ID) < boundary) != below)[entries >= 0].all()
    check_rounds(points, plan, entries, boundary=boundary)


def test_two_far_clusters_stay_apart_without_entries_between_them() -> None:
    points = checks.gaussian(80, 3)
    points[40:] += 1e6
    plan = plan_for(points, 4, list_size=16, n_hubs=8, reverse=8, neighbors_per_hub=16, width=128, block=7)
    entries = CpuBackend(points, plan).start("clusters")
    found = check_rounds(points, plan, entries, count=4).found
    assert ((found.indices < 40) == (np.arange(80)[:, None] < 40)).all()
    assert_same_neighbors(found, brute(points, points, 4, self_ids=np.arange(80)))


def test_a_light_round_is_a_round_of_half_the_numbers() -> None:
    points = checks.gaussian(300, 6)
    plan = plan_for(points, 5, list_size=16, n_hubs=7, reverse=6, neighbors_per_hub=9)
    half = dataclasses.replace(plan, n_hubs=4, reverse=3, neighbors_per_hub=5)
    entries = ReferenceBackend(points, plan).start("random")
    wanted = ReferenceBackend(points, half).round(entries)
    for steps in (ReferenceBackend(points, plan), CpuBackend(points, plan)):
        assert_same_round(steps.round(entries, light=True), wanted, "euclidean")
    assert wanted.changed < CpuBackend(points, plan).round(entries).changed


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_round(data: st.DataObject) -> None:
    n = data.draw(st.integers(2, 50))
    size = data.draw(st.integers(1, n - 1))
    chosen = {
        "list_size": size,
        "n_hubs": data.draw(st.integers(1, size)),
        "reverse": data.draw(st.integers(0, 9)),
        "neighbors_per_hub": data.draw(st.integers(1, size)),
        "width": data.draw(st.integers(1, 60)),
        "block": data.draw(st.integers(1, 60)),
    }
    metric, dtype = data.draw(st.sampled_from(list(METRICS))), data.draw(st.sampled_from(DTYPES))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    points = as_dtype(rng.integers(-4, 4, (n, data.draw(st.integers(1, 40)))).astype(np.float32), dtype, metric)
    plan = plan_for(points, data.draw(st.integers(1, size)), metric, **chosen)
    entries = ReferenceBackend(points, plan).start("random")
    entries[rng.random(entries.shape) < 0.2] = MISSING
    old = (rng.random(entries.shape) < 0.4) & (entries >= 0)
    entries[old] &= ID
    boundary = data.draw(st.none() | st.integers(1, n - 1))
    check_rounds(points, plan, entries, count=1, boundary=boundary)


def test_arrays_that_hold_garbage_are_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Previously used memory reads as NaN, as ids beyond the last, and as invalid numbers of places."""
    points = checks.gaussian(300, 8)
    plan = plan_for(points, 5, **SMALL, n_clusters=5, n_probe=2)

    def dirty(shape: Any, dtype: Any = float) -> Array:
        kind = np.dtype(dtype).kind
        return np.full(shape, np.nan if kind == "f" else True if kind == "b" else np.iinfo(dtype).max // 2, dtype)

    steps = CpuBackend(points, plan)
    entries = steps.start("clusters")
    truth = steps.round(entries)
    monkeypatch.setattr(np, "empty", dirty)
    monkeypatch.setattr(np, "empty_like", lambda array: dirty(array.shape, array.dtype))
    steps = CpuBackend(points, plan)
    np.testing.assert_array_equal(steps.start("clusters"), entries)
    assert_same_round(steps.round(entries), truth, "euclidean")


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
def test_contracted_rows_change_nothing(metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some rows are so near to each other that the rounding of contracted rows exceeds their distances."""
    monkeypatch.setattr(tuning, "SHORT_MISSES", 100.0)  # few columns suffice, however they rank such rows
    rng = np.random.default_rng(5)
    rows = np.repeat(3 * rng.normal(size=(4, 8)) @ rng.normal(size=(8, 192)), 40, axis=0)
    rows[:80, :3] += 3e-6 * rng.normal(size=(80, 3))
    rows[80:] += 0.5 * rng.normal(size=(80, 192))
    points = rows.astype(np.float32)
    plan = plan_for(points, 5, metric, **SMALL)
    truth = brute(points, points, 5, metric, self_ids=np.arange(160))
    short = short_rows(points, plan, Known(np.arange(160), truth.indices), Workers(1))
    assert short is not None
    assert short.bounds
    entries = ReferenceBackend(points, plan).start("random")
    for _ in range(2):
        wanted = ReferenceBackend(points, plan).round(entries)
        for isa in ISAS:
            same = (points, entries, dataclasses.replace(plan, isa=isa), Workers(1))
            given: dict[str, Any] = {"helps": rounds.Helps(short=short), "order": None, "boundary": None}
            assert_same_round(rounds.run_round(*same, **given), wanted, metric)
            assert_same_last_round(rounds.run_round(*same, **given, last=True), wanted, metric)
        entries = wanted.entries


def test_the_order_of_work_changes_nothing() -> None:
    points = checks.gaussian(200, 5)
    plan = plan_for(points, 5, **SMALL)
    workers = Workers(2)
    entries = ReferenceBackend(points, plan).start("random")
    as_they_are = rounds.run_round(points, entries, plan, workers, helps=rounds.Helps(), order=None, boundary=None)
    shuffled = np.random.default_rng(0).permutation(200).astype(np.int32)
    made = rounds.run_round(points, entries, plan, workers, helps=rounds.Helps(), order=shuffled, boundary=None)
    assert_same_round(made, as_they_are, "euclidean")
    assert made.phi == as_they_are.phi


@pytest.mark.parametrize("most", [0, 1, 5, 64])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_reverse_lists(most: int, threads: int) -> None:
    points = checks.gaussian(100, 3)
    plan = plan_for(points, 5, list_size=9, n_hubs=6, reverse=most)
    entries = ReferenceBackend(points, plan).start("random")
    entries[entries % 5 == 0] = MISSING
    truth = ReferenceBackend(points, plan).reverse(entries)
    np.testing.assert_array_equal(rounds.reverse_lists(entries, 6, most, Workers(threads)), truth)
