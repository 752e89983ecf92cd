"""Searches on one device, from rows to proved neighbours: the bits of the reference for any data.

Without a GPU, Triton's interpreter runs the kernels on the CPU. Tests of speed, streams or real memory run only on a
GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.checks import DTYPES, HOSTILE, Array, assert_same_neighbors, duplicates, gaussian
from tests.helpers.devices import HAS_CUDA, HAS_TORCH, needs_torch, on_gpu
from tests.helpers.gpu_checks import (
    DEVICE,
    OUT_OF_MEMORY,
    check,
    check_stops,
    clusters_for_each_precision,
    interrupt,
    plan_of,
    rows_of,
    search,
    tensors,
)
from tonari import exact, inputs
from tonari.core.results.neighbors import Neighbors
from tonari.core.trail import recording
from tonari.exact.cuda import tuning
from tonari.metrics import METRICS
from tonari.metrics.reference import brute

# NumPy, which replaces the device, warns where a device computes silently.
pytestmark = [
    needs_torch,
    pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered:RuntimeWarning"),
]
if HAS_TORCH:
    import torch

    from tonari.exact.cuda.attempts import first
    from tonari.exact.cuda.attempts import ladder as engine
    from tonari.exact.cuda.attempts.in_batches import in_batches
    from tonari.exact.cuda.attempts.ladder import DevicePoints, search_on_device
    from tonari.exact.cuda.screens import screener
    from tonari.exact.cuda.screens.sampling import Sample

HERE = {"devices": (DEVICE,)}
ALL = {"precisions": ("float16", "split", "values")} | HERE
PRODUCTS = [name for name, metric in METRICS.items() if metric.form == "gemm"]
N, M, D, K = 140, 3, 19, 3  # two tiles of points, the second one short


# ---------------------------------------------------------------- requests


@pytest.mark.parametrize(
    ("dtype", "metric"),
    [
        (dtype, metric)
        for dtype in DTYPES
        for metric in METRICS
        if HAS_CUDA or dtype != "bfloat16" or metric in ("euclidean", "correlation", "chi2")
    ],
)
def test_every_metric_and_dtype(metric: str, dtype: str) -> None:
    queries, points = rows_of(M, D, dtype, metric, 1), rows_of(N, D, dtype, metric)
    report = check(queries, points, K, metric, width=4, **HERE)
    assert sum(report.rows_by_precision.values()) == M


@pytest.mark.parametrize("maker", [checks.subnormal, checks.huge, checks.widest], ids=lambda maker: maker.__name__)
@pytest.mark.parametrize("metric", METRICS if HAS_CUDA else ["sqeuclidean", "correlation", "linf"])
def test_bfloat16_of_any_magnitude(metric: str, maker: Callable[..., Array]) -> None:
    rows = maker(N, 7).astype("bfloat16")
    points = np.abs(rows) if METRICS[metric].nonnegative else rows
    check(points[:M], points, K, metric, width=4, **HERE)


@pytest.mark.parametrize("metric", ["euclidean", "inner_product", "l1"])
@pytest.mark.parametrize("k", [1, N])
def test_one_neighbour_and_all_points(metric: str, k: int) -> None:
    check(gaussian(2, 4, 1), gaussian(N, 4), k, metric, **HERE)


@pytest.mark.parametrize("n", [1, 2, 127, 128, 129])
def test_few_points(n: int) -> None:
    check(gaussian(2, 3, 1), gaussian(n, 3), min(n, 2), **HERE)


@pytest.mark.parametrize("d", [1, 16, 130])
def test_dimensions(d: int) -> None:
    check(gaussian(2, d, 1), gaussian(N, d), K, width=4, **HERE)


def test_the_group_leaves_no_trace() -> None:
    for group in (8, 16, 32):
        check(gaussian(2, 6, 1), gaussian(N, 6), K, group=group, width=2, **HERE)


def test_batches_leave_no_trace() -> None:
    reports: list[tuple[int, int]] = []
    queries, points = gaussian(5, 6, 1), gaussian(N, 6)
    found, _ = search(queries, points, K, query_batch=2, progress=lambda *pair: reports.append(pair), **HERE)
    assert_same_neighbors(found, brute(queries, points, K))
    assert [done // N for done, _ in reports] == [2, 4, 5]
    assert {total for _, total in reports} == {5 * N}


@pytest.mark.parametrize("metric", ["euclidean", "inner_product", "chi2"])
def test_a_point_is_not_its_own_neighbour(metric: str) -> None:
    points = np.abs(duplicates(N, 5))
    ids = np.array([0, 77, 139])
    plan = plan_of(points[ids], points, K, metric, width=4, **HERE)
    rows, queries, own = tensors(DEVICE, points, points[ids], ids)
    found, report = search_on_device(queries, DevicePoints(rows, metric, plan.precisions[0]), plan, own=own)
    truth = brute(points[ids], points, K, metric, self_ids=ids)
    assert_same_neighbors(Neighbors(*(part.cpu().numpy() for part in found)), truth, metric=metric)
    assert sum(report.rows_by_precision.values()) == 3


def test_a_whole_graph() -> None:
    points = duplicates(20, 4)
    check(points, points, 5, self_join=True, query_batch=7, **HERE)


# ---------------------------------------------------------------- hostile data


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_data(name: str) -> None:
    points = HOSTILE[name](N, 6, 0)
    queries = points[5::60] if name != "gaussian" else gaussian(M, 6, 1)
    for given in (HERE, ALL):
        check(queries, points, K, width=4, **given)


@pytest.mark.full
@pytest.mark.parametrize("metric", ["inner_product", "cosine", "correlation", "sqeuclidean", "linf"])
@pytest.mark.parametrize("name", ["offset_1e4", "zero_rows", "huge"])
def test_hostile_data_by_other_metrics(metric: str, name: str) -> None:
    points = HOSTILE[name](N, 6, 0)
    check(points[[1, 66]], points, K, metric, width=4, **HERE)


@pytest.mark.parametrize(
    ("unproved", "width"),
    [
        ([40, 30, 5], 8),  # the first width that proves nearly all rows
        ([500, 495, 490, 485], 2),  # no width helps
        ([9], 2),  # whatever the next width proves, it takes longer
        ([900, 500, 480, 465], 4),  # here, one width helps
        ([900, 700, 500, 300], 16),
    ],
)
def test_a_width_that_hardly_helps_is_not_taken(
    unproved: list[int], width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (points,) = tensors(DEVICE, gaussian(40, 4))
    plan = plan_of(points, points, 1, width=2, **HERE)
    search = DevicePoints(points, plan.metric, plan.precisions[0]).begin(points, plan)
    left = iter(unproved)
    monkeypatch.setattr(type(search), "pilot", lambda self, own: (torch.arange(1000) >= next(left)).to(torch.uint8))
    monkeypatch.setattr(type(search), "again_cost", 100.0)
    search.fit_width(None)
    assert search.width == width
    assert search.unproved == unproved[[2, 4, 8, 16].index(width)] / 1000


@pytest.mark.usefixtures("attempts")
def test_rows_climb_as_far_as_they_have_to() -> None:
    queries, points = clusters_for_each_precision()
    report = check(queries, points, K, group=8, width=1, **ALL)
    assert report.rows_by_precision == {"float16": 1, "split": 1, "values": 1}


@pytest.mark.usefixtures("attempts")
def test_rows_climb_past_a_rung_that_is_left_out() -> None:
    queries, points = clusters_for_each_precision()
    report = check(queries, points, K, group=8, width=1, precisions=("float16", "values"), **HERE)
    assert report.rows_by_precision == {"float16": 1, "values": 2}


@pytest.mark.parametrize("at_once", [True, False])
def test_rows_so_few_that_an_attempt_takes_longer_are_compared(at_once: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise another attempt proves one of the two rows that the first attempt leaves unproved."""
    queries, points = clusters_for_each_precision()
    n, d = points.shape
    of_two = 2 * n * (d + tuning.OF_PAIR)
    monkeypatch.setattr(tuning, "OF_ATTEMPT", of_two - (not at_once))
    report = check(queries, points, K, group=8, width=1, **ALL)
    assert report.rows_by_precision == (
        {"float16": 1, "values": 2} if at_once else {"float16": 1, "split": 1, "values": 1}
    )


@pytest.mark.usefixtures("attempts")
def test_rows_climb_among_themselves() -> None:
    """A row is not its own neighbour at any precision level."""
    points = clusters_for_each_precision()[1]
    ids = np.array([140, 280 + 140, 560 + 140])
    plan = plan_of(points[ids], points, K, group=8, width=1, query_batch=1, **ALL)
    rows, queries, own = tensors(DEVICE, points, points[ids], ids)
    found, report = search_on_device(queries, DevicePoints(rows, plan.metric, plan.precisions[0]), plan, own=own)
    truth = brute(points[ids], points, K, self_ids=ids)
    assert_same_neighbors(Neighbors(*(part.cpu().numpy() for part in found)), truth)
    assert set(report.rows_by_precision) == {"float16", "split", "values"}


@pytest.mark.parametrize("metric", checks.ELEMENTWISE)
def test_equal_points_climb_to_values(metric: str) -> None:
    points = np.abs(np.vstack([gaussian(20, 5), checks.all_equal(N, 5, 1)]))
    queries = points[[3, 100]]
    report = check(queries, points, K, metric, group=8, width=1, **HERE)
    assert report.rows_by_precision["values"] >= 1


def left_to_a_level() -> tuple[Array, Array]:
    """Make queries; near two of them are more copies of a point than a first attempt of four groups refines."""
    points = gaussian(300, D)
    points[:60] = points[0]
    return np.concatenate([points[:2] + np.float32(1e-3), gaussian(3, D, 1)]), points


@pytest.mark.usefixtures("attempts")
def test_rows_are_searched_before_the_host_waits_if_the_last_search_left_some() -> None:
    queries, points = left_to_a_level()
    plan, (there, others, rows) = (
        plan_of(queries, points, K, group=8, width=4, **HERE),
        tensors(DEVICE, queries, points[100:105], points),
    )
    truth = [brute(some, points, K) for some in (queries, points[100:105])]

    def choices(which: int) -> list[str]:
        with recording("search", 5) as record:
            prepared = DevicePoints(rows, plan.metric, plan.precisions[0])
            found, report = search_on_device((there, others)[which], prepared, plan)
        assert_same_neighbors(Neighbors(*(part.cpu().numpy() for part in found)), truth[which])
        assert report.rows_by_precision == {"float16": 5}
        assert record.proved == 5
        return [choice.why for choice in record.choices]

    ahead = ["16 rows are searched again before the host knows which are left"]
    assert [choices(which) for which in (0, 0, 0, 1, 1, 0, 0)] == [[], ahead, ahead, ahead, [], [], ahead]


@pytest.mark.usefixtures("attempts")
def test_rows_that_no_level_proves_are_not_searched_ahead_again() -> None:
    queries, points = clusters_for_each_precision()
    queries = queries[1:]
    plan, (there, rows) = plan_of(queries, points, K, group=8, width=1, **ALL), tensors(DEVICE, queries, points)
    prepared = DevicePoints(rows, plan.metric, plan.precisions[0])
    seen = []
    for _ in range(3):
        search_on_device(there, prepared, plan)
        seen.append(engine._left.get(plan, 0))
    assert seen == [2, 0, 2]


def test_few_rows_are_compared_and_many_are_not_searched_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    queries, points = tensors(DEVICE, gaussian(M, D, 1), gaussian(N, D))
    plan = plan_of(queries, points, K, **HERE)
    search = DevicePoints(points, plan.metric, plan.precisions[0]).begin(queries, plan)
    for rows, ahead in ((0, 0), (1, 16), (9, 16), (10, 64), (49, 64), (50, 128), (107, 128), (108, 0), (10**6, 0)):
        search.left_before = rows
        assert search.stragglers == ahead, rows
    n, d = points.shape
    monkeypatch.setattr(tuning, "OF_ATTEMPT", 4 * n * (d + tuning.OF_PAIR))
    for rows, known in ((4, None), (5, 5), (0, None)):
        engine._remember(search, plan, rows)
        assert engine._left.get(plan) == known


# ---------------------------------------------------------------- samples


@pytest.fixture
def sampled(monkeypatch: pytest.MonkeyPatch) -> Callable[[Sample], None]:
    """Let searches use a sample that they would not use for so few points."""

    def take(sample: Sample) -> None:
        monkeypatch.setattr(tuning, "LEAST_ROWS", 1)
        monkeypatch.setattr(screener, "sample_for", lambda n, width, group: sample)

    return take


@pytest.mark.parametrize("metric", PRODUCTS)
def test_sampled_thresholds(metric: str, sampled: Any) -> None:
    sampled(Sample(stride=2, rank=4, capacity=128))
    report = check(gaussian(M, D, 1), gaussian(300, D), K, metric, width=6, **HERE)
    assert report.rows_by_precision == {"float16": M}


@pytest.mark.parametrize(
    ("n", "sample"),
    [
        (
            300,
            Sample(stride=128, rank=1, capacity=64) if HAS_TORCH else None,
        ),  # queries are near points of the sample
        (1300, Sample(stride=2, rank=70, capacity=1) if HAS_TORCH else None),
    ],
    ids=["the threshold is too low", "the list is too short"],
)
@pytest.mark.usefixtures("attempts")
def test_samples_that_fail_cost_no_truth(n: int, sample: Any, sampled: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sampled(sample)
    unproved: list[int] = []
    make_attempts = engine.make_attempts

    def count(left: Any, attempts: Any) -> None:
        if attempts is not engine.BEFORE_WAITING:
            unproved.append(int((left.proved == 0).sum()))
        make_attempts(left, attempts)

    monkeypatch.setattr(engine, "make_attempts", count)
    points = gaussian(n, 6)
    report = check(points[[0, 128]] + 1e-3, points, 5, width=9, group=8, **ALL)
    assert unproved == [2]
    assert report.rows_by_precision == {"float16": 2}


def test_the_sample_has_no_say_in_which_row_is_named(sampled: Any) -> None:
    sampled(Sample(stride=2, rank=2, capacity=64))
    points = gaussian(300, 4)
    points[[200, 250]] = np.nan
    with pytest.raises(ValueError, match="points: row 200 "):
        search(gaussian(M, 4, 1), points, K, width=4, **HERE)


# ---------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("name", "row", "value", "metric"),
    [
        ("points", 131, np.nan, "euclidean"),
        ("points", 2, np.inf, "cosine"),
        ("points", 139, -1.0, "chi2"),
        ("queries", 4, np.nan, "l1"),  # in the third batch
        ("queries", 0, -np.inf, "inner_product"),
        ("queries", 3, -0.5, "chi2"),
        ("points", 7, 1e200, "euclidean"),
        ("queries", 1, -1e151, "euclidean"),
    ],
)
def test_bad_values_have_the_host_s_words(name: str, row: int, value: float, metric: str) -> None:
    dtype = "float64" if abs(value) > 1e100 and np.isfinite(value) else "float32"
    given = {"queries": rows_of(5, 4, dtype, metric, 1), "points": rows_of(N, 4, dtype, metric)}
    given[name][row, 2] = value
    with pytest.raises(ValueError, match=f"^{name}: row {row} ") as expected:
        tonari.search(**given, k=K, metric=metric)
    with pytest.raises(ValueError, match=f"^{name}: row {row} ") as refused:
        search(**given, k=K, metric=metric, query_batch=2, width=4, **HERE)
    assert str(refused.value) == str(expected.value)


def test_points_are_looked_at_before_queries() -> None:
    queries, points = gaussian(2, 4, 1), gaussian(N, 4)
    queries[1] = points[138] = np.nan
    with pytest.raises(ValueError, match=r"^points: row 138 "):
        search(queries, points, K, **HERE)


# ---------------------------------------------------------------- memory and Ctrl-C


def test_short_memory_makes_shorter_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    refine = first.refine_lowest

    def short_of_memory(queries: Any, *arguments: Any, **options: Any) -> Any:
        sizes.append(len(queries))
        if len(queries) > 2:
            raise torch.cuda.OutOfMemoryError(OUT_OF_MEMORY)
        return refine(queries, *arguments, **options)

    monkeypatch.setattr(first, "refine_lowest", short_of_memory)
    reports: list[int] = []
    queries, points = gaussian(9, 4, 1), gaussian(N, 4)
    found, _ = search(
        queries, points, 1, query_batch=8, width=2, progress=lambda *pair: reports.append(pair[0]), **HERE
    )
    assert sizes == [8, 4, 2, 2, 2, 2, 1]
    assert reports == [N * done for done in (2, 4, 6, 8, 9)]
    assert_same_neighbors(found, brute(queries, points, 1))


def test_no_memory_at_all_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(*arguments: Any, **options: Any) -> None:
        raise torch.cuda.OutOfMemoryError(OUT_OF_MEMORY)

    monkeypatch.setattr(first, "pack_queries", no_memory)
    queries, points = gaussian(3, 4, 1), gaussian(N, 4)
    planned = plan_of(queries, points, 1, **HERE).total_bytes
    with pytest.raises(
        MemoryError, match=rf"even for one query at a time; the plan needs {planned} bytes.*memory="
    ) as e:
        search(queries, points, 1, **HERE)
    assert str(e.value).endswith("Tried to allocate 2.00 GiB. GPU 0 has 79 GiB of which 1 GiB is free.")
    monkeypatch.undo()
    check(queries, points, 1, **HERE)


def test_other_errors_pass() -> None:
    def work(rows: slice) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        in_batches(4, 2, work, planned=0)


def test_stopping_between_batches() -> None:
    check_stops(queries=gaussian(7, 4, 1), points=gaussian(N, 4), k=1, query_batch=1, width=2, **HERE)


# ---------------------------------------------------------------- on a GPU


def large(metric: str, dtype: str = "float32") -> tuple[Array, Array]:
    return rows_of(3000, 70, dtype, metric, 1), rows_of(200_000, 70, dtype, metric)


def on_cpu(queries: Array, points: Array, k: int, metric: str) -> Neighbors:
    return exact.neighbors(inputs.held(queries), inputs.held(points), k, metric=metric)


@on_gpu
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_cpu_s_bits(metric: str, dtype: str) -> None:
    queries, points = large(metric, dtype)
    queries, points = (queries[:500], points[:20_000]) if metric == "chi2" or dtype == "float64" else (queries, points)
    found, _ = search(*tensors(DEVICE, queries, points), 10, metric, **HERE)
    assert_same_neighbors(found, on_cpu(queries, points, 10, metric), metric=metric)


@on_gpu
@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("k", [1, 100])
def test_the_cpu_s_bits_on_hostile_data(name: str, k: int) -> None:
    points = HOSTILE[name](30_000, 24, 0)
    found, _ = search(*tensors(DEVICE, points[::50].copy(), points), k, **HERE)
    assert_same_neighbors(found, on_cpu(points[::50].copy(), points, k, "euclidean"))


@on_gpu
def test_a_large_graph() -> None:
    points = checks.tight_far_clusters(20_000, 16)
    (rows,) = tensors(DEVICE, points)
    found, _ = search(rows, rows, 15, self_join=True, **HERE)
    assert_same_neighbors(found, exact.neighbors(points, points, 15, metric="euclidean", self_ids=np.arange(20_000)))


@on_gpu
@pytest.mark.parametrize("metric", ["euclidean", "inner_product", "l1"])
def test_the_same_call_gives_the_same_bytes(metric: str) -> None:
    queries, points = tensors(DEVICE, *large(metric))
    first, second = (search(queries, points, 10, metric, **HERE)[0] for _ in range(2))
    for one, other in zip(first, second, strict=True):
        assert one.tobytes() == other.tobytes()


@on_gpu
def test_the_current_stream_is_the_order_of_everything() -> None:
    """Rows are written late on another stream, and overwritten on that stream after the search."""
    queries, points = large("euclidean")
    truth = on_cpu(queries, points, 10, "euclidean")
    on_device = tensors(DEVICE, queries, points)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        late = [torch.zeros_like(part) for part in on_device]
        torch.cuda._sleep(200_000_000)
        for part, source in zip(late, on_device, strict=True):
            part.copy_(source)
        found = tonari.search(*late, 10)
        for part in late:
            part.zero_()
    assert_same_neighbors(Neighbors(*(part.cpu().numpy() for part in found)), truth)


@on_gpu
@pytest.mark.parametrize("metric", ["euclidean", "l1"])
@pytest.mark.parametrize("hard", [False, True])
def test_the_planned_memory_suffices(metric: str, hard: bool) -> None:
    make = checks.all_equal if hard else checks.gaussian
    queries, points = make(2000, 64, 1), make(100_000, 64, 0)
    search(queries[:10], points[:2000], 10, metric, **HERE)  # all one-time allocations are made
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    plan = plan_of(queries, points, 10, metric, **HERE)
    search(queries, points, 10, metric, **HERE)
    peak = torch.cuda.max_memory_allocated() - before
    assert 0.5 * plan.packed_bytes < peak <= plan.total_bytes


@on_gpu
def test_interrupt_stops_within_a_second() -> None:
    interrupt("torch.rand((3_000_000, 128), device='cuda')", 10, "")
