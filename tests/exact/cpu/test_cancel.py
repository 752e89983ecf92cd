"""Stopping: Ctrl-C within a second on every schedule, errors from callbacks, and further searches afterwards."""

from __future__ import annotations

import threading

import pytest

import tonari
from tests.helpers import checks
from tests.helpers.checks import assert_same_neighbors, check_interrupt
from tonari.metrics.reference import brute

# A search of at least ten seconds, which reports its start; and the conditions after Ctrl-C.
CHILD = """
import sys, threading, time
import numpy as np, tonari
from tonari.metrics.reference import brute

points = {points}
started = threading.Event()
def progress(done, total):
    if not started.is_set():
        started.set()
        print("started", flush=True)
try:
    tonari.search(points[:{m}], points, {k}, metric={metric!r}, progress=progress, {arguments})
except KeyboardInterrupt:
    print("stopped", time.time(), flush=True)
else:
    print("finished", flush=True)
print("threads", threading.active_count(), flush=True)
small = np.random.default_rng(1).random((300, 5), np.float32)
found, truth = tonari.search(small, small, 4), brute(small, small, 4)
print("right", (found.indices == truth.indices).all() and (found.distances == truth.distances).all(), flush=True)
"""
RANDOM = "np.random.default_rng(0).random((300_000, 96), np.float32)"
ALIKE = "(1 + np.random.default_rng(0).integers(0, 2, (200_000, 64)) * 2.0**-22).astype(np.float32)"
CASES = {
    "two threads": (RANDOM, 300_000, 10, "euclidean", "threads=2"),
    "one thread": (RANDOM, 300_000, 10, "euclidean", "threads=1"),
    "sampled": (RANDOM, 300_000, 100, "euclidean", "threads=2"),
    "elementwise": (RANDOM, 300_000, 10, "chi2", "threads=2"),
    "streamed": (RANDOM, 100_000, 10, "l1", "threads=2, memory='70MB'"),
    "all points alike": (ALIKE, 200_000, 10, "euclidean", "threads=2"),
}


@pytest.mark.process
@pytest.mark.parametrize("case", CASES)
def test_interrupt_stops_within_a_second(case: str) -> None:
    points, m, k, metric, arguments = CASES[case]
    code = CHILD.format(points=points, m=m, k=k, metric=metric, arguments=arguments)
    assert check_interrupt(code)["right"] == "True"


class Enough(Exception):
    pass


@pytest.mark.parametrize(
    "choices",
    [
        {"threads": 1},
        {"threads": 3, "query_block": 8},
        {"threads": 2, "point_splits": 2, "point_chunk": 96, "query_block": 100},
        {"threads": 2, "resident": False, "query_block": 8},
    ],
    ids=str,
)
def test_errors_of_a_callback_stop_the_work(choices: dict[str, object]) -> None:
    rows = checks.gaussian(20_000, 16)
    before = threading.active_count()
    calls: list[int] = []

    def progress(done: int, total: int) -> None:
        calls.append(done)
        if len(calls) >= 3:
            raise Enough(f"after {len(calls)}")

    plan = tonari.plan(20_000, 100, 16, 5, **choices)
    if plan.point_splits == 1:
        plan = tonari.plan(20_000, 100, 16, 5, **choices, point_chunk=960)
    with pytest.raises(Enough, match="after 3"):
        tonari.search(rows[:100], rows, 5, plan=plan, progress=progress)
    assert len(calls) < 20
    assert threading.active_count() == before
    assert_same_neighbors(tonari.search(rows[:100], rows, 5, plan=plan), brute(rows[:100], rows, 5))
