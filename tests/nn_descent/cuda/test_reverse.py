"""Reverse neighbours, by rank and number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers import checks, plans
from tests.helpers.devices import HAS_CUDA, HAS_TORCH, needs_torch
from tests.helpers.gpu_checks import GB, tensor_of
from tonari.metrics.reference import brute
from tonari.nn_descent.entries import MISSING, NEW
from tonari.nn_descent.plan import DescentPlan
from tonari.nn_descent.reference import ReferenceBackend

if HAS_TORCH:
    import torch

    from tonari.core.results.neighbors import Neighbors
    from tonari.nn_descent.cuda import backend as steps
    from tonari.nn_descent.cuda import rounds as reverse
    from tonari.nn_descent.cuda.backend import CudaBackend
    from tonari.nn_descent.cuda.rounds import reverse_of

Array = np.ndarray[Any, Any]
pytestmark = [needs_torch]
DEVICE = "cuda:0" if HAS_CUDA else "cpu"
MANY = 400 if HAS_CUDA else 24  # number of points: the interpreter takes a second for every few dozen


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


def test_blocks_and_order_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    points = checks.gaussian(MANY, 5)
    on_card, _ = steps_for(points, 6, list_size=8)
    few, _ = steps_for(points, 6, list_size=8, block=17)
    entries = on_card.start("clusters")
    whole = on_card.round(entries)
    monkeypatch.setattr(reverse, "columns_sorted", lambda n, hubs: 3)
    few._order = torch.from_numpy(np.random.default_rng(0).permutation(MANY)).to(DEVICE)
    parts = few.round(entries)
    assert torch.equal(whole.entries, parts.entries)
    assert torch.equal(whole.found.distances, parts.found.distances)
    assert (whole.changed, whole.phi) == (parts.changed, parts.phi)


@pytest.mark.parametrize("at_once", [1, 2])  # columns one after another, or together
def test_reverse_neighbours_come_by_rank_and_number(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reverse, "columns_sorted", lambda n, hubs: min(hubs, at_once))
    entries = np.array([[1 | NEW, 2], [2, MISSING], [1, 0 | NEW], [1 | NEW, 2 | NEW]], np.int32)
    found = reverse_of(torch.from_numpy(entries).to(DEVICE), 2, 3).cpu().numpy()
    expected = [[2 | NEW, -1, -1], [0 | NEW, 2, 3 | NEW], [1, 0, 3 | NEW], [-1, -1, -1]]
    assert found.tolist() == expected
    # No list contains the last point; a full row before it would overflow into its row.
    short = reverse_of(torch.from_numpy(entries).to(DEVICE), 2, 2).cpu().numpy()
    assert short.tolist() == [row[:2] for row in expected]
    assert reverse_of(torch.from_numpy(entries).to(DEVICE), 1, 1).cpu().numpy().tolist() == [[-1], [0 | NEW], [1], [-1]]
