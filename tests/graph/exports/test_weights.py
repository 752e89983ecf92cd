"""Weights of edges, compared with their definitions in plain loops and with umap-learn."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks, consumers
from tonari.graph import tuning

KINDS = ("gaussian", "umap", "jaccard")


def _lists(graph: tonari.KNNGraph) -> list[dict[int, float]]:
    """Return the neighbours of each point, without the point itself, and their distances."""
    rows = zip(graph.indices.tolist(), graph.distances.tolist(), strict=True)
    return [{j: d for j, d in zip(*row, strict=True) if j not in (-1, i)} for i, row in enumerate(rows)]


def _both(one: float, other: float) -> float:
    return one + other - one * other


def _scale(near: list[float], mean: float) -> tuple[float, float]:
    """Return UMAP's distance to the nearest neighbour and its scale, for a point."""
    nearest = min((d for d in near if d > 0), default=0.0)
    low, high, scale = 0.0, math.inf, 1.0
    for _ in range(64):
        found = sum(math.exp(-max(0.0, d - nearest) / scale) for d in near)
        if abs(found - math.log2(len(near) + 1)) < 1e-5:
            break
        if found > math.log2(len(near) + 1):
            high = scale
        else:
            low = scale
        scale = 2 * scale if high == math.inf else (low + high) / 2
    return nearest, max(scale, 1e-3 * (sum(near) / (len(near) + 1) if nearest > 0 else mean))


def reference(graph: tonari.KNNGraph, kind: str, squared: bool = False) -> Any:
    """Compute the weights by definition."""
    lists, n = _lists(graph), graph.n
    made = np.zeros((n, n))
    distances = [d for row in lists for d in row.values()]
    mean = sum(distances) / (len(distances) + n)
    farthest = [max(row.values(), default=0.0) for row in lists]
    scales = [_scale(list(row.values()), mean) for row in lists]
    for i, row in enumerate(lists):
        for j, d in row.items():
            if kind == "gaussian":
                product = farthest[i] * farthest[j]
                power = d * d / product if product else math.inf
                value = 1.0 if d == 0 else math.exp(-(math.sqrt(power) if squared else power))
            elif kind == "jaccard":
                value = len(row.keys() & lists[j].keys()) / len(row.keys() | lists[j].keys())
            else:
                own, other = (
                    math.exp(-max(0.0, lists[a][b] - scales[a][0]) / scales[a][1]) if b in lists[a] else 0.0
                    for a, b in ((i, j), (j, i))
                )
                value = _both(own, other)
            made[i, j] = made[j, i] = value
    return made


def _check(graph: tonari.KNNGraph, kind: Any, squared: bool = False) -> None:
    found = graph.to_weights(kind)
    assert found.dtype == np.float64
    assert found.has_sorted_indices
    assert (found.data > 0).all()
    assert not found.diagonal().any()
    assert abs(found - found.T).max() <= 1e-15
    off = 1e-4 if kind == "umap" else 1e-12  # tolerance of a bisection that ends when the sum is within 1e-5
    np.testing.assert_allclose(found.toarray(), reference(graph, kind, squared), rtol=1e-9, atol=off)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("include_self", [False, True])
@pytest.mark.parametrize("data", ["duplicates", "gaussian", "tight_far_clusters", "all_equal"])
def test_weights_are_those_of_the_definition(data: str, include_self: bool, kind: str) -> None:
    points = getattr(checks, data)(53, 3)
    _check(tonari.knn_graph(points, 5 + include_self, include_self=include_self), kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "k"), [(2, 1), (7, 1), (7, 6)])
def test_small_graphs(n: int, k: int, kind: str) -> None:
    _check(tonari.knn_graph(checks.gaussian(n, 4), k), kind)


@pytest.mark.parametrize("kind", KINDS)
def test_missing_neighbours_have_no_weight(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "JACCARD_AT_ONCE", 30)  # blocks of five rows
    graph = consumers.with_missing(consumers.hostile(6)[1], count=3)
    _check(consumers.with_missing(graph, row=11, count=6), kind)


@pytest.mark.parametrize("metric", ["sqeuclidean", "cosine", "chi2"])
def test_squared_distances_are_not_squared_again(metric: str) -> None:
    points = np.abs(checks.gaussian(40, 4))
    _check(tonari.knn_graph(points, 5, metric=metric), "gaussian", squared=True)


def test_the_square_of_a_metric_has_its_weights() -> None:
    points = checks.gaussian(40, 4, dtype=np.float64)
    ours, squares = (tonari.knn_graph(points, 5, metric=metric) for metric in ("euclidean", "sqeuclidean"))
    np.testing.assert_allclose(
        ours.to_weights("gaussian").toarray(), squares.to_weights("gaussian").toarray(), rtol=1e-12
    )


@pytest.mark.parametrize("factor", [1e-4, 1e4, 1e100])
@pytest.mark.parametrize("kind", KINDS)
def test_weights_do_not_depend_on_units(kind: str, factor: float) -> None:
    points = checks.gaussian(60, 4, dtype=np.float64)
    one, other = (tonari.knn_graph(units * points, 6).to_weights(kind) for units in (1.0, factor))  # type: ignore[arg-type]
    np.testing.assert_allclose(other.toarray(), one.toarray(), rtol=1e-9)


def test_refuses_what_has_no_weights() -> None:
    points = checks.gaussian(20, 4)
    graph = tonari.knn_graph(points, 3)
    with pytest.raises(ValueError, match="kind='gauss': expected 'gaussian', 'umap', 'jaccard'"):
        graph.to_weights("gauss")  # type: ignore[arg-type]
    similar = tonari.knn_graph(points, 3, metric="inner_product")
    assert similar.to_weights("jaccard").nnz
    for kind in ("gaussian", "umap"):
        with pytest.raises(ValueError, match="similarities"):
            similar.to_weights(kind)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not squared"):
        tonari.knn_graph(points, 3, metric="sqeuclidean").to_weights("umap")
    distances = graph.distances.copy()
    distances[7, -1] = np.inf
    infinite = tonari.KNNGraph(graph.indices, distances, "euclidean", "by hand")
    for kind in ("gaussian", "umap"):
        with pytest.raises(ValueError, match="row 7 has an infinite distance"):
            infinite.to_weights(kind)  # type: ignore[arg-type]


@pytest.mark.interop
@pytest.mark.parametrize("data", ["gaussian", "tight_far_clusters", "duplicates"])
def test_umaps_weights_are_its_own(data: str) -> None:
    umap = consumers.consumer("umap.umap_")
    points = getattr(checks, data)(300, 5)
    graph = tonari.knn_graph(points, 11)
    indices, distances = graph.to_umap()
    own, _, _ = umap.fuzzy_simplicial_set(
        points, 12, np.random.RandomState(0), "euclidean", knn_indices=indices, knn_dists=distances
    )
    assert abs(graph.to_weights("umap") - own).max() < 1e-4  # umap-learn drops values that are 0 in float32
