"""Rows of bits on the CPU as a method: plans for prepared points, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.helpers import plans
from tonari.bits.cpu.method import BitsOnCpu
from tonari.metrics.reference import brute

METHOD = BitsOnCpu()
ROWS = np.random.default_rng(0).integers(0, 256, (40, 3), np.uint8)


def test_points_are_packed_once_for_all_searches() -> None:
    problem = plans.problem(40, 7, 3, 5, dtype="uint8", metric="hamming", threads=1)
    plan = METHOD.plan(problem)
    prepared = METHOD.prepare(ROWS, plan)
    later = METHOD.plan(problem, prepared_by=plan)
    assert plan.prepare_seconds > later.prepare_seconds == 0
    assert METHOD.held_bytes(prepared, plan) == plan.packed_bytes + plan.copied_bytes > 0
    truth = brute(ROWS[:7], ROWS, 5, "hamming")
    for found in (METHOD.search(ROWS[:7], prepared, later), METHOD.search_once(ROWS[:7], ROWS, plan)):
        assert found.indices.tolist() == truth.indices.tolist()
        assert found.distances.tobytes() == truth.distances.tobytes()


def test_other_rows_and_metrics_are_refused() -> None:
    cases: list[Any] = [("euclidean", "uint8"), ("hamming", "float32")]
    for metric, dtype in cases:
        assert METHOD.refuses(plans.problem(40, 7, 3, 5, dtype="uint8", metric="jaccard")) is None
        assert METHOD.refuses(plans.problem(40, 7, 3, 5, dtype=dtype, metric=metric))
