"""Cosine and correlation of rows at every angle: the bits of the definition, for each way to compute exact values."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tonari
from tests.helpers.checks import angles, assert_same_neighbors
from tests.helpers.kernels import ISAS, planned_search
from tonari.core.results.neighbors import Neighbors
from tonari.metrics.reference import brute, pairwise, returned, values_at

Array = npt.NDArray[Any]
METRICS = ["cosine", "correlation"]
DTYPES = ["float32", "float64", "float16", "bfloat16", "int8"]


def rows_of(n: int, d: int, dtype: str, seed: int = 0) -> Array:
    rows = angles(n, d, seed, np.float64)
    return (np.clip(rows * 15, -127, 127) if dtype == "int8" else rows).astype(dtype)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", [2, 16, 19, 130])
@pytest.mark.parametrize("isa", ISAS)
def test_searches(metric: str, dtype: str, d: int, isa: str) -> None:
    points = rows_of(400, d, dtype)
    found = planned_search(points[:40], points, 60, metric, isa=isa, method="exact")
    assert_same_neighbors(found, brute(points[:40], points, 60, metric), metric=metric)
    few = planned_search(points[:1], points, 400, metric, isa=isa, method="exact")
    assert_same_neighbors(few, brute(points[:1], points, 400, metric), metric=metric)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8"])
@pytest.mark.parametrize("isa", ISAS)
def test_multiples_of_rows(dtype: str, isa: str) -> None:
    rows = np.random.default_rng(0).integers(-9, 10, (60, 35))
    points = np.concatenate([rows, 3 * rows, 7 * rows, 13 * rows]).astype(dtype)
    found = planned_search(points, points, 4, "cosine", isa=isa, method="exact")
    assert not found.distances.any()
    assert_same_neighbors(found, brute(points, points, 4, "cosine"))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("d", [19, 130])
def test_contracted_searches_and_graphs(metric: str, d: int) -> None:
    points = rows_of(600, d, "float32")
    truth = brute(points, points, 12, metric, self_ids=np.arange(len(points)))
    graph = tonari.knn_graph(points, 12, metric=metric, method="exact")
    assert_same_neighbors(Neighbors(graph.distances, graph.indices), truth, metric=metric)
    found = planned_search(points[:50], points, 12, metric, method="exact", form_dim=9)
    assert_same_neighbors(found, brute(points[:50], points, 12, metric), metric=metric)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_approximate_graphs_have_exact_values(metric: str, dtype: str) -> None:
    points = rows_of(1500, 24, dtype)
    graph = tonari.knn_graph(points, 10, metric=metric, method="nn-descent", seed=0)
    values = values_at(points, points, graph.indices, metric)
    assert graph.distances.tobytes() == returned(values, graph.distances.dtype).tobytes()
    assert (graph.distances == 0).sum() > len(points), "the data has few copies"


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_radii_that_are_values(metric: str, dtype: str) -> None:
    points = rows_of(300, 24, dtype)
    values = returned(pairwise(points[:30], points, metric), dtype)
    for radius in (0.0, *np.quantile(values, [0.2, 0.5, 0.9], method="nearest").tolist()):
        found = tonari.radius_search(points[:30], points, radius, metric=metric)
        inside = values <= radius
        np.testing.assert_array_equal(np.diff(found.indptr), inside.sum(1))
        np.testing.assert_array_equal(np.sort(found.distances), np.sort(values[inside]))
        np.testing.assert_array_equal(tonari.radius_count(points[:30], points, radius, metric=metric), inside.sum(1))


@pytest.mark.parametrize("metric", METRICS)
def test_filters_and_the_kth_distance(metric: str) -> None:
    points = rows_of(300, 24, "float32")
    mask = np.arange(300) % 3 != 1
    found = tonari.search(points[:30], points, 9, metric=metric, where=mask)
    truth = brute(points[:30], points[mask], 9, metric)
    np.testing.assert_array_equal(found.indices, np.flatnonzero(mask)[truth.indices])
    assert found.distances.tobytes() == truth.distances.tobytes()
    kth = tonari.kth_distance(points, 9, metric=metric)
    whole = brute(points, points, 9, metric, self_ids=np.arange(300))
    np.testing.assert_array_equal(np.asarray(kth).ravel(), whole.distances[:, -1])
