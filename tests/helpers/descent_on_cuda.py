"""Helpers for tests of NN-Descent on CUDA or in Triton's interpreter: plans, backends, and checks of lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from tests.helpers import checks, plans
from tests.helpers.devices import HAS_CUDA
from tests.helpers.gpu_checks import GB, tensor_of
from tonari.core.results.neighbors import Neighbors
from tonari.metrics.reference import brute
from tonari.nn_descent.cuda.backend import CudaBackend
from tonari.nn_descent.entries import ID, NEW
from tonari.nn_descent.plan import DescentPlan
from tonari.nn_descent.reference import ReferenceBackend

Array = np.ndarray[Any, Any]
DEVICE = "cuda:0" if HAS_CUDA else "cpu"
MANY = 400 if HAS_CUDA else 24  # number of points; the interpreter takes a second for every few dozen points


def plain_nearest(queries: Any, points: Any, k: int, metric: str, memory: int) -> Neighbors:
    """Search in NumPy, in place of the exact search on the device, which would take the interpreter minutes."""
    assert memory > 0
    found = brute(queries.numpy(), points.numpy(), k, metric)
    return Neighbors(torch.from_numpy(found.distances), torch.from_numpy(found.indices))


def plan_for(points: Array, k: int, metric: str = "euclidean", **choices: Any) -> DescentPlan:
    """Return the plan of a graph of points on the device."""
    n, d = points.shape
    return plans.descent(n, d, k, dtype=points.dtype, metric=metric, devices=(DEVICE,), free_bytes=8 * GB, **choices)


def steps_for(points: Array, k: int, metric: str = "euclidean", **choices: Any) -> tuple[CudaBackend, ReferenceBackend]:
    """Return the backend on the device and the reference backend, for the same plan."""
    plan = plan_for(points, k, metric, **choices)
    return CudaBackend(tensor_of(points).to(DEVICE), plan), ReferenceBackend(points, plan)


def values_for(metric: str, n: int, d: int, seed: int = 0) -> Array:
    """Make rows that a metric accepts."""
    return checks.accepted(checks.gaussian(n, d, seed), metric)


def check_lists(entries: Array, n: int) -> Array:
    """Check that entries are new, and that no row lists itself, an id twice or an invalid id; return the ids."""
    present = entries >= 0
    ids = np.where(present, entries & ID, -1)
    assert (entries[present] & NEW != 0).all()
    assert (ids < n).all()
    assert not (ids == np.arange(n)[:, None]).any()
    for row in ids:
        listed = row[row >= 0]
        assert len(set(listed.tolist())) == len(listed)
    return ids


def recall_of(ids: Array, points: Array, k: int, metric: str) -> float:
    """Return the share of the true neighbours that the lists contain."""
    truth = brute(points, points, k, metric, self_ids=np.arange(len(points))).indices
    return float((ids[:, :, None] == truth[:, None, :]).any(axis=1).mean())
