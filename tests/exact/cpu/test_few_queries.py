"""Searches of so few queries that registers hold points instead of queries (native/exact/screen_few.hpp)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.checks import HOSTILE, assert_same_neighbors
from tonari.core import _native
from tonari.core.results.neighbors import Neighbors
from tonari.metrics import get_metric
from tonari.metrics.reference import brute

Array = npt.NDArray[Any]
D = 21
KERNELS = [name.split("/") for name in _native.kernel_names() if not name.endswith("/amx")]


def search(queries: Array, points: Array, k: int, kernel: list[str], metric: str, **choices: Any) -> Neighbors:
    """Search with one kernel, followed by a float32 screen."""
    levels = tuple(dict.fromkeys((kernel[1], "float32")))
    plan = tonari.plan(
        len(points), len(queries), points.shape[1], k, dtype=points.dtype, metric=metric, method="exact", threads=1,
        isa=kernel[2], precisions=levels, **choices,
    )  # fmt: skip
    return tonari.search(queries, points, k, metric=metric, plan=plan)


def metric_of(kernel: list[str]) -> str:
    return "euclidean" if kernel[0] == "inner" else kernel[0]


def data(maker: str, n: int, d: int, kernel: list[str]) -> Array:
    made = HOSTILE[maker](n, d, 0)
    return np.abs(made) if get_metric(metric_of(kernel)).nonnegative else made


@pytest.mark.parametrize("kernel", KERNELS, ids="/".join)
@pytest.mark.parametrize("n", [1, 3, 4, 5, 6, 7, 11, 12, 13, 47, 48, 49, 97])
@pytest.mark.parametrize("m", [1, 4, 5])
def test_every_end_of_a_group(kernel: list[str], n: int, m: int) -> None:
    metric = metric_of(kernel)
    points, queries = np.abs(checks.duplicates(n, D)), np.abs(checks.gaussian(m, D, 1))
    for k in {1, (n + 1) // 2, n}:
        assert_same_neighbors(
            search(queries, points, k, kernel, metric), brute(queries, points, k, metric), metric=metric
        )


@pytest.mark.parametrize("kernel", KERNELS, ids="/".join)
@pytest.mark.parametrize("maker", HOSTILE)
@pytest.mark.parametrize("capacity", [2048, 1], ids=["roomy", "settles"])
def test_hostile_data(kernel: list[str], maker: str, capacity: int) -> None:
    metric, points = metric_of(kernel), data(maker, 200, D, kernel)
    for m in (1, 3):
        found = search(points[7 : 7 + m], points, 9, kernel, metric, capacity=capacity)
        assert_same_neighbors(found, brute(points[7 : 7 + m], points, 9, metric), metric=metric)


@pytest.mark.parametrize("kernel", KERNELS, ids="/".join)
@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 15, 16, 17, 33, 300])
def test_every_number_of_columns(kernel: list[str], d: int) -> None:
    metric, points = metric_of(kernel), np.abs(checks.gaussian(150, d))
    found = search(points[:2], points, 6, kernel, metric)
    assert_same_neighbors(found, brute(points[:2], points, 6, metric), metric=metric)


@pytest.mark.parametrize(
    "choices",
    [{"point_chunk": 96, "sample_stride": 2, "sample_rank": 60}, {"look_dim": 6}, {"form_dim": 9, "look_dim": 4}],
    ids=["sampled", "look", "look and contraction"],
)
@pytest.mark.parametrize("isa", _native.supported_isas())
def test_samples_and_looks(choices: dict[str, Any], isa: str) -> None:
    points = HOSTILE["tight_far_clusters"](500, D, 0)
    plan = tonari.plan(500, 2, D, 30, dtype=points.dtype, method="exact", threads=1, isa=isa, **choices)
    assert_same_neighbors(tonari.search(points[:2], points, 30, plan=plan), brute(points[:2], points, 30))
