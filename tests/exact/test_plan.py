"""The plan: pure, frozen, readable, within its budget, and strict about overrides."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import threading
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks, plans
from tests.helpers.checks import assert_same_neighbors
from tonari.core import _native
from tonari.exact import precisions
from tonari.exact.plan import plan_on_cpu
from tonari.exact.precisions import kernel_name, usual_precisions
from tonari.methods.registry import search_method
from tonari.metrics import METRICS
from tonari.metrics.problem import make_problem
from tonari.metrics.reference import brute


def test_same_arguments_same_plan() -> None:
    first, second = (tonari.plan(10_000, 500, 32, 10, threads=2) for _ in range(2))
    assert first == second
    assert first != tonari.plan(10_000, 500, 32, 11, threads=2)


def test_a_plan_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        tonari.plan(100, 10, 4, 2).k = 3  # type: ignore[misc]


def test_a_plan_survives_json_and_reads_as_a_table() -> None:
    plan = tonari.plan(10_000, 500, 32, 10, threads=2)
    fields = json.loads(json.dumps(plan.as_dict()))
    assert fields["precisions"] == list(plan.precisions)
    assert fields["total_bytes"] == plan.total_bytes == plan.packed_bytes + plan.working_bytes + plan.output_bytes
    shown = dict(line.split(maxsplit=1) for line in str(plan).splitlines())
    assert set(shown) == set(fields)
    assert shown["n"] == "10,000"
    assert shown["isa"] == plan.isa


@pytest.mark.parametrize(
    ("isa", "dtype", "metric", "few"),
    [
        ("avx2", "float32", "euclidean", True),
        ("avx2", "uint8", "euclidean", False),  # exact in int8
        ("avx2", "uint8", "cosine", True),  # divided by their norms they are not
        ("avx512", "float32", "euclidean", True),
        ("amx", "float32", "euclidean", True),
        ("neon", "float32", "euclidean", False),
    ],
)
def test_few_columns_begin_in_float32_where_products_are_a_small_part(
    isa: str, dtype: str, metric: str, few: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    all_levels = ("bfloat16", "float32") if isa == "amx" else ("int8", "float32")
    names = frozenset(kernel_name(metric, precision, isa) for precision in all_levels)
    monkeypatch.setattr(precisions, "_kernels", lambda: names)
    levels = {d: usual_precisions(metric, isa, dtype, d, contracted=False) for d in (2, 12, 13)}
    assert levels[2] == levels[12] == (("float32",) if few else all_levels)
    assert levels[13] == all_levels


@pytest.mark.parametrize("metric", METRICS)
def test_every_rung_has_a_kernel(metric: str) -> None:
    for isa in _native.supported_isas():
        plan = tonari.plan(100, 10, 4, 2, metric=metric, isa=isa)
        assert plan.precisions[-1] == "float32"
        assert {plan.kernels[precision] for precision in plan.precisions} <= set(_native.kernel_names())


def test_a_self_join_has_as_many_queries_as_points() -> None:
    with pytest.raises(ValueError, match="as many queries as points, got m=9 and n=10"):
        plans.problem(10, 9, 2, 3, self_join=True)
    assert plans.problem(10, 10, 2, 9, self_join=True).k == 9
    with pytest.raises(ValueError, match="k=10: the largest k is 9"):
        plans.problem(10, 10, 2, 10, self_join=True)


def test_few_queries_split_the_points_and_many_do_not() -> None:
    assert tonari.plan(1_000_000, 1, 128, 10, threads=4).point_splits == 4
    few = make_problem(20_000, 1, 128, 10, dtype="float32", metric="euclidean", threads=4)
    assert plan_on_cpu(few, prepared=True).point_splits == 1  # less work than starting threads
    many = tonari.plan(1_000_000, 10_000, 128, 10, threads=4)
    assert many.point_splits == 1
    assert -(-10_000 // many.query_block) >= 8


@pytest.fixture
def _many_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TONARI_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)))
    monkeypatch.setattr("tonari.core.workers._cgroup_processors", lambda: None)


@pytest.mark.usefixtures("_many_processors")
@pytest.mark.parametrize("method", ["exact", "kdtree"])
def test_threads_are_those_that_the_work_is_worth(method: str) -> None:
    for n, m, d in ((1000, 1, 3), (1000, 100, 3), (1000, 100, 30), (10_000, 1, 4)):
        assert tonari.plan(n, m, d, 10, method=method).threads == 1
        assert tonari.plan(n, m, d, 10, method=method, threads=4).threads == 4
    counts = [tonari.plan(8_000, m, 8, 10, method=method).threads for m in (1, 500, 1000, 100_000)]
    assert counts == sorted(counts)
    assert (counts[0], counts[-1]) == (1, 64)
    assert 1 < counts[2] < 64
    assert tonari.plan(10_000_000, 1, 128, 10, method=method).threads == 64


@pytest.mark.usefixtures("_many_processors")
def test_threads_of_an_approximate_graph_are_those_that_it_is_worth() -> None:
    counts = [tonari.plan(n, n, 8, 5, method="nn-descent").threads for n in (30, 100, 10_000)]
    assert counts[0] == 1 < counts[1] < counts[2] == 64
    assert tonari.plan(30, 30, 8, 5, method="nn-descent", threads=4).threads == 4


@pytest.mark.usefixtures("_many_processors")
def test_a_prepared_index_is_searched_by_as_many_threads_as_the_queries_are_worth() -> None:
    for name in ("exact", "kdtree"):
        method, asked = search_method(name, "cpu"), plans.problem(20_000, 20, 60, 10)
        whole = method.plan(asked)
        assert whole.threads > 1
        assert method.plan(asked, prepared_by=whole).threads == 1


@pytest.mark.usefixtures("_many_processors")
def test_tiny_work_starts_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    points = checks.gaussian(1000, 3)
    truth = brute(points[:100], points, 10)

    def refuse(thread: threading.Thread) -> None:
        raise AssertionError(f"{thread} starts")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    for method in ("auto", "exact", "kdtree"):
        assert_same_neighbors(tonari.search(points[:100], points, 10, method=method), truth)
        assert_same_neighbors(tonari.Index(points, method=method).search(points[:100], 10), truth)
    graph = tonari.knn_graph(points[:100], 10)
    assert graph.recall(points[:100]).by_index == 1.0
    tonari.merge(graph, graph, points[:100], points[:100])
    tonari.select_k(np.ones((128, 1000), np.float32), 10)
    with pytest.raises(AssertionError, match="starts"):
        tonari.search(points, points, 10, method="exact", threads=2)


def test_output_bytes_are_those_of_the_result() -> None:
    for dtype in ("float32", "float64", "uint8"):
        plan = tonari.plan(50, 10, 4, 3, dtype=dtype)
        found = tonari.search(np.ones((10, 4), dtype), np.ones((50, 4), dtype), 3)
        assert plan.output_bytes == sum(part.nbytes for part in found)


def test_a_budget_is_kept_or_refused_with_the_least_that_works() -> None:
    problem = {"n": 200_000, "m": 1000, "d": 64, "k": 10, "threads": 2, "point_chunk": 960, "query_block": 32}
    free = tonari.plan(**problem)
    assert free.resident
    assert tonari.plan(**problem, memory=10 * free.total_bytes) == free
    steady = tonari.plan(**problem, memory=free.total_bytes - 1)
    assert steady.resident
    assert not steady.adaptive
    thrifty = tonari.plan(**problem, memory=steady.total_bytes - 1)
    assert thrifty.resident
    assert thrifty.stream_blocks < steady.stream_blocks == free.stream_blocks
    assert free.resident_memory < thrifty.total_bytes < steady.total_bytes < free.total_bytes
    assert tonari.plan(**problem, memory=free.resident_memory).resident
    tight = tonari.plan(**problem, memory=free.resident_memory - 1)
    assert 0 < tight.resident_points < tight.n
    assert tight.total_bytes < free.resident_memory
    with pytest.raises(ValueError, match=r"budget of 1000000 bytes cannot hold") as refused:
        tonari.plan(**problem, memory="1MB")
    least = int(re.search(r"allow at least (\d+)", str(refused.value))[1])  # type: ignore[index]
    assert tonari.plan(**problem, memory=least).total_bytes <= least
    with pytest.raises(ValueError, match="cannot hold"):
        tonari.plan(**problem, memory=least - 1)


@pytest.mark.parametrize("m", [1, 100, 10_000])
@pytest.mark.parametrize("k", [1, 10, 300])
@pytest.mark.parametrize("threads", [1, 2, 8])
def test_every_budget_is_kept_and_used(m: int, k: int, threads: int) -> None:
    problem: dict[str, Any] = {"n": 200_000, "m": m, "d": 128, "k": k, "threads": threads}
    enough, row = tonari.plan(**problem).resident_memory, 128 + 24
    refused = 0
    for percent in (*range(5, 100, 5), 99):
        budget = enough * percent // 100
        try:
            plan = tonari.plan(**problem, memory=budget)
        except ValueError:
            refused += 1
            continue
        assert plan.total_bytes <= budget
        assert plan.resident_points % plan.point_chunk == 0
        assert not plan.resident
        if plan.precisions[0] == "int8":  # of another slice there is no room
            assert budget - plan.total_bytes < plan.point_chunk * row
    assert refused < 19
    assert tonari.plan(**problem, memory=enough).resident


def test_few_queries_keep_points_packed_and_many_pass_over_them_together() -> None:
    problem: dict[str, Any] = {"n": 200_000, "d": 384, "k": 10, "threads": 2, "memory": "60MB", "dtype": "uint8"}
    few, many = tonari.plan(m=1, **problem), tonari.plan(m=100_000, **problem | {"memory": "70MB"})
    assert not few.resident
    assert few.resident_points > 1.5 * many.resident_points
    assert few.stream_chunk < few.point_chunk / 4  # what is packed on the way leaves room for what stays
    assert many.query_block * many.blocks_at_once >= 512


def test_100_mb_hold_what_takes_80() -> None:
    problem: dict[str, Any] = {"n": 200_000, "d": 384, "threads": 2, "memory": "100MB", "dtype": "uint8"}
    for m, k in ((1, 1), (1, 10), (1000, 100)):
        plan = tonari.plan(m=m, k=k, **problem)
        if plan.precisions[0] == "int8":
            assert plan.resident


def test_adaptive_beyond_a_budget_is_refused() -> None:
    problem: dict[str, Any] = {"n": 200_000, "m": 1000, "d": 64, "k": 10, "threads": 2, "memory": "40MB"}
    with pytest.raises(ValueError, match=r"adaptive=True .*allow at least \d+, or leave adaptive out"):
        tonari.plan(**problem, adaptive=True)
    assert not tonari.plan(**problem).adaptive


def test_seconds_count_reading_and_packing() -> None:
    few = tonari.plan(1_000_000, 1000, 768, 10, threads=2, isa="generic")
    packing = 1_000_000 * (8.8e-8 + 768 * 4.5e-9) / 2
    assert few.prepare_seconds == pytest.approx(packing + 1_000_000 * 768 * 4 * 6e-11)
    assert few.seconds > few.prepare_seconds
    bytes_ = tonari.plan(1_000_000, 1000, 768, 10, threads=2, isa="generic", dtype="uint8")
    assert bytes_.prepare_seconds == pytest.approx(packing + 1_000_000 * 768 * 6e-11)
    many = {"n": 1_000_000, "m": 100_000, "d": 768, "k": 10, "threads": 2, "isa": "generic"}
    streamed, held = tonari.plan(**many, resident=False), tonari.plan(**many)
    passes = -(-100_000 // (streamed.query_block * streamed.blocks_at_once))
    assert passes > 1
    assert streamed.seconds - held.seconds == pytest.approx((passes - 1) * packing)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ({"tile": 3}, r"cannot override tile; these can be: .*capacity, direct, form_dim, isa, .*precisions"),
        ({"isa": "sse9"}, r"cannot run the instruction set 'sse9'; it can run generic"),
        ({"precisions": ("float8",)}, r"precisions=\('float8',\): expected a tuple in the order int8"),
        ({"precisions": ("int8",), "metric": "l1"}, r"no int8 kernel for l1"),
        ({"precisions": "float32"}, "precisions"),
        ({"point_chunk": 100}, r"point_chunk must be a multiple of 96, got 100"),
        ({"point_chunk": -96}, "point_chunk"),
        ({"point_chunk": 0}, "point_chunk"),
        ({"query_block": -1}, "query_block"),
        ({"query_block": 0}, "query_block"),
        ({"capacity": -5}, "capacity"),
        ({"capacity": 0}, "capacity"),
        ({"point_splits": -1}, "point_splits"),
        ({"point_splits": 0}, "point_splits"),
        ({"sample_rank": 5, "sample_stride": 0}, "sample_"),
        ({"sample_rank": 5, "sample_stride": -3}, "sample_"),
        ({"sample_rank": -1, "sample_stride": 3}, "sample_"),
        ({"n": 0}, r"n=0: expected a whole number of at least 1"),
        ({"m": 0}, r"m=0: expected a whole number of at least 1"),
        ({"d": -1}, r"d=-1: expected a whole number of at least 1"),
        ({"k": 501}, r"k=501: the largest k is 500, as there are 500 points"),
        ({"dtype": "int32"}, r"dtype int32 is not supported; expected one of float32, float16"),
    ],
    ids=str,
)
def test_what_cannot_work_is_refused(override: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tonari.plan(**({"n": 500, "m": 500, "d": 4, "k": 9} | override))


@pytest.mark.parametrize(
    "override", [{"query_block": 1.5}, {"point_chunk": "many"}, {"capacity": 3.5}, {"point_splits": "2"}], ids=str
)
def test_overrides_of_a_wrong_type_are_refused_by_name(override: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError), match=next(iter(override))):
        tonari.plan(500, 500, 4, 9, **override)


@pytest.mark.parametrize(
    "override",
    [{"sample_rank": 10**6, "sample_stride": 4}, {"point_splits": 100, "threads": 2}, {"query_block": 10**6}],
    ids=str,
)
def test_odd_overrides_that_work(override: dict[str, Any]) -> None:
    rows = checks.gaussian(500, 4)
    plan = tonari.plan(500, 500, 4, 9, **override)
    assert_same_neighbors(tonari.search(rows, rows, 9, plan=plan), brute(rows, rows, 9))
