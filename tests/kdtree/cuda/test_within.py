"""Radius searches by the tree on CUDA: the bits of the reference, for any data, limits and plan.

Without a GPU, Triton's interpreter runs the kernels on the CPU, so shapes are tiny.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers import checks
from tests.helpers.checks import DTYPES, HOSTILE, Array
from tests.helpers.devices import HAS_CUDA, HAS_TORCH, needs_torch, on_gpu
from tests.helpers.gpu_checks import rows_of, tensors
from tests.helpers.radius_on_cuda import check_within, limits_at
from tests.helpers.tree_search import DEVICE, plan_for
from tonari.core.results.radius_neighbors import RadiusNeighbors, Within
from tonari.kdtree import tuning
from tonari.kdtree.plan import TREE_METRICS

if HAS_TORCH:
    import torch

    from tonari.kdtree.cuda import within as engine
    from tonari.kdtree.cuda.method import TreeOnCuda

pytestmark = [needs_torch]
# Queries, and points in three or five leaves.
M, N = (5, 300) if HAS_CUDA else (2, 130)


def check(
    queries: Array, points: Array, metric: str = "euclidean", limits: Any = 0.3, **choices: Any
) -> RadiusNeighbors:
    """Compare a search with the reference; `limits` may be the share of the points that is within them."""
    if isinstance(limits, float):
        limits = limits_at(queries, points, metric, limits)
    given = {name: choices.pop(name) for name in ("counted", "self_join", "as_searched") if name in choices}
    asked, rows = given.get("as_searched", (queries, points))
    plan = plan_for(asked, rows, 1, metric, self_join=given.get("self_join", False), **choices)
    return check_within(TreeOnCuda(), plan, queries, points, limits, **given)


@pytest.mark.parametrize("metric", TREE_METRICS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("counted", [False, True])
def test_every_metric_and_dtype(metric: str, dtype: str, counted: bool) -> None:
    check(rows_of(M, 3, dtype, metric, 1), rows_of(N, 3, dtype, metric), metric, 0.1, counted=counted)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_limits_of_every_kind(dtype: str) -> None:
    points = checks.duplicates(70, 2).astype(dtype)
    queries = points[:1].repeat(8, axis=0)
    at = limits_at(queries[:1], points, "euclidean", 0.4)[0]
    beside = np.nextafter(at, -np.inf, dtype=dtype), np.nextafter(at, np.inf, dtype=dtype)
    limits = np.array([-np.inf, np.inf, 0.0, -0.0, -1e-30, at, *beside], dtype)
    counts = np.diff(check(queries, points, limits=limits).indptr)
    assert counts[[0, 1, 4]].tolist() == [0, 70, 0]
    assert counts[6] < counts[5] == counts[7]


@pytest.mark.parametrize("n", [1, 7, 63, 64, 65])
def test_few_points(n: int) -> None:
    points = checks.gaussian(n, 3)
    check(points[:1], points, limits=0.5)


@pytest.mark.parametrize("d", [1, 17])
def test_dimensions(d: int) -> None:
    check(checks.gaussian(M, d, 1), checks.gaussian(N, d), limits=0.2)


@pytest.mark.parametrize("name", ["offset_1e4", "offset_float64", "tight_far_clusters", "subnormal", "all_equal"])
@pytest.mark.parametrize("metric", ["euclidean", "l1"])
@pytest.mark.parametrize("share", [0.03, 1.0])
def test_hostile_data(name: str, metric: str, share: float) -> None:
    points = HOSTILE[name](N, 3, 0)
    check(points[5::90], points, metric, share)


@pytest.mark.parametrize("where", ["host", "device"])
@pytest.mark.parametrize("point_slab", [None, 7])
def test_a_point_is_not_found_by_itself(where: str, point_slab: int | None) -> None:
    points = checks.duplicates(12, 2)
    slabs = {} if point_slab is None else {"point_slab": point_slab, "query_block": 5}
    rows = tensors(DEVICE, points)[0] if where == "device" else points
    check(points, points, limits=0.3, self_join=True, as_searched=(rows, rows), **slabs)


@pytest.mark.parametrize("room_bytes", [0, 1 << 30])
def test_room_for_most_queries(room_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pilot sees queries with few hits; others have more hits than there is room for."""
    monkeypatch.setattr(tuning, "PILOT_QUERIES", 2)
    monkeypatch.setattr(tuning, "ROOM_BYTES", room_bytes)
    points = checks.gaussian(70, 2)
    limits = limits_at(points[:6], points, "euclidean", 0.05)
    limits[[1, 4]] = np.inf
    walked: list[int] = []
    real = engine.Ball.walk

    def walk(self: Any, order: Any, *rest: Any, **given: Any) -> None:
        walked.append(len(order))
        real(self, order, *rest, **given)

    monkeypatch.setattr(engine.Ball, "walk", walk)
    # From the last query to the first, so that a query that writes beyond its room overwrites another's list.
    monkeypatch.setattr(engine.Ball, "order", lambda self, *, sort: torch.arange(6, device=DEVICE).flip(0))
    check(points[:6], points, limits=limits)
    assert walked == ([2, 6, 2] if room_bytes else [2, 6, 6])


@on_gpu
@pytest.mark.parametrize("metric", TREE_METRICS)
@pytest.mark.parametrize("d", [2, 3, 10])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_hundred_thousand_points(metric: str, d: int, dtype: str) -> None:
    points = rows_of(100_000, d, dtype, metric)
    check(points[:100], points, metric, 0.001)
    check(points[:20], points, metric, 0.2)


@on_gpu
def test_a_graph_of_a_million_points() -> None:
    """About 32 neighbours each: the same as the k nearest if there are no more, and symmetric."""
    from tonari.kdtree.cuda import dispatch

    points = torch.rand((1_000_000, 3), device=DEVICE, generator=torch.Generator(DEVICE).manual_seed(0))
    method, plan = TreeOnCuda(), plan_for(points, points, 1, self_join=True)
    nearest = plan_for(points, points, 64, self_join=True)
    prepared = method.prepare(points, plan)
    radius = np.float32((32 / 1e6 / (4 / 3 * np.pi)) ** (1 / 3))
    limits = np.full(len(points), radius, np.float32)
    found = method.find_within(Within(points, limits, range(len(points))), prepared, plan)
    counts = method.count_within(Within(points, limits, range(len(points))), prepared, plan)
    assert torch.equal(found.indptr.diff(), counts)
    assert 28 < float(counts.float().mean()) < 33
    lists = dispatch.search(points, prepared, nearest, self_join=True)
    inside = lists.distances <= radius
    few = counts < 64
    assert torch.equal(inside.sum(1)[few], counts[few])
    rows = torch.repeat_interleave(few, counts)
    assert torch.equal(found.indices[rows], lists.indices[few][inside[few]])
    assert torch.equal(found.distances[rows], lists.distances[few][inside[few]])
