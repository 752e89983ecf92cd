"""Operations of the CPU backend that the driver uses."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers import checks
from tests.helpers.checks import assert_same_neighbors, assert_valid_neighbors, check_interrupt
from tests.helpers.descent import SMALL, as_dtype, groups, plan_for, shared
from tonari import exact
from tonari.metrics import METRICS
from tonari.metrics.reference import brute
from tonari.nn_descent.cpu.backend import CpuBackend
from tonari.nn_descent.entries import NEW


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
    assert steps.joined_entries(old, old[:, :1] + 1).tolist() == [[4, -1, 5] + [-1] * 6, [7, 1, 8] + [-1] * 6]
    wide = np.arange(20, dtype=np.int32).reshape(2, 10)
    assert steps.joined_entries(wide, old).tolist() == wide[:, :9].tolist()
    assert steps.joined_entries(wide[:, :8], old).tolist() == np.hstack([wide[:, :8], old[:, :1]]).tolist()


CHILD = """
import threading, time
import numpy as np
from tonari.nn_descent.cpu.backend import CpuBackend
from tonari.metrics.problem import make_problem
from tonari.nn_descent.planning.planner import plan_descent

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
