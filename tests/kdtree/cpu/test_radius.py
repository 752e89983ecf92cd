"""Radius searches by a tree on the CPU, compared with the plain float64 definition, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers import checks
from tests.helpers.checks import DTYPES, HOSTILE
from tests.helpers.radius_checks import assert_same_within, check_within, hard_limits, later_than
from tests.helpers.trees import ISAS
from tonari.core.process.workers import Stopped
from tonari.core.results.radius_neighbors import Within
from tonari.kdtree.cpu.method import TreeOnCpu
from tonari.kdtree.plan import TREE_METRICS
from tonari.metrics.problem import make_problem
from tonari.metrics.reference import brute_within

METHOD = TreeOnCpu()


def grid(n: int, d: int, seed: int = 0) -> checks.Array:
    """Make whole numbers from a small range, with many ties between points and between boxes."""
    return np.random.default_rng(seed).integers(0, 3, (n, d)).astype(np.float32)


MAKERS = {"grid": grid, **HOSTILE}


@pytest.mark.parametrize("metric", TREE_METRICS)
@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("self_join", [False, True])
@pytest.mark.parametrize("leaf", [1, 8])
def test_hostile_data(metric: str, maker: str, self_join: bool, leaf: int) -> None:
    points = MAKERS[maker](180, 3, 0)
    queries = points if self_join else np.concatenate([points[:20], MAKERS[maker](20, 3, 1)])
    limits = hard_limits(queries, points, metric)
    truth = brute_within(queries, points, limits, metric, self_ids=np.arange(180) if self_join else None)
    for isa in ISAS:
        check_within(METHOD, queries, points, limits, metric, self_join=self_join, truth=truth, isa=isa, leaf=leaf)


@pytest.mark.parametrize("metric", TREE_METRICS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("query_dtype", ["same", "float64"])
def test_every_dtype(metric: str, dtype: str, query_dtype: str) -> None:
    rows = np.clip(checks.gaussian(200, 5) * 20, -120, 120)
    rows = (np.abs(rows) if dtype == "uint8" else rows).astype(dtype)
    queries = rows[:24] if query_dtype == "same" else rows[:24].astype(query_dtype)
    check_within(METHOD, queries, rows, hard_limits(queries, rows, metric), metric, leaf=4)


@pytest.mark.parametrize("n", [1, 7, 15, 16, 17, 257, 4097])
@pytest.mark.parametrize("m", [1, 33])
@pytest.mark.parametrize("d", [1, 2, 17, 33])
@pytest.mark.parametrize("isa", ISAS)
def test_every_size(n: int, m: int, d: int, isa: str) -> None:
    queries, points = checks.gaussian(m, d, 1), checks.gaussian(n, d)
    check_within(METHOD, queries, points, hard_limits(queries, points, "l1"), "l1", isa=isa, leaf=3)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_whole_boxes_are_counted_unseen(isa: str, dtype: str) -> None:
    points = np.random.default_rng(0).random((20_000, 2)).astype(dtype)
    limits = np.linspace(0, 0.5, 300).astype(dtype)
    plan = METHOD.plan(make_problem(20_000, 300, 2, 1, dtype=dtype, metric="euclidean"), isa=isa)
    prepared = METHOD.prepare(points, plan, False)
    counts = METHOD.count_within(Within(points[:300], limits), prepared, plan)
    assert counts.tolist() == np.diff(METHOD.find_within(Within(points[:300], limits), prepared, plan).indptr).tolist()
    # If its leaves are out of order, a box is found only if it is counted as a whole.
    prepared.tree.rows[...] = 7
    unseen = METHOD.count_within(Within(points[:300], limits), prepared, plan)
    assert (unseen <= counts).all()
    assert unseen[200:].sum() > counts[200:].sum() // 2


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("sort", [False, True])
@pytest.mark.parametrize("query_block", [1, 50, 600])
def test_threads_and_blocks(threads: int, sort: bool, query_block: int) -> None:
    points = np.concatenate([checks.gaussian(300, 3), checks.gaussian(300, 3)])
    limits = hard_limits(points, points, "euclidean")
    given: dict[str, Any] = {"threads": threads, "sort": sort, "query_block": query_block, "leaf": 8}
    check_within(METHOD, points, points, limits, "euclidean", self_join=True, **given)


@pytest.mark.parametrize(("begin", "end"), [(0, 150), (0, 1), (90, 150), (149, 150)])
def test_pairs_are_found_once(begin: int, end: int) -> None:
    points = np.concatenate([checks.gaussian(100, 3), checks.gaussian(50, 3)])
    plan = METHOD.plan(make_problem(150, end - begin, 3, 1, dtype="float32", metric="linf"), leaf=4)
    prepared = METHOD.prepare(points, plan, False)
    limits = hard_limits(points, points, "linf")
    truth = later_than(brute_within(points, points, limits, "linf", self_ids=np.arange(150)))
    found = METHOD.find_within(
        Within(points[begin:end], limits[begin:end], range(begin, end), later=True), prepared, plan
    )
    part = slice(truth.indptr[begin], truth.indptr[end])
    indptr = truth.indptr[begin : end + 1] - truth.indptr[begin]
    assert_same_within(
        found, truth._replace(indptr=indptr, indices=truth.indices[part], distances=truth.distances[part])
    )


def test_progress_counts_queries_and_its_errors_come_through() -> None:
    points = checks.gaussian(2000, 3)
    plan = METHOD.plan(make_problem(2000, 2000, 3, 1, dtype="float32", metric="euclidean", threads=2))
    prepared = METHOD.prepare(points, plan, False)
    limits = np.full(2000, np.float32(0.5))
    seen: list[tuple[int, int]] = []
    METHOD.count_within(Within(points, limits), prepared, plan, progress=lambda *step: seen.append(step))
    assert seen[-1] == (2000, 2000)

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises((KeyboardInterrupt, Stopped)):
        METHOD.find_within(Within(points, limits), prepared, plan, progress=interrupt)
