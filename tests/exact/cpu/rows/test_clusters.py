"""Balls around groups are tested before a look: they exclude most groups of clusters, and none that a query needs."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.checks import assert_same_neighbors
from tonari.core import _native
from tonari.core.results.neighbors import Neighbors
from tonari.exact.precisions import kernel_name
from tonari.metrics.reference import brute

Array = npt.NDArray[Any]
D, K = 24, 7


def looked(queries: Array, points: Array, metric: str = "euclidean", **choices: Any) -> Neighbors:
    plan = tonari.plan(
        len(points), len(queries), points.shape[1], K, dtype=points.dtype, metric=metric, method="exact",
        **{"threads": 1, "look_dim": 8} | choices,
    )  # fmt: skip
    return tonari.search(queries, points, K, metric=metric, plan=plan)


def clusters(n: int, far: float, seed: int = 0) -> Array:
    """Make rows in tight clusters of 40, in different directions from the origin."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((-(-n // 40), D)) * far
    return (np.repeat(centres, 40, axis=0)[:n] + rng.standard_normal((n, D)) * 0.1).astype(np.float32)


@pytest.mark.parametrize("isa", _native.supported_isas())
@pytest.mark.parametrize("metric", ["euclidean", "cosine", "inner_product"])
def test_most_groups_of_clusters_are_passed_over(isa: str, metric: str) -> None:
    points = clusters(4000, 30)
    kernel = kernel_name(metric, "float32", isa)
    form = _native.Form(metric, [0.0] * D, 2.0**-8)
    look = form.contracted(points, 1, 16)
    order = np.arange(len(points))
    packed = _native.PackedPoints(kernel, form, points, 0, len(points), order=order, look=look)
    sketch = np.empty((len(points), 16))
    look.screened_rows(points, 1, sketch)
    sketch = sketch.astype(np.float32)
    args = kernel, form, points, points, K, isa, None, False, False, 4096, 0, look, order, sketch.T.copy()
    block = _native.RowBlock(*args)
    block.open(0, 80, order, sketch)
    block.screen(packed, 0, packed.groups, looks=True)
    pairs, seen, marked = block.looked
    assert 0 < marked <= seen < 0.2 * pairs

    distances, indices = np.full((80, K), np.nan, np.float32), np.full((80, K), -1, np.int32)
    block.finish(distances, indices, np.empty(80, np.uint8))
    assert_same_neighbors(Neighbors(distances, indices), brute(points[:80], points, K, metric), metric=metric)


@pytest.mark.parametrize("isa", _native.supported_isas())
@pytest.mark.parametrize("metric", ["euclidean", "cosine", "inner_product"])
def test_points_that_need_a_row_which_does_not_need_them(
    isa: str, metric: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One row lies alone near each cluster. Its neighbours are the rows of the cluster, which have nearer ones, so of
    # the shared products only the lonely row's side is useful. A group contains lonely rows of many clusters.
    from tonari.exact.cpu.rows.clusters import Clusters

    monkeypatch.setattr(Clusters, "_nearest", lambda self, rows, centres: np.zeros(len(rows), np.uint8))
    rng = np.random.default_rng(1)
    centres = rng.standard_normal((40, D)) * 30
    core = np.repeat(centres, 10, axis=0) + rng.standard_normal((400, D)) * 0.1
    alone = centres * (0.3 if metric == "inner_product" else 1) + rng.standard_normal((40, D)) * 3
    points = np.vstack([core, rng.permutation(alone)]).astype(np.float32)
    shape: dict[str, Any] = {"self_join": True, "metric": metric, "threads": 2, "method": "exact", "isa": isa}
    plan = tonari.plan(440, 440, D, K, **shape, dtype=points.dtype, look_dim=8, active_rows=576)
    graph = tonari.knn_graph(points, K, metric=metric, plan=plan)
    expected = brute(points, points, K, metric, self_ids=np.arange(440))
    assert (np.asarray(expected.indices)[400:] < 400).mean() > 0.9
    assert (np.asarray(expected.indices)[:400] >= 400).mean() < 0.1
    assert_same_neighbors(Neighbors(graph.distances, graph.indices), expected, metric=metric)


def test_rows_beyond_the_screen_are_in_no_ball() -> None:
    # Products of such short rows underflow, and only exact values show that they point in the same direction as the
    # queries.
    points = clusters(400, 3).astype(np.float64)
    points[::5] = points[200] * (1e-160 * (1 + np.arange(80)))[:, None]
    found = looked(points[200:230], points, "cosine", threads=1)
    assert_same_neighbors(found, brute(points[200:230], points, K, "cosine"), metric="cosine")


@pytest.mark.parametrize("metric", ["euclidean", "inner_product"])
def test_bytes_are_moved_before_they_are_multiplied(metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # The score of a shifted row has a term of its own, which alone decides if queries are grey. One row of a group is
    # bright.
    from tonari.exact.cpu.rows.clusters import Clusters

    monkeypatch.setattr(Clusters, "_nearest", lambda self, rows, centres: np.zeros(len(rows), np.uint8))
    rng = np.random.default_rng(2)
    points = (rng.random((500, D)) * 30).astype(np.uint8)
    points[::12] = 255 - points[::12]
    queries = rng.integers(126, 131, (40, D)).astype(np.uint8)
    found = looked(queries, points, metric)
    assert_same_neighbors(found, brute(queries, points, K, metric), metric=metric)


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
def test_short_queries_reach_far(metric: str) -> None:
    points = checks.gaussian(500, D, 3) * 10
    queries = np.zeros((5, D), np.float32) + points.mean(axis=0)
    assert_same_neighbors(looked(queries, points, metric), brute(queries, points, K, metric), metric=metric)
