"""Everything within a radius by brute force on the CPU, against the plain float64 definition, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers import checks
from tests.helpers.checks import DTYPES, HOSTILE
from tests.helpers.kernels import ways
from tests.helpers.radius_checks import all_values, assert_same_within, check_within, hard_limits, later_than
from tonari.core import _native
from tonari.core.process.workers import Stopped
from tonari.core.results.radius_neighbors import Within
from tonari.core.trail import recording
from tonari.exact.cpu.method import ExactOnCpu
from tonari.metrics import METRICS
from tonari.metrics.problem import make_problem
from tonari.metrics.reference import brute_within

METHOD = ExactOnCpu()
ISAS = _native.supported_isas()


def made(maker: str, n: int, d: int, metric: str, seed: int = 0) -> checks.Array:
    rows = HOSTILE[maker](n, d, seed)
    return np.abs(rows) if METRICS[metric].nonnegative else rows


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("maker", HOSTILE)
@pytest.mark.parametrize("self_join", [False, True])
def test_hostile_data(metric: str, maker: str, self_join: bool) -> None:
    points = made(maker, 110, 7, metric)
    queries = points if self_join else np.concatenate([points[:20], made(maker, 20, 7, metric, 1)])
    limits = hard_limits(queries, points, metric)
    truth = brute_within(queries, points, limits, metric, self_ids=np.arange(110) if self_join else None)
    for isa, precisions in ways(metric):
        choices: dict[str, Any] = {"isa": isa, "precisions": precisions}
        check_within(METHOD, queries, points, limits, metric, self_join=self_join, truth=truth, **choices)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("query_dtype", ["same", "float64"])
def test_every_dtype(metric: str, dtype: str, query_dtype: str) -> None:
    rows = np.clip(checks.gaussian(200, 33) * 20, -120, 120)
    rows = (np.abs(rows) if dtype == "uint8" or METRICS[metric].nonnegative else rows).astype(dtype)
    queries = rows[:24] if query_dtype == "same" else rows[:24].astype(query_dtype)
    check_within(METHOD, queries, rows, hard_limits(queries, rows, metric), metric)


@pytest.mark.parametrize("n", [1, 7, 95, 96, 97, 193])
@pytest.mark.parametrize("m", [1, 31, 33, 257])
@pytest.mark.parametrize("d", [1, 2, 17, 65])
@pytest.mark.parametrize("isa", ISAS)
def test_every_size(n: int, m: int, d: int, isa: str) -> None:
    queries, points = checks.gaussian(m, d, 1), checks.gaussian(n, d)
    for metric in ("sqeuclidean", "l1"):
        check_within(METHOD, queries, points, hard_limits(queries, points, metric), metric, isa=isa)


@pytest.mark.parametrize("share", [0, 1])
@pytest.mark.parametrize("way", [{}, {"resident": False}, {"point_splits": 3}, {"resident": False, "point_splits": 2}])
@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("capacity", [1, 64])
def test_blocks_that_are_too_full_are_searched_in_parts(
    share: int, way: dict[str, Any], threads: int, capacity: int
) -> None:
    points = checks.gaussian(700, 5)
    limits = np.full(700, (0.7, np.inf)[share], np.float32)
    given: dict[str, Any] = {"threads": threads, "capacity": capacity, "point_chunk": 96, "query_block": 64, **way}
    check_within(METHOD, points, points, limits, "euclidean", self_join=True, **given)


def test_a_small_budget() -> None:
    queries, points = checks.gaussian(150, 40), checks.gaussian(1500, 40, 1)
    limits = hard_limits(queries, points, "cosine")
    check_within(METHOD, queries, points, limits, "cosine", memory=5 << 20, threads=2)


@pytest.mark.parametrize("metric", ["cosine", "inner_product", "l1"])
@pytest.mark.parametrize(("begin", "end"), [(0, 150), (0, 1), (90, 150), (149, 150), (96, 97)])
@pytest.mark.parametrize("capacity", [1, 2048])
def test_pairs_are_found_once(metric: str, begin: int, end: int, capacity: int) -> None:
    points = np.concatenate([checks.gaussian(100, 6), checks.gaussian(50, 6)])
    plan = METHOD.plan(make_problem(150, end - begin, 6, 1, dtype="float32", metric=metric), capacity=capacity)
    prepared = METHOD.prepare(points, plan, False)
    limits = hard_limits(points, points, metric)
    truth = later_than(brute_within(points, points, limits, metric, self_ids=np.arange(150)))
    found = METHOD.find_within(
        Within(points[begin:end], limits[begin:end], range(begin, end), later=True), prepared, plan
    )
    part = slice(truth.indptr[begin], truth.indptr[end])
    expected = truth._replace(
        indptr=truth.indptr[begin : end + 1] - truth.indptr[begin],
        indices=truth.indices[part],
        distances=truth.distances[part],
    )
    assert_same_within(found, expected)


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "inner_product"])
def test_contracted_rows(metric: str) -> None:
    points = checks.gaussian(300, 40) * np.linspace(4, 0.1, 40, dtype=np.float32)
    queries = points[:60]
    check_within(METHOD, queries, points, hard_limits(queries, points, metric), metric, form_dim=5)


def test_a_contraction_that_leaves_too_much_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    from tonari.exact.cpu.rows import prepared as module
    from tonari.exact.cpu.rows.contraction import Arrangement

    monkeypatch.setattr(
        module, "arrange_points", lambda points, form, *_: Arrangement(form.contracted(points, 1, 3), 3)
    )
    points = checks.gaussian(700, 48)
    plan = METHOD.plan(make_problem(700, 700, 48, 1, dtype="float32", metric="euclidean", threads=1))
    prepared = METHOD.prepare(points, plan, False)
    assert prepared.falls_back
    limits = np.full(700, np.float32(8.5))
    with recording("radius", 700) as record:
        found = METHOD.find_within(Within(points, limits, range(700)), prepared, plan)
    assert record.choices[0].why.startswith("all 48: 3 left ")
    assert record.proved == 700
    assert_same_within(found, brute_within(points, points, limits, self_ids=np.arange(700)))
    assert prepared._whole is not None


def test_the_rest_is_screened_more_finely_where_that_is_faster(caplog: pytest.LogCaptureFixture) -> None:
    coarse = [precisions for isa, precisions in ways("euclidean") if isa == ISAS[-1] and len(precisions) > 1]
    points = checks.gaussian(4000, 24)
    points[::2] = points[0] + checks.gaussian(2000, 24) * 1e-3  # int8 and bfloat16 do not distinguish them
    limits = np.full(4000, np.float32(1e-3))
    for precisions in coarse:
        plan = METHOD.plan(
            make_problem(4000, 4000, 24, 1, dtype="float32", metric="euclidean", threads=1),
            precisions=precisions,
            adaptive=True,
        )
        with caplog.at_level("INFO", "tonari"):
            counts = METHOD.count_within(Within(points, limits, range(4000)), METHOD.prepare(points, plan, False), plan)
        assert counts.sum() == 0
        assert f"3744 at {precisions[1]}" in caplog.text
        assert f"precision: {precisions[1]}: coarser ones took" in caplog.text
        caplog.clear()


def test_counts_need_few_exact_values(caplog: pytest.LogCaptureFixture) -> None:
    points = checks.gaussian(2000, 16)
    plan = METHOD.plan(make_problem(2000, 2000, 16, 1, dtype="float32", metric="euclidean"), precisions=("float32",))
    values = all_values(points[:1], points, "euclidean").distances
    limits = np.full(2000, values[1000])
    with caplog.at_level("INFO", "tonari"):
        counts = METHOD.count_within(Within(points, limits), METHOD.prepare(points, plan, False), plan)
    assert counts.sum() > 100_000
    assert "1." not in caplog.text.partition("survivors")[0].rpartition(";")[2]  # less than one per row
    assert counts[:1] == 1001


@pytest.mark.parametrize("threads", [1, 2])
def test_progress_counts_all_pairs_and_its_errors_come_through(threads: int) -> None:
    points = checks.gaussian(2000, 8)
    plan = METHOD.plan(make_problem(2000, 2000, 8, 1, dtype="float32", metric="euclidean", threads=threads))
    prepared = METHOD.prepare(points, plan, False)
    limits = np.full(2000, np.float32(0.5))
    seen: list[tuple[int, int]] = []
    METHOD.find_within(Within(points, limits), prepared, plan, progress=lambda *step: seen.append(step))
    assert seen[-1] == (4_000_000, 4_000_000)

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises((KeyboardInterrupt, Stopped)):
        METHOD.find_within(Within(points, limits), prepared, plan, progress=interrupt)


def test_read_only_rows_and_every_row_empty() -> None:
    points = checks.gaussian(50, 4)
    points.flags.writeable = False
    limits = np.full(50, np.float32(-1))
    check_within(METHOD, points, points, limits, "euclidean")
    for name in METRICS:
        if not METRICS[name].descending:
            check_within(METHOD, np.abs(points), np.abs(points), limits, name)


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "l1", "inner_product"])
@pytest.mark.parametrize("limit", [0.0, 1.0, 1e16, 1e19, 1e33, 3e38])
def test_rows_beyond_the_range_of_the_screen(metric: str, limit: float) -> None:
    points = checks.gaussian(10_000, 2)
    points[1::5000] = 1e15, 1e19  # in addition to the sample that sets the scale
    queries = points[[0, 1, 2, 5001]]
    limits = np.full(4, np.float32(limit))
    check_within(METHOD, queries, points, limits, metric, precisions=("float32",))
    check_within(METHOD, queries, points, -limits, metric, precisions=("float32",))


def test_one_part_of_the_points_that_is_too_full_is_enough() -> None:
    points = checks.gaussian(400, 4) + 100
    points[96:192] = 0
    given: dict[str, Any] = {"point_splits": 3, "point_chunk": 96, "query_block": 8, "capacity": 10, "threads": 2}
    limits = np.full(16, np.float32(1))
    check_within(METHOD, points[96:112], points, limits, "euclidean", **given)
