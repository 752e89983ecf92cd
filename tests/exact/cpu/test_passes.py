"""The same bytes whether all, some or no points are packed before the search."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.checks import assert_same_neighbors
from tonari.metrics.reference import brute

N, M, D = 4000, 70, 12
# easy rows, retried rows, ties
MAKERS = (checks.gaussian, checks.tight_far_clusters, checks.duplicates, checks.offset_1e4)
POINTS = np.random.default_rng(0).permutation(np.vstack([make(N // 4, D, 0) for make in MAKERS]))
TRUTH = brute(POINTS[:M], POINTS, 10)

PARTLY: dict[str, dict[str, Any]] = {
    "few rows at a time": {"query_block": 7, "threads": 3, "point_chunk": 480},
    "sample": {"sample_stride": 3, "sample_rank": 60, "query_block": 16, "threads": 2, "point_chunk": 480},
    "sample too low": {"sample_stride": 3, "sample_rank": 1, "query_block": 16, "point_chunk": 480},
    "points split": {"point_splits": 3, "threads": 3, "point_chunk": 480, "query_block": 128},
    "split and tiny capacity": {"point_splits": 3, "threads": 3, "point_chunk": 480, "query_block": 32, "capacity": 1},
    "tiny capacity": {"capacity": 1, "threads": 2, "point_chunk": 480},
}


@pytest.mark.parametrize("schedule", PARTLY)
@pytest.mark.parametrize("resident", [0, 480, 3840, N])
@pytest.mark.parametrize("stream", [(1, 96), (2, 288), (4, 480)])
def test_some_points_packed_and_some_on_the_way(schedule: str, resident: int, stream: tuple[int, int]) -> None:
    plan = tonari.plan(N, M, D, 10, **{"threads": 1} | PARTLY[schedule])
    blocks, chunk = stream
    plan = dataclasses.replace(plan, resident_points=resident, stream_blocks=blocks, stream_chunk=chunk)
    assert_same_neighbors(tonari.search(POINTS[:M], POINTS, 10, plan=plan), TRUTH)
