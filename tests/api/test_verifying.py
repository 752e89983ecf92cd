"""`tonari.verify` compared with an oracle, on data that is hard to search."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.devices import needs_torch, on_gpu
from tonari.metrics import METRICS
from tonari.metrics.reference import brute, pairwise

N, M, K = 60, 12, 5


def rows_for(metric: str, maker: str, n: int, seed: int) -> Any:
    return checks.accepted(checks.in_range(checks.HOSTILE[maker](n, 6, seed), metric), metric)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("maker", checks.HOSTILE)
def test_exact_answers_pass_and_damaged_ones_do_not(metric: str, maker: str) -> None:
    points, queries = rows_for(metric, maker, N, 0), rows_for(metric, maker, M, 1)
    found = brute(queries, points, K, metric)
    report = tonari.verify(queries, points, found.indices, found.distances, metric=metric)
    assert report.exact
    assert report.recall.by_index == 1.0
    assert report.distances is not None
    assert report.distances.wrong == report.tied == report.unsorted_rows == 0

    values = pairwise(queries, points, metric)
    values = -values if METRICS[metric].descending else values
    damaged = found.indices.copy()
    damaged[4, -1] = values[4].argmax()
    lost = values[4].max() > np.partition(values[4], K - 1)[K - 1] + 1e-5 * np.abs(values[4]).max()
    report = tonari.verify(queries, points, damaged, metric=metric)
    if lost:
        assert (report.farther, report.worst[0].row, report.exact) == (1, 4, False)


@pytest.mark.parametrize("maker", checks.HOSTILE)
@pytest.mark.parametrize("k", [1, N - 1])
def test_graphs_are_verified_without_queries(maker: str, k: int) -> None:
    points = rows_for("euclidean", maker, N, 0)
    graph = tonari.knn_graph(points, k)
    report = tonari.verify(None, points, graph.indices, graph.distances)
    assert report.exact
    assert report.recall.by_index == 1.0
    with_self = np.hstack([np.arange(N)[:, None], graph.indices[:, : k - 1]])
    assert tonari.verify(None, points, with_self).itself == N
    assert tonari.verify(points, points, with_self).itself == 0


def test_the_sample_is_drawn_by_the_seed_and_only_it_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    from tonari.api import verifying

    points = checks.gaussian(500, 4)
    graph = tonari.knn_graph(points, 3)
    asked = []

    def counting(queries: Any, *args: Any, **kwargs: Any) -> Any:
        asked.append(len(queries))
        return tonari.search(queries, *args, **kwargs)

    monkeypatch.setattr(verifying, "search", counting)
    first = tonari.verify(None, points, graph.indices[:, ::-1], sample=40, seed=3)
    again = tonari.verify(None, points, graph.indices[:, ::-1], sample=40, seed=3)
    assert first == again
    assert asked == [40, 40]
    assert (first.recall.rows, first.of_rows, first.unsorted_rows, first.exact) == (40, 500, 40, True)
    assert first.recall.low < 1.0 == first.recall.high


@pytest.mark.parametrize("dtype", ["float16", "uint8", "int8", "float64"])
def test_every_dtype(dtype: str) -> None:
    points = (checks.gaussian(N, 6) * 20 + 60).astype(dtype)
    found = tonari.search(points[:M], points, K)
    report = tonari.verify(points[:M], points, found.indices.astype(np.uint32), found.distances)
    assert report.exact
    assert str(report.distances).startswith("all 60 within")


@pytest.mark.parametrize("metric", ["hamming", "jaccard"])
def test_rows_of_bits(metric: str) -> None:
    points = np.random.default_rng(0).integers(0, 256, (N, 4), np.uint8)
    found = tonari.search(points[:M], points, K, metric=metric)
    assert tonari.verify(points[:M], points, *found[::-1], metric=metric).exact
    assert not tonari.verify(points[:M], points, (found.indices + 1) % N, metric=metric).exact


@pytest.mark.parametrize("metric", ["haversine", "minkowski:3", "euclidean"])
def test_changed_rows_and_weights(metric: str) -> None:
    points = checks.gaussian(N, 2).astype(np.float64) / 3
    weights = [1.0, 2.5] if metric == "euclidean" else None
    found = tonari.search(points[:M], points, K, metric=metric, weights=weights)
    report = tonari.verify(points[:M], points, *found[::-1], metric=metric, weights=weights)
    assert report.exact
    assert report.distances is not None
    assert report.distances.wrong == 0
    other = tonari.search(points[:M] + 0.4, points, K, metric=metric, weights=weights)
    errors = tonari.verify(points[:M], points, *other[::-1], metric=metric, weights=weights).distances
    assert errors is not None
    assert errors.wrong > 0


def test_squared_distances_are_named() -> None:
    points = checks.gaussian(N, 6)
    found = tonari.search(points[:M], points, K, metric="sqeuclidean")
    report = tonari.verify(points[:M] + np.float32(0.1), points, found.indices, found.distances)
    assert report.distances is not None
    assert report.distances.looks_like == ""
    shifted = tonari.search(points[:M] + np.float32(0.1), points, K, metric="sqeuclidean")
    report = tonari.verify(points[:M] + np.float32(0.1), points, shifted.indices, shifted.distances)
    assert report.distances is not None
    assert 'metric="sqeuclidean"' in report.distances.looks_like


@needs_torch
def test_tensors() -> None:
    import torch

    points = torch.from_numpy(checks.gaussian(N, 6))
    found = tonari.search(points[:M], points, K)
    assert tonari.verify(points[:M], points, found.indices, found.distances).exact


@on_gpu
def test_tensors_on_cuda() -> None:
    import torch

    points = torch.from_numpy(checks.gaussian(3000, 6)).cuda()
    found = tonari.search(points[:M], points, K)
    assert tonari.verify(points[:M], points, found.indices, found.distances).exact
    assert tonari.verify(points[:M].cpu().numpy(), points.cpu().numpy(), found.indices, device="cuda").exact
    damaged = found.indices.clone()
    damaged[3, 2] = damaged[3, 1]
    assert tonari.verify(points[:M], points, damaged).repeated == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"indices": np.zeros((M, 2))}, "indices are float64, expected whole numbers"),
        ({"indices": np.zeros(M, int)}, r"indices have the shape \(12,\), expected \(12, k\)"),
        ({"indices": np.zeros((M + 1, 2), int)}, r"expected \(12, k\): a list for each of the queries"),
        ({"indices": np.zeros((M, 0), int)}, r"expected \(12, k\)"),
        ({"indices": np.zeros((M, N + 1), int)}, "k=61"),
        ({"distances": np.zeros((M, 3))}, r"distances have the shape \(12, 3\), indices \(12, 2\)"),
        ({"distances": np.full((M, 2), "x")}, "distances are <U1"),
        ({"sample": 0}, "sample=0"),
        ({"metric": "euclid"}, "unknown metric 'euclid'"),
    ],
)
def test_refusals_name_what_came(given: dict[str, Any], message: str) -> None:
    points = checks.gaussian(N, 6)
    arguments: dict[str, Any] = {"indices": np.zeros((M, 2), int)} | given
    with pytest.raises((TypeError, ValueError), match=message):
        tonari.verify(points[:M], points, **arguments)
