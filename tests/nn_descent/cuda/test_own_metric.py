"""A Triton function as the metric of an approximate graph on CUDA; without a GPU in Triton's interpreter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks, plans
from tests.helpers.devices import HAS_CUDA, HAS_TORCH, needs_torch
from tests.helpers.gpu_checks import GB
from tonari.metrics import cuda_terms, get_metric
from tonari.nn_descent.plan import DescentPlan

if HAS_TORCH:
    import torch
    import triton
    import triton.language as tl

    from tonari.nn_descent.cuda.backend import CudaBackend
    from tonari.nn_descent.driver import build

    @triton.jit
    def cubes(q, x):
        difference = tl.abs(q - x)
        # not 0 where both elements are, so elements beyond a row's end must not count
        return difference * difference * difference + 0.5

    @triton.jit
    def nothing(q, x):
        return tl.where(q == x, float("nan"), q)


Array = np.ndarray[Any, Any]
pytestmark = [needs_torch]
DEVICE = "cuda:0" if HAS_CUDA else "cpu"
MANY = 400 if HAS_CUDA else 24  # number of points: the interpreter takes a second for every few dozen


def plan_for(points: Array, k: int, metric: Any, **choices: Any) -> DescentPlan:
    n, d = points.shape
    name = get_metric(metric).name
    return plans.descent(n, d, k, dtype=points.dtype, metric=name, devices=(DEVICE,), free_bytes=8 * GB, **choices)


def values_of(points: Array) -> Array:
    """Compute all pairs by cubes, with infinity for a point and itself."""
    x = points.astype(float)
    values: Array = (np.abs(x[:, None] - x[None]) ** 3 + 0.5).sum(2)
    np.fill_diagonal(values, np.inf)
    return values


@pytest.mark.parametrize(("d", "dtype"), [(1, "float32"), pytest.param(21, "float64", marks=pytest.mark.full)])
def test_rounds_and_exact_neighbours(d: int, dtype: str) -> None:
    points = checks.gaussian(MANY, d).astype(dtype)
    on_card = CudaBackend(torch.from_numpy(points).to(DEVICE), plan_for(points, 5, cubes, list_size=12))
    made = on_card.round(on_card.round(on_card.start("random")).entries)
    values, rows = values_of(points), np.arange(0, MANY, 3)
    ids, distances = made.found.indices.cpu().numpy(), made.found.distances.cpu().numpy()
    near = 1e-13 if dtype == "float64" else 1e-6
    np.testing.assert_allclose(distances, np.take_along_axis(values, ids, 1), rtol=near)
    assert (np.diff(distances, axis=1) >= 0).all()
    true = on_card.of_rows(on_card.exact(rows, 5), np.arange(len(rows)))
    least = np.sort(values[rows], axis=1)[:, :5]
    np.testing.assert_allclose(true.distances, least, rtol=near)
    np.testing.assert_allclose(np.take_along_axis(values[rows], true.indices, 1), least, rtol=near)
    assert (distances[rows] <= least[:, -1:] * (1 + near)).mean() > 0.7


def test_a_function_that_gives_no_number_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    points = np.zeros((30, 3), np.float32)
    plan = plan_for(points, 4, nothing)
    on_card = CudaBackend(torch.from_numpy(points).to(DEVICE), plan)
    monkeypatch.setattr(on_card, "start", None)  # before any work
    with pytest.raises(ValueError, match="row 0: distances to all but a few points are NaN; the metric must give num"):
        build(on_card, plan)


def test_it_is_known_by_its_name() -> None:
    assert get_metric(cubes).name == "triton:cubes"
    assert get_metric("triton:cubes").function is cubes
    assert (cuda_terms("triton:cubes").term, cuda_terms("euclidean").term) == (cubes, None)
    assert get_metric("triton:elsewhere").function is None
    with pytest.raises(ValueError, match="'triton:elsewhere' is a Triton function that this process has not seen"):
        cuda_terms("triton:elsewhere")
    with pytest.raises(ValueError, match="unknown metric 'triton:a b'"):
        get_metric("triton:a b")
    with pytest.raises(ValueError, match=r"metric='function:values_of' is a function"):
        get_metric(values_of)


@pytest.mark.parametrize("method", ["exact", "nn-descent", "auto"])
def test_it_is_refused_on_the_cpu(method: str) -> None:
    points = checks.gaussian(30, 3)
    with pytest.raises(
        ValueError, match="metric 'triton:cubes': a Triton function is supported by method='nn-descent' on CUDA"
    ):
        tonari.knn_graph(points, 3, metric=cubes, method=method, device="cpu")


def test_it_is_refused_by_other_verbs(tmp_path: Path) -> None:
    points = checks.gaussian(30, 3)
    for call in (
        lambda: tonari.search(points, points, 3, metric=cubes, device="cpu"),
        lambda: tonari.Index(points, metric=cubes, device="cpu"),
        lambda: tonari.plan(30, 30, 3, 3, metric="triton:cubes", method="exact"),
    ):
        with pytest.raises(ValueError, match="a Triton function is supported by method='nn-descent' on CUDA alone"):
            call()
    with pytest.raises(ValueError, match="kdtree"):
        tonari.search(points, points, 3, metric=cubes, method="kdtree")
    graph = tonari.KNNGraph(np.array([[1], [0]], np.int32), np.ones((2, 1), np.float32), "triton:cubes", "nn-descent")
    with pytest.raises(ValueError, match="graphs by 'triton:cubes' cannot be merged or changed"):
        tonari.merge(graph, graph, points[:2], points[:2])
    graph.save(tmp_path / "graph.npz")
    assert tonari.KNNGraph.load(tmp_path / "graph.npz").metric == "triton:cubes"


@pytest.mark.skipif(not HAS_CUDA, reason="knn_graph runs on a card")
def test_a_graph() -> None:
    rng = np.random.default_rng(0)
    points = (rng.normal(size=(20, 12))[rng.integers(20, size=3000)] + 0.2 * rng.normal(size=(3000, 12))).astype("f4")
    graph = tonari.knn_graph(points, 8, metric=cubes, method="nn-descent", recall=0.95, device=DEVICE)
    assert graph.metric == "triton:cubes"
    assert graph.report is not None
    assert graph.report.reached
    values = values_of(points)
    np.testing.assert_allclose(graph.distances, np.take_along_axis(values, graph.indices, 1), rtol=1e-6)
    true = np.argsort(values, axis=1)[:, :8]
    assert (graph.indices[:, :, None] == true[:, None]).any(axis=1).mean() > 0.95
