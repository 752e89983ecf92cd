"""A plan has as many threads and splits as the work needs, within the memory."""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks, plans
from tests.helpers.checks import assert_same_neighbors
from tonari.exact.planning.planner import plan_on_cpu
from tonari.methods.registry import search_method
from tonari.metrics.problem import make_problem
from tonari.metrics.reference import brute


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
    monkeypatch.setattr("tonari.core.process.workers._cgroup_processors", lambda: None)


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
def test_a_prepared_index_is_searched_by_as_many_threads_as_the_queries_are_worth(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tonari.costs.model._cores", str)  # trees cost the same on CPUs with AMX
    for name, m in (("exact", 60), ("kdtree", 20)):
        method, asked = search_method(name, "cpu"), plans.problem(20_000, m, 60, 10)
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


def test_few_queries_keep_points_packed_and_many_pass_over_them_together() -> None:
    problem: dict[str, Any] = {"n": 200_000, "d": 384, "k": 10, "threads": 2, "memory": "60MB", "dtype": "uint8"}
    few, many = tonari.plan(m=1, **problem), tonari.plan(m=100_000, **problem | {"memory": "70MB"})
    assert not few.resident
    assert few.resident_points > 1.5 * many.resident_points
    assert few.stream_chunk < few.point_chunk / 4  # rows packed on the way leave memory for kept ones
    assert many.query_block * many.blocks_at_once >= 512


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
