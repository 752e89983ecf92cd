"""Filters among rows of bits on a device: the same bits as on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers.bit_rows import few
from tests.helpers.device_rows import there
from tests.helpers.devices import needs_torch
from tonari.metrics import BIT_METRICS

pytestmark = [
    needs_torch,
    pytest.mark.usefixtures("cpu_for_cuda"),
]
N, M = 26, 4
RNG = np.random.default_rng(0)
RULES: dict[str, dict[str, Any]] = {
    "where": {"where": RNG.random(N) < 0.4},
    "none": {"where": np.zeros(N, bool)},
    "mask": {"where": RNG.random((M, N)) < 0.3},
    "exclude": {"exclude": [[0, 3], [], list(range(N)), list(range(20))]},
    "same": {"query_groups": [0, 1, 2, 9], "point_groups": np.arange(N) % 3},
    "other": {"query_groups": [0, 1, 2, 9], "point_groups": np.arange(N) % 3, "groups": "other"},
}


def same(found: Any, truth: Any) -> None:
    for mine, right in zip(found, truth, strict=True):
        here = mine if isinstance(mine, np.ndarray) else mine.cpu().numpy()
        assert (here.dtype, here.shape) == (right.dtype, right.shape)
        assert here.tobytes() == right.tobytes()


@pytest.mark.parametrize("rules", RULES)
def test_searches_and_radii(rules: str) -> None:
    queries, points = few(M, 3, 1), few(N, 3)
    for metric, k in zip(BIT_METRICS, (3, 9), strict=True):
        given: dict[str, Any] = {"metric": metric} | RULES[rules]
        truth = tonari.search(queries, points, k, **given)
        same(tonari.search(there(queries), there(points), k, **given), truth)
        index = tonari.Index(there(points), metric=metric)
        same(index.search(there(queries), k, **RULES[rules]), truth)
        radius = 9.0 if metric == "hamming" else 0.7
        near = tonari.radius_search(queries, points, radius, **given)
        same(tonari.radius_search(queries, points, radius, **given, device="cuda"), near)
        same(index.radius_search(there(queries), radius, **RULES[rules]), near)


@pytest.mark.parametrize("metric", BIT_METRICS)
def test_a_batch_keeps_points_from_themselves_and_from_others(metric: str) -> None:
    points = few(N, 3)
    for given in ({"batch": np.arange(N) // 9}, {"batch": np.arange(N) // 9, "where": np.arange(N) % 4 > 0}):
        graph = tonari.knn_graph(there(points), 8, metric=metric, **given)
        truth = tonari.knn_graph(points, 8, metric=metric, **given)
        same((graph.distances, graph.indices), (truth.distances, truth.indices))
