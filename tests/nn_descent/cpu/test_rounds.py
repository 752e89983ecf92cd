"""The steps on the CPU: rounds against the plain reference, bit for bit, and the start against what it promises."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers import checks, plans
from tests.helpers.checks import DTYPES, HOSTILE, assert_same_neighbors, assert_valid_neighbors, check_interrupt
from tonari import exact
from tonari.core import _native
from tonari.core.isa import chosen_isa
from tonari.core.neighbors import Neighbors
from tonari.core.workers import Workers
from tonari.inputs import held
from tonari.metrics import METRICS
from tonari.metrics.reference import brute, returned, values_at
from tonari.nn_descent.backend import Round
from tonari.nn_descent.cpu import init as start
from tonari.nn_descent.cpu import rounds
from tonari.nn_descent.cpu.backend import CpuBackend
from tonari.nn_descent.cpu.cluster_blocks import search_clusters
from tonari.nn_descent.cpu.clusters import Form, find_centres
from tonari.nn_descent.entries import ID, MISSING, NEW
from tonari.nn_descent.plan import DescentPlan
from tonari.nn_descent.reference import ReferenceBackend

Array = npt.NDArray[Any]

ISAS = _native.supported_isas()
SMALL = {"list_size": 9, "n_hubs": 4, "reverse": 3, "neighbors_per_hub": 6, "width": 20, "block": 7}


def plan_for(points: Array, k: int, metric: str = "euclidean", **overrides: Any) -> DescentPlan:
    n, d = points.shape
    return plans.descent(n, d, k, dtype=points.dtype, metric=metric, **{"threads": 1} | overrides)


def as_dtype(points: Array, dtype: str, metric: str) -> Array:
    """The points within the range of a dtype and of a metric."""
    if METRICS[metric].nonnegative or dtype == "uint8":
        points = np.abs(points)
    if dtype in ("uint8", "int8"):
        points = points.astype(np.float64) / (np.abs(points.astype(np.float64)).max() or 1.0) * 127
    if dtype == "float16":
        points = np.clip(points, -6e4, 6e4)
    return np.ascontiguousarray(points.astype(dtype))


def assert_same_round(made: Round, truth: Round, metric: str) -> None:
    assert made.entries.dtype == np.int32
    np.testing.assert_array_equal(made.entries, truth.entries)
    assert_same_neighbors(made.found, truth.found, metric=metric)
    assert made.changed == truth.changed
    assert made.phi == pytest.approx(truth.phi, rel=1e-12, abs=0.0)


def check_rounds(
    points: Array, plan: DescentPlan, entries: Array, *, count: int = 2, boundary: int | None = None
) -> Round:
    """Every instruction set, with one thread and with two, does what the reference does."""
    plain = ReferenceBackend(points, plan)
    for _ in range(count):
        truth = plain.round(entries, boundary)
        for isa in ISAS:
            for threads in (1, 2):
                steps = CpuBackend(held(points), dataclasses.replace(plan, isa=isa, threads=threads))
                assert_same_round(steps.round(entries, boundary), truth, plan.metric)
        entries = truth.entries
    return truth


@pytest.mark.parametrize("maker", HOSTILE)
@pytest.mark.parametrize("metric", METRICS)
def test_rounds_on_hostile_data(maker: str, metric: str) -> None:
    for d in (1, 5, 33):
        points = as_dtype(HOSTILE[maker](90, d, 1), "float64" if maker == "offset_float64" else "float32", metric)
        plan = plan_for(points, 5, metric, **SMALL)
        check_rounds(points, plan, ReferenceBackend(points, plan).start("random"))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("metric", METRICS)
def test_rounds_of_every_dtype(dtype: str, metric: str) -> None:
    for maker in ("gaussian", "duplicates", "zero_rows"):
        for d in (3, 16, 47, 64):
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
    points = np.zeros((6, 33_100), np.uint8)  # 33,100 * 255^2 is beyond 2^31
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
    """Rows far from their own mean, and points that differ in the last bits."""
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
    entries[entries[:, 1] % 3 == 0, 1] &= ID  # and some that are old
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
    """Memory that was used before reads as NaN, as ids beyond the last, and as numbers of places."""
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


def test_the_order_of_work_changes_nothing() -> None:
    points = checks.gaussian(200, 5)
    plan = plan_for(points, 5, **SMALL)
    workers = Workers(2)
    entries = ReferenceBackend(points, plan).start("random")
    as_they_are = rounds.run_round(points, entries, plan, workers, terms=None, order=None, boundary=None)
    shuffled = np.random.default_rng(0).permutation(200).astype(np.int32)
    made = rounds.run_round(points, entries, plan, workers, terms=None, order=shuffled, boundary=None)
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


def assert_start(entries: Array, n: int, size: int) -> None:
    assert entries.shape == (n, size)
    assert entries.dtype == np.int32
    assert ((entries >= 0) & (entries & NEW != 0)).all()
    ids = np.sort(entries & ID, axis=1)
    assert ids.max() < n
    assert (ids[:, 1:] != ids[:, :-1]).all(), "an id twice in a row"
    assert (ids != np.arange(n)[:, None]).all(), "a point among its own"


def shared(indices: Array, truth: Neighbors) -> float:
    """Share of the true neighbours that are listed."""
    return float((indices[:, :, None] == truth.indices[:, None, :]).any(axis=1).mean())


def groups(n: int, d: int, seed: int = 0) -> Array:
    """Make 40 groups that overlap, of very different sizes, each with four directions."""
    rng = np.random.default_rng(seed)
    sizes = rng.pareto(1.0, 40) + 0.1
    group = rng.choice(40, n, p=sizes / sizes.sum())
    directions = rng.standard_normal((40, 4, d))
    within = np.einsum("ni,nid->nd", rng.standard_normal((n, 4)), directions[group])
    return (rng.standard_normal((40, d))[group] * 2 + 5 + within).astype(np.float32)


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
    points = np.round(checks.gaussian(700, 6) * 20).astype(np.int8)  # whole numbers, which few scores round
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
        seen.append({"seekers": given[4], "members": given[5]} | named)
        search_clusters(*given, **named)

    monkeypatch.setattr(start, "search_clusters", spy)
    entries = CpuBackend(points, plan).start("clusters")
    assert_start(entries, 2500, plan.list_size)
    assert np.diff(seen[0]["seekers"].begins).max() <= 32
    assert np.diff(seen[0]["members"].begins).max() <= 4 * 50
    assert seen[0]["most"] == 2 * 2 * 50  # points of so many average clusters


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


@pytest.mark.parametrize("metric", METRICS)
def test_phi_never_rises_and_the_neighbours_are_found(metric: str) -> None:
    points = as_dtype(groups(2000, 10, 1), "float32", metric)
    plan = plan_for(points, 8, metric, n_clusters=30, n_probe=3)
    steps = CpuBackend(points, plan)
    entries, sign = steps.start("clusters"), -1 if METRICS[metric].descending else 1
    phi = np.inf
    for _ in range(4):
        made = steps.round(entries)
        assert sign * made.phi <= phi
        entries, phi = made.entries, sign * made.phi
        assert_valid_neighbors(made.found, m=2000, n=2000, k=8, metric=metric, self_ids=np.arange(2000))
    truth = exact.neighbors(points, points, 8, metric=metric, self_ids=np.arange(2000), threads=1)
    assert shared(made.found.indices, truth) > 0.95


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


def test_exact_rows_and_lists_as_entries() -> None:
    points = checks.gaussian(120, 4)
    plan = plan_for(points, 5, **SMALL)
    steps = CpuBackend(points, plan)
    rows = np.array([3, 77, 119])
    truth = brute(points[rows], points, 5, self_ids=rows)
    assert_same_neighbors(steps.exact(rows, 5), truth)
    whole = brute(points, points, 5, self_ids=np.arange(120))
    assert_same_neighbors(steps.of_rows(whole, rows), truth)
    lists = np.array([[4, -1], [7, 1]])
    assert steps.entries_of(lists, new=True).tolist() == [[4 | NEW, -1], [7 | NEW, 1 | NEW]]
    old = steps.entries_of(lists, new=False)
    assert old.tolist() == [[4, -1], [7, 1]]
    assert old.dtype == np.int32
    assert steps.beside(old, old[:, :1] + 1).tolist() == [[4, -1, 5] + [-1] * 6, [7, 1, 8] + [-1] * 6]
    wide = np.arange(20, dtype=np.int32).reshape(2, 10)
    assert steps.beside(wide, old).tolist() == wide[:, :9].tolist()
    assert steps.beside(wide[:, :8], old).tolist() == np.hstack([wide[:, :8], old[:, :1]]).tolist()


CHILD = """
import threading, time
import numpy as np
from tonari.nn_descent.cpu.backend import CpuBackend
from tonari.metrics.problem import make_problem
from tonari.nn_descent.planner import plan_descent

points = np.random.default_rng(0).random((60_000, 64), np.float32)
problem = make_problem(60_000, 60_000, 64, 20, dtype="float32", metric="euclidean", self_join=True, threads={threads})
plan = plan_descent(problem, list_size=48)
steps = CpuBackend(points, plan)
entries = steps.start("random")
print("started", flush=True)
try:
    while True:
        {work}
except KeyboardInterrupt:
    print("stopped", time.time(), flush=True)
print("threads", threading.active_count(), flush=True)
"""


@pytest.mark.process
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("work", ["steps.round(entries)", "steps.start('clusters')"])
def test_interrupt_stops_within_a_second(work: str, threads: int) -> None:
    check_interrupt(CHILD.format(work=work, threads=threads))
