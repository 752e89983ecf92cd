"""The same bytes for any schedule: threads, batches, slices, capacities, samples, memory, kernels, parts."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.checks import assert_same_neighbors
from tonari.core.process.progress import Progress
from tonari.core.results.neighbors import Neighbors
from tonari.exact import PreparedPoints, Report, search_prepared
from tonari.exact import plan as planning
from tonari.exact.cpu import search as engine
from tonari.metrics import METRICS
from tonari.metrics.reference import brute
from tonari.select.merge import merge_neighbors

Array = npt.NDArray[Any]
Search = Callable[..., Neighbors]
N, M, D = 4000, 70, 12


@cache
def points(kind: str) -> Array:
    if kind == "mixed":  # easy rows, retried rows, rows with many ties
        parts = (checks.gaussian, checks.tight_far_clusters, checks.duplicates, checks.offset_1e4)
        rows = np.vstack([make(N // 4, D, 0) for make in parts])
        return np.ascontiguousarray(rows[np.random.default_rng(0).permutation(N)])
    return np.random.default_rng(1).integers(0, 256, (N, D)).astype(np.uint8)


@cache
def truth(kind: str, k: int, metric: str = "euclidean") -> Neighbors:
    return brute(points(kind)[:M], points(kind), k, metric)


def report_of(queries: Array, rows: Array, k: int, **choices: Any) -> tuple[Neighbors, Report]:
    plan = tonari.plan(len(rows), len(queries), rows.shape[1], k, dtype=rows.dtype, **{"threads": 1} | choices)
    return search_prepared(queries, PreparedPoints(rows, plan), plan)


SCHEDULES: dict[str, dict[str, Any]] = {
    "threads 2": {"threads": 2},
    "threads 3": {"threads": 3},
    "queries one by one": {"query_block": 1},
    "queries by 7": {"query_block": 7, "threads": 3},
    "queries in one block": {"query_block": 512, "threads": 2},
    "smallest slices": {"point_chunk": 96, "threads": 2},
    "uneven slices": {"point_chunk": 96 * 13},
    "one slice": {"point_chunk": 96 * 42},
    "tiny capacity": {"capacity": 1, "threads": 2},
    "capacity 200": {"capacity": 200},
    "sample": {"sample_stride": 3, "sample_rank": 60},
    "sample far too low": {"sample_stride": 3, "sample_rank": 1, "threads": 2},
    "sample of nearly nothing": {"sample_stride": 1000, "sample_rank": 5},
    "sample and settle": {"sample_stride": 2, "sample_rank": 20, "capacity": 1},
    "no sample": {"sample_stride": 0, "sample_rank": 0},
    "points split": {"point_splits": 3, "threads": 3, "point_chunk": 96, "query_block": 128},
    "more parts than slices": {"point_splits": 9, "threads": 2, "point_chunk": 960},
    "split and tiny capacity": {"point_splits": 2, "threads": 2, "point_chunk": 96, "capacity": 1},
    "not resident": {"resident": False, "threads": 2, "point_chunk": 960},
    "not resident, sampled": {"resident": False, "sample_stride": 3, "sample_rank": 2, "point_chunk": 960},
    "not resident, tiny capacity": {"resident": False, "capacity": 1, "query_block": 5, "threads": 3},
}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("kind", ["mixed", "bytes"])
@pytest.mark.parametrize("k", [10, 80])
def test_schedules(schedule: str, kind: str, k: int, by_plan: Search) -> None:
    rows = points(kind)
    assert_same_neighbors(by_plan(rows[:M], rows, k, **SCHEDULES[schedule]), truth(kind, k))


@pytest.mark.parametrize("schedule", ["queries by 7", "tiny capacity", "sample far too low", "points split"])
def test_schedules_on_every_kernel(schedule: str, screens: tuple[str, tuple[str, ...]], by_plan: Search) -> None:
    isa, precisions = screens
    rows = points("mixed")
    found = by_plan(rows[:M], rows, 80, isa=isa, precisions=precisions, **SCHEDULES[schedule])
    assert_same_neighbors(found, truth("mixed", 80))


@pytest.mark.parametrize("metric", METRICS)
def test_threads_and_slices_for_every_metric(metric: str, by_plan: Search) -> None:
    rows = np.abs(points("mixed")[:900])
    expected = brute(rows[:40], rows, 70, metric)
    for choices in (
        {"threads": 3, "query_block": 9, "point_chunk": 96},
        {"threads": 2, "point_splits": 2, "point_chunk": 96},
        {"resident": False, "capacity": 1, "sample_stride": 2, "sample_rank": 5},
    ):
        assert_same_neighbors(by_plan(rows[:40], rows, 70, metric, **choices), expected, metric=metric)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_graphs(schedule: str) -> None:
    rows = points("mixed")[:500]
    plan = tonari.plan(500, 500, D, 70, **{"threads": 1} | SCHEDULES[schedule])
    graph = tonari.knn_graph(rows, 70, plan=plan)
    assert_same_neighbors(Neighbors(graph.distances, graph.indices), _graph_truth())


@cache
def _graph_truth() -> Neighbors:
    rows = points("mixed")[:500]
    return brute(rows, rows, 70, self_ids=np.arange(500))


@pytest.mark.parametrize("isa", tonari.core._native.supported_isas())
def test_environment_chooses_the_kernel(isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TONARI_ISA", isa)
    monkeypatch.setenv("TONARI_NUM_THREADS", "3")
    plan = tonari.plan(N, M, D, 10)
    assert (plan.isa, plan.threads) == (isa, 3)
    rows = points("mixed")
    assert_same_neighbors(tonari.search(rows[:M], rows, 10), truth("mixed", 10))


@pytest.mark.parametrize("k", [10, 80])
def test_memory_budget_changes_nothing_but_the_memory(k: int) -> None:
    rows = points("mixed")
    free = tonari.plan(N, M, D, k, threads=2, point_chunk=96, query_block=M)
    with pytest.raises(ValueError, match="cannot hold") as refused:
        tonari.plan(N, M, D, k, threads=2, memory=1, point_chunk=96)
    least = int(str(refused.value).split("allow at least ")[1].split(",")[0])
    held = set()
    for memory in (*range(least, least + 200_000, 40_000), free.resident_memory, free.total_bytes - 1):
        tight = tonari.plan(N, M, D, k, threads=2, memory=memory, point_chunk=96)
        held.add(tight.resident_points)
        assert_same_neighbors(tonari.search(rows[:M], rows, k, plan=tight), truth("mixed", k))
    assert len(held) > 2
    assert max(held) == N


@pytest.mark.parametrize("metric", ["euclidean", "inner_product"])
def test_points_in_parts_and_merged(metric: str) -> None:
    rows, k = points("mixed"), 10
    cuts = [0, 13, 1000, 1001, 3500, N]
    parts = [tonari.search(rows[:M], rows[a:b], min(k, b - a), metric=metric) for a, b in itertools.pairwise(cuts)]
    merged = merge_neighbors(parts, cuts[:-1], k=k, metric=metric)
    assert_same_neighbors(merged, truth("mixed", k, metric), metric=metric)


@pytest.mark.parametrize("isa", tonari.core._native.supported_isas())
def test_rows_that_int8_cannot_certify_climb(isa: str) -> None:
    if "inner/int8/" + isa not in tonari.core._native.kernel_names():
        pytest.skip(f"{isa} has no int8 kernel")
    rows = checks.tight_far_clusters(3000, D)
    found, report = report_of(rows[:M], rows, 10, isa=isa, precisions=("int8", "float32"), capacity=1)
    assert report.rows == sum(report.rows_by_precision.values()) == M
    assert report.rows_by_precision.get("float32", 0) > M // 2
    assert_same_neighbors(found, brute(rows[:M], rows, 10))


@pytest.mark.parametrize("active", [0, 288 * 20])
def test_rows_after_the_first_blocks_climb(active: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning.ExactPlan, "prefers_finer", lambda *_: False)
    isa = next(
        (isa for isa in ("avx512", "avx2", "neon") if f"inner/int8/{isa}" in tonari.core._native.kernel_names()), None
    )
    if isa is None:
        pytest.skip("no int8 kernel here")
    easy = checks.gaussian(1500, D)
    rows = np.vstack([easy, np.tile(easy[:1] + 1, (600, 1))])  # equal points, more than a row's buffer holds
    n = len(rows)
    choices: dict[str, Any] = {"isa": isa, "precisions": ("int8", "float32"), "capacity": 300, "query_block": 32}
    plan = tonari.plan(n, n, D, 10, self_join=True, threads=2, adaptive=True, active_rows=active, **choices)
    graph = tonari.knn_graph(rows, 10, plan=plan)
    assert_same_neighbors(Neighbors(graph.distances, graph.indices), brute(rows, rows, 10, self_ids=np.arange(n)))
    _, report = search_prepared(rows, PreparedPoints(rows, plan), plan, self_ids=np.arange(n))
    assert report.rows_by_precision["float32"] >= 600
    assert report.rows_by_precision["int8"] >= 1000


@pytest.mark.parametrize("hard", [1, 8, 9])
def test_a_few_rows_settle_where_they_are(hard: int) -> None:
    isa = next(
        (isa for isa in ("avx512", "avx2", "neon") if f"inner/int8/{isa}" in tonari.core._native.kernel_names()), None
    )
    if isa is None:
        pytest.skip("no int8 kernel here")
    easy = checks.gaussian(3000, D)
    crowd = np.tile(easy[:1] + 1, (600, 1))  # equal points, more than a row's buffer holds
    rows = np.vstack([easy, crowd])
    queries = np.vstack([easy[100 : 100 + M - hard], crowd[:hard]])
    choices: dict[str, Any] = {"isa": isa, "precisions": ("int8", "float32"), "capacity": 300}
    found, report = report_of(queries, rows, 10, **choices)
    assert_same_neighbors(found, brute(queries, rows, 10))
    retried = hard if hard > 8 else 0
    assert report.rows_by_precision.get("float32", 0) == retried
    assert report.rows_by_precision["int8"] == M - retried
    # nothing is kept, since everything is packed anyway
    found, report = report_of(queries, rows, 10, **choices, resident=False)
    assert_same_neighbors(found, brute(queries, rows, 10))
    assert report.rows_by_precision["float32"] == hard


def test_easy_rows_stay_on_the_first_rung() -> None:
    rows = checks.gaussian(3000, D)
    _, report = report_of(rows[:M], rows, 10)
    plan = tonari.plan(3000, M, D, 10)
    assert report.rows_by_precision == {plan.precisions[0]: M}
    assert report.refined < 3000 * M // 4


@pytest.mark.parametrize("k", [10, 80])
def test_a_sampled_threshold_that_is_too_low_is_noticed(k: int) -> None:
    rows = checks.gaussian(N, D)
    # The nearest point of a sample is nearer than the k-th nearest of all, so hardly any row is right at first.
    found, report = report_of(rows[:M], rows, k, sample_stride=2, sample_rank=1)
    assert report.resampled > M // 2
    assert_same_neighbors(found, brute(rows[:M], rows, k))
    _, report = report_of(rows[:M], rows, k, sample_stride=0, sample_rank=0)
    assert report.resampled == 0


def test_a_sample_is_taken_for_large_k_and_seldom_too_low() -> None:
    rows = checks.gaussian(N, D)
    plan = tonari.plan(N, M, D, 80)
    assert plan.sample_rank > 0
    assert plan.sample_stride > 1
    found, report = report_of(rows[:M], rows, 80)
    assert report.resampled <= 2
    assert_same_neighbors(found, brute(rows[:M], rows, 80))


@pytest.mark.parametrize("size", [4, 6, 8, 12, 16, 32])
def test_a_sample_flooded_with_doubtful_points(size: int, by_plan: Search) -> None:
    # Even groups of `size` points contain two outliers, so int8 cannot rank their other members. These fill a row's
    # buffer during the sample, and compaction removes the few near points that set the threshold.
    d, k, rank = 8, 64, 8
    for isa in (name.split("/")[2] for name in tonari.core._native.kernel_names() if name.startswith("inner/int8/")):
        for floods in range(15, 60, 1 if size < 12 else 3):
            rng = np.random.default_rng(0)
            n = 2 * (3 + floods) * size
            rows = rng.standard_normal((n, d))
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
            group, place = np.divmod(np.arange(n), size)
            doubtful = (group % 2 == 0) & (group >= 6)
            rows[doubtful & (place == 0)] = np.eye(d)[0] * 300
            rows[doubtful & (place == 1)] = np.eye(d)[0] * -300
            queries = np.eye(d, dtype=np.float32)[1:2] * 3
            rows[group < 6] = queries / 3 + 0.01 * rng.standard_normal((6 * size, d))
            rows = rows.astype(np.float32)
            found = by_plan(
                queries, rows, k, isa=isa, precisions=("int8",), capacity=64, sample_stride=2, sample_rank=rank,
                point_chunk=-(-n // 96) * 96,
            )  # fmt: skip
            assert_same_neighbors(found, brute(queries, rows, k))


def test_progress_expects_what_is_still_to_be_done(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = points("mixed")
    expected: list[float] = []

    class Noting(Progress):
        def __init__(self, *args: Any, seconds: float, **given: Any) -> None:
            expected.append(seconds)
            super().__init__(*args, seconds=seconds, **given)

    monkeypatch.setattr(engine, "Progress", Noting)
    plan = tonari.plan(N, M, D, 10, threads=1, direct=False)
    tonari.search(rows[:M], rows, 10, plan=plan)
    assert expected == [plan.seconds - plan.prepare_seconds]


SELF_JOINS = [
    {"active_rows": 0},
    {"active_rows": 288, "threads": 1},
    {"active_rows": 288 * 2, "threads": 3, "point_chunk": 96},
    {"active_rows": 288 * 20, "threads": 2, "point_chunk": 480, "adaptive": True},
    {"active_rows": 288 * 20, "threads": 3, "capacity": 1},
]


@pytest.mark.parametrize(
    "metric",
    ["euclidean", "inner_product", *(pytest.param(each, marks=pytest.mark.full) for each in ("cosine", "correlation"))],
)
def test_a_product_of_two_rows_serves_both(metric: str) -> None:
    rows, k = points("mixed")[:1900], 7
    truth_of_all = brute(rows, rows, k, metric, self_ids=np.arange(len(rows)))
    isas = tonari.core._native.supported_isas()
    # Each instruction set has its own kernels; what is done with their products is the same for all.
    for isa, choices in [*((isas[-1], each) for each in SELF_JOINS), *((isa, SELF_JOINS[2]) for isa in isas[:-1])]:
        plan = tonari.plan(len(rows), len(rows), D, k, metric=metric, self_join=True, isa=isa, **choices)
        graph = tonari.knn_graph(rows, k, metric=metric, plan=plan)
        assert_same_neighbors(Neighbors(graph.distances, graph.indices), truth_of_all, metric=metric)


@pytest.mark.parametrize("dtype", ["uint8", "float64"])
def test_self_join_of_rows_beyond_the_screen_and_of_bytes(dtype: str) -> None:
    rows = checks.gaussian(1500, 9, 3, np.float64) * 30 + 128
    rows = rows.clip(0, 255).astype(dtype)
    if dtype == "float64":
        rows[5::400] *= 1e40  # once packed, the others are indistinguishable: only exact values separate them
    plan = tonari.plan(1500, 1500, 9, 5, dtype=dtype, self_join=True, active_rows=288 * 6)
    graph = tonari.knn_graph(rows, 5, plan=plan)
    expected = brute(rows, rows, 5, self_ids=np.arange(1500))
    assert_same_neighbors(Neighbors(graph.distances, graph.indices), expected)


def test_self_join_is_planned_where_it_pays() -> None:
    assert tonari.plan(20_000, 20_000, 32, 10, self_join=True, isa="generic").active_rows >= 20_000
    assert tonari.plan(20_000, 20_000, 32, 10).active_rows == 0
    assert tonari.plan(20_000, 20_000, 32, 10, metric="l1", self_join=True).active_rows == 0
    with pytest.raises(ValueError, match="as many queries as points"):
        tonari.plan(100, 99, 4, 2, self_join=True)
    with pytest.raises(ValueError, match="multiple of 288"):
        tonari.plan(9000, 9000, 4, 2, self_join=True, active_rows=100)
