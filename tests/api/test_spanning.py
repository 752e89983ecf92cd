"""The tree by mutual reachability against Prim's algorithm on all pairs, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.devices import needs_torch
from tonari.api import spanning
from tonari.metrics import METRICS
from tonari.spanning import boruvka
from tonari.spanning.reference import spanning_tree

N = 50
DISTANCES = [name for name, metric in METRICS.items() if not metric.descending]


def same(found: tonari.SpanningTree, expected: tonari.SpanningTree) -> None:
    assert found.weights.dtype == expected.weights.dtype
    assert found.weights.tobytes() == expected.weights.tobytes()
    assert found.edges.dtype == expected.edges.dtype
    np.testing.assert_array_equal(found.edges, expected.edges)


@pytest.mark.parametrize("metric", DISTANCES)
@pytest.mark.parametrize("maker", checks.HOSTILE)
@pytest.mark.parametrize("min_samples", [1, 2, 5, N])
@pytest.mark.parametrize("more", [1, 6])
def test_the_tree_of_all_pairs(
    metric: str, maker: str, min_samples: int, more: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spanning, "_MORE", more)
    if more == 1:
        monkeypatch.setattr(boruvka, "_LARGE", 1)
        monkeypatch.setattr(boruvka, "_FIRST", 2)
    points = checks.in_range(checks.accepted(checks.HOSTILE[maker](N, 3, 0), metric), metric)
    same(
        tonari.mutual_reachability_tree(points, min_samples, metric=metric), spanning_tree(points, min_samples, metric)
    )


@pytest.mark.parametrize("method", ["exact", "kdtree"])
@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("share", [0.0, 1.0])
def test_every_method_and_way_to_ask(method: str, d: int, share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spanning, "_MORE", 1)
    monkeypatch.setattr(spanning, "_MANY", share)
    points = checks.tight_far_clusters(300, d)
    same(tonari.mutual_reachability_tree(points, 4, method=method), spanning_tree(points, 4))


@pytest.mark.parametrize("dtype", ["float16", "float64", "uint8", "int8"])
def test_every_dtype(dtype: str) -> None:
    points = (checks.gaussian(N, 4) * 20 + 60).astype(dtype)
    same(tonari.mutual_reachability_tree(points, 3), spanning_tree(points, 3))


def test_rows_that_are_strided_or_read_only() -> None:
    wide = checks.gaussian(2 * N, 6)
    points = wide[::2, ::2]
    points.setflags(write=False)
    same(tonari.mutual_reachability_tree(points, 5), spanning_tree(np.ascontiguousarray(points), 5))


def test_clusters_far_apart_at_a_huge_offset() -> None:
    points = (checks.tight_far_clusters(200, 3).astype(np.float64) + 1e8).astype(np.float32)
    same(tonari.mutual_reachability_tree(points, 3), spanning_tree(points, 3))


def test_a_larger_set_on_two_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    points = (20 * rng.standard_normal((8, 6)))[rng.integers(8, size=700)] + rng.standard_normal((700, 6))
    points = points.astype(np.float32)
    monkeypatch.setattr(boruvka, "_LARGE", 50)
    monkeypatch.setattr(boruvka, "_FIRST", 4)
    same(tonari.mutual_reachability_tree(points, 5, threads=2, memory="100MB"), spanning_tree(points, 5))


@needs_torch
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_tensors_are_points(dtype: str) -> None:
    import torch

    points = torch.from_numpy(checks.gaussian(N, 4)).to(getattr(torch, dtype))
    found = tonari.mutual_reachability_tree(points, 4)
    assert isinstance(found.weights, np.ndarray)
    same(found, spanning_tree(points.float().numpy(), 4))


def test_progress_counts_edges() -> None:
    seen: list[tuple[int, int]] = []
    tonari.mutual_reachability_tree(checks.gaussian(N, 4), 4, progress=lambda *pair: seen.append(pair))
    assert seen[-1] == (N - 1, N - 1)
    assert sorted(seen) == seen


@pytest.mark.parametrize("wrong", [0, N + 1, 2.5])
def test_min_samples_counts_points(wrong: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=f"min_samples={wrong}"):
        tonari.mutual_reachability_tree(checks.gaussian(N, 4), wrong)


def test_similarities_are_refused() -> None:
    with pytest.raises(ValueError, match=r"inner_product.*use 'cosine'"):
        tonari.mutual_reachability_tree(checks.gaussian(N, 4), 3, metric="inner_product")
