"""Searches among rows of bits on CUDA by a plan with overrides; without a GPU, the CPU stands in for the device."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.helpers import plans
from tests.helpers.checks import assert_same_neighbors
from tests.helpers.devices import HAS_CUDA, HAS_TORCH
from tests.helpers.gpu_checks import GB, numpy_of, on_host, types_and_places
from tonari.bits.cuda.plan import BitsCudaPlan
from tonari.metrics.reference import brute

if HAS_TORCH:
    from tonari.bits.cuda.method import BitsOnCuda

DEVICE = "cuda:0" if HAS_CUDA else "cpu"


def plan_for(queries: Any, points: Any, k: int, metric: str, **choices: Any) -> BitsCudaPlan:
    """Return a plan for one CUDA device, which the CPU replaces on machines without a GPU."""
    given: dict[str, Any] = {"devices": (DEVICE,), "free_bytes": 8 * GB} | choices
    shape = len(points), len(queries), points.shape[1]
    return plans.bits_cuda(*shape, k, metric=metric, **types_and_places(queries, points), **given)


def check(queries: Any, points: Any, k: int, metric: str, **choices: Any) -> BitsCudaPlan:
    """Compare a search with the reference, bit by bit; for a self-join, pass the same rows twice."""
    method, progress, self_join = BitsOnCuda(), choices.pop("progress", False), choices.get("self_join", False)
    plan = plan_for(queries, points, k, metric, **choices)
    found = method.search(queries, method.prepare(points, plan), plan, self_join=self_join, progress=progress)
    own = np.arange(len(queries)) if self_join else None
    truth = brute(numpy_of(queries), numpy_of(points), k, metric, self_ids=own)
    assert type(found.indices) is type(queries)
    assert_same_neighbors(on_host(found), truth, metric=metric)
    return plan
