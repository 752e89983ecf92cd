"""Exact neighbours of some rows, by which recall is measured."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers import checks, plans
from tests.helpers.devices import HAS_CUDA, HAS_TORCH, needs_torch
from tests.helpers.gpu_checks import GB, tensor_of
from tonari.metrics.reference import brute
from tonari.nn_descent.memory import list_bytes, truth_bytes
from tonari.nn_descent.plan import DescentPlan
from tonari.nn_descent.reference import ReferenceBackend

if HAS_TORCH:
    import torch

    from tonari.core.results.neighbors import Neighbors
    from tonari.nn_descent.cuda import backend as steps
    from tonari.nn_descent.cuda.backend import CudaBackend, plan_nearest

Array = np.ndarray[Any, Any]
pytestmark = [needs_torch]
DEVICE = "cuda:0" if HAS_CUDA else "cpu"


def plain_nearest(queries: Any, points: Any, k: int, metric: str, memory: int) -> Neighbors:
    assert memory > 0
    found = brute(queries.numpy(), points.numpy(), k, metric)
    return Neighbors(torch.from_numpy(found.distances), torch.from_numpy(found.indices))


@pytest.fixture(autouse=True)
def _plain_stand_in_for_the_exact_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which has tests of its own, and takes the interpreter minutes."""
    if not HAS_CUDA:
        monkeypatch.setattr(steps, "nearest", plain_nearest)


def plan_for(points: Array, k: int, metric: str = "euclidean", **choices: Any) -> DescentPlan:
    n, d = points.shape
    return plans.descent(n, d, k, dtype=points.dtype, metric=metric, devices=(DEVICE,), free_bytes=8 * GB, **choices)


def steps_for(points: Array, k: int, metric: str = "euclidean", **choices: Any) -> tuple[CudaBackend, ReferenceBackend]:
    plan = plan_for(points, k, metric, **choices)
    return CudaBackend(tensor_of(points).to(DEVICE), plan), ReferenceBackend(points, plan)


def nearest_plan(n: int, m: int, d: int, k: int, metric: str, memory: int) -> Any:
    """Return the plan for the sample's true neighbours, on a GPU with 70 GB of free memory."""
    given: dict[str, Any] = {"devices": ("cuda:0",), "host_points": False, "host_queries": False, "memory": memory}
    return plan_nearest(plans.problem(n, m, d, k, metric=metric, **given), free_bytes=70 * GB)


def assert_room(plan: DescentPlan) -> None:
    """Check that exact search finds the neighbours of the sample within the memory that the plan counts."""
    n, d, k = plan.n, plan.d, min(plan.k + 1, plan.n)
    truth = nearest_plan(n, plan.sample, d, k, plan.metric, truth_bytes(plan))
    assert truth.total_bytes <= truth_bytes(plan) <= plan.packed_bytes + plan.working_bytes
    batches = -(-truth.m // truth.query_batch)
    assert -(-n // truth.point_slab) * batches <= 8
    assert batches * truth.query_batch < truth.m + batches  # of equal length, for one variant of each kernel
    # Also for the whole sample, or for a few rows that lack a neighbour, in addition to the lists.
    left = plan.packed_bytes + plan.working_bytes - list_bytes(plan)
    for rows in (plan.sample, 3):
        assert nearest_plan(n, rows, d, k, plan.metric, left).total_bytes <= left


@pytest.mark.parametrize("start", ["clusters", "random", "graph"])
@pytest.mark.parametrize("metric", ["euclidean", "inner_product", "chi2"])
@pytest.mark.parametrize(
    ("n", "d", "k"),
    [
        *((2, 1, 1), (2, 3, 1), (50, 30_000, 10), (3000, 960, 500), (40_000, 16, 10)),
        *((10**6, 4096, 1), (10**6, 16, 100), (10**7, 96, 32)),
    ],
)
def test_the_exact_engine_finds_room(n: int, d: int, k: int, metric: str, start: str) -> None:
    given: dict[str, Any] = {"dtype": "float32", "metric": metric, "devices": ("cuda:0",), "free_bytes": 70 * GB}
    assert_room(plans.descent(n, d, k, start=start, host_points=False, **given))


@pytest.mark.parametrize("start", ["clusters", "random"])
@pytest.mark.parametrize(
    ("n", "d", "k"),
    [(2, 1, 1), (2, 3, 1), (50, 30_000, 10), (3000, 960, 100), (40_000, 16, 10), (10**6, 4096, 1), (10**7, 96, 32)],
)
def test_the_exact_engine_finds_room_beside_spinlocks(n: int, d: int, k: int, start: str) -> None:
    given: dict[str, Any] = {"dtype": "float32", "devices": ("cuda:0",), "free_bytes": 200 * GB, "update": "gnnd"}
    assert_room(plans.descent(n, d, k, start=start, host_points=False, **given))
    small = {"list_size": 16, "samples": 8} if k < 16 else {}
    assert_room(plans.descent(n, d, k, start=start, host_points=False, **given, **small))


def test_slabs_leave_room_for_more_queries() -> None:
    wide, narrow = (nearest_plan(10**6, 4000, 960, 11, "euclidean", room) for room in (20 * GB, 2 * GB))
    assert (wide.route, wide.point_slab, wide.query_batch) == ("resident", 10**6, 4000)
    assert (narrow.route, narrow.query_batch) == ("streamed", 4000)
    assert narrow.point_slab <= 500_096


def test_exact_neighbours_of_some_rows() -> None:
    points = np.repeat(checks.gaussian(40, 3), 2, axis=0)
    on_card, plain = steps_for(points, 6)
    rows = np.array([0, 5, 79])
    found, wanted = on_card.of_rows(on_card.exact(rows, 6), np.arange(3)), plain.exact(rows, 6)
    np.testing.assert_array_equal(found.indices, wanted.indices)
    np.testing.assert_array_equal(found.distances, wanted.distances)
