"""The mutual reachability tree equals that of Prim's algorithm on all pairs, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.devices import needs_torch
from tonari.api import tuning as api_tuning
from tonari.core.errors import Unsupported
from tonari.metrics import CHANGED, METRICS
from tonari.metrics.transforms.change import Change, change_of
from tonari.spanning import tuning
from tonari.spanning.reference import reachability, spanning_tree, spanning_tree_of

N = 50
METRICS_OF_CHANGED_ROWS = list(CHANGED)
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
    monkeypatch.setattr(api_tuning, "LISTED_MORE", more)
    if more == 1:
        monkeypatch.setattr(tuning, "LARGE_COMPONENT", 1)
        monkeypatch.setattr(tuning, "FIRST_ASKED", 2)
    points = checks.in_range(checks.accepted(checks.HOSTILE[maker](N, 3, 0), metric), metric)
    same(
        tonari.mutual_reachability_tree(points, min_samples, metric=metric), spanning_tree(points, min_samples, metric)
    )


def by_kruskal(points: Any, min_samples: int, change: Change) -> tonari.SpanningTree:
    """Find the tree by Kruskal's algorithm: all pairs of the reference, in the order of values of the changed rows."""
    reached = reachability(change.rows(points, "points"), min_samples, change.base)
    left, right = np.triu_indices(len(points), 1)
    values, labels, taken = reached[left, right], np.arange(len(points)), []
    for at in np.lexsort((right, left, values)):
        ends = labels[left[at]], labels[right[at]]
        if ends[0] != ends[1]:
            labels[labels == ends[1]] = ends[0]
            taken.append(at)
    edges, weights = np.stack([left[taken], right[taken]], axis=1).astype(np.int32), change.values(values[taken])
    order = np.lexsort((*edges.T[::-1], weights))
    return tonari.SpanningTree(edges[order], weights[order])


def sky(n: int, seed: int) -> Any:
    """Make latitudes and longitudes in radians: fields, copies, both poles, and both sides of the date line."""
    rng = np.random.default_rng(seed)
    centres = np.array([[1.5, 0.0], [-np.pi / 2, 3.0], [0.2, np.pi], [0.2, -np.pi], [0.7, 0.1]])
    rows = centres[rng.integers(5, size=n)] + 0.01 * rng.standard_normal((n, 2))
    rows[: n // 5] = rows[n // 5 : 2 * (n // 5)]
    return np.clip(rows, [-np.pi / 2, -4], [np.pi / 2, 4])


@pytest.mark.parametrize("metric", METRICS_OF_CHANGED_ROWS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("min_samples", [1, 4, N])
@pytest.mark.parametrize("more", [1, 6])
def test_metrics_of_changed_rows(
    metric: str, dtype: str, min_samples: int, more: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_tuning, "LISTED_MORE", more)
    sets = [sky(N, 0)] if metric == "haversine" else [make(N, 3, 0) for make in checks.HOSTILE.values()]
    change = change_of(metric)
    assert change is not None
    for points in sets:
        if metric in ("hellinger", "braycurtis"):
            points = np.abs(points.astype(np.float64))
            points[points.sum(axis=1) == 0, 0] = 1
            points /= points.sum(axis=1, keepdims=True)
        rows = points.astype(dtype)
        found = tonari.mutual_reachability_tree(rows, min_samples, metric=metric)
        same(found, by_kruskal(rows, min_samples, change))
        assert found.weights.dtype == np.float64
        assert (np.lexsort((*found.edges.T[::-1], found.weights)) == np.arange(N - 1)).all()
        plain = spanning_tree_of(change.values(reachability(change.rows(rows, "points"), min_samples, change.base)))
        np.testing.assert_array_equal(found.weights, plain.weights)


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "l1", "linf"])
@pytest.mark.parametrize("maker", checks.HOSTILE)
def test_weights_of_columns(metric: str, maker: str) -> None:
    points, weights = checks.in_range(checks.HOSTILE[maker](N, 4, 0), metric), [0.25, 0.0, 3.0, 1.7]
    change = change_of(metric, weights)
    assert change is not None
    found = tonari.mutual_reachability_tree(points, 3, metric=metric, weights=weights)
    same(found, by_kruskal(points, 3, change))
    one = tonari.mutual_reachability_tree(points, 3, metric=metric, weights=[1, 1, 1, 1])
    same(one, spanning_tree(points, 3, metric))


def test_metrics_without_weights_refuse_them() -> None:
    with pytest.raises(Unsupported, match=r"weights: metric='cosine' has none"):
        tonari.mutual_reachability_tree(checks.gaussian(N, 4), 3, metric="cosine", weights=[1, 2, 3, 4])


@pytest.mark.parametrize("share", [0.0, 0.05, 1.0])
@pytest.mark.parametrize("memory", ["8MB", "20MB", None])
def test_the_same_tree_within_any_budget(share: float, memory: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_tuning, "LISTED_MORE", 1)
    monkeypatch.setattr(api_tuning, "MANY", share)
    points = checks.tight_far_clusters(600, 3)
    same(tonari.mutual_reachability_tree(points, 4, memory=memory, threads=1), spanning_tree(points, 4))


@pytest.mark.parametrize("method", ["exact", "kdtree"])
@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("share", [0.0, 1.0])
def test_every_method_and_way_to_ask(method: str, d: int, share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_tuning, "LISTED_MORE", 1)
    monkeypatch.setattr(api_tuning, "MANY", share)
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
    monkeypatch.setattr(tuning, "LARGE_COMPONENT", 50)
    monkeypatch.setattr(tuning, "FIRST_ASKED", 4)
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
