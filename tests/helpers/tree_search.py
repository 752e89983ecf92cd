"""Searches by a tree on CUDA for tests, by a plan with overrides; without a GPU, the CPU stands in for the device."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.helpers import plans
from tests.helpers.checks import Array, assert_same_neighbors
from tests.helpers.devices import HAS_CUDA, HAS_TORCH
from tests.helpers.gpu_checks import GB, types_and_places
from tonari.core.results.neighbors import Neighbors
from tonari.inputs import held
from tonari.kdtree.plan import TreePlan
from tonari.metrics.reference import brute

if HAS_TORCH:
    from tonari.kdtree.cuda import dispatch as run

DEVICE = "cuda:0" if HAS_CUDA else "cpu"


def plan_for(queries: Any, points: Any, k: int, metric: str = "euclidean", **choices: Any) -> TreePlan:
    """Return a plan for one CUDA device, which the CPU replaces on machines without a GPU."""
    given: dict[str, Any] = {"devices": (DEVICE,), "free_bytes": 8 * GB} | choices
    return plans.tree(
        len(points),
        len(queries),
        points.shape[1],
        k,
        metric=metric,
        **types_and_places(queries, points),
        **given,
    )


def search(queries: Any, points: Any, k: int, metric: str = "euclidean", **choices: Any) -> Neighbors:
    """Prepare the points and search them by a plan; for a self-join pass the same rows twice."""
    queries, points = (held(rows) if isinstance(rows, np.ndarray) else rows for rows in (queries, points))
    progress = choices.pop("progress", None)
    self_join = choices.get("self_join", False)
    plan = plan_for(queries, points, k, metric, **choices)
    prepared = run.prepare(points, plan)
    return run.search(queries, prepared, plan, self_join=self_join, progress=progress)


def check(queries: Array, points: Array, k: int, metric: str = "euclidean", **choices: Any) -> None:
    """Compare a search with the reference, bit by bit."""
    found = search(queries, points, k, metric, **choices)
    own = np.arange(len(queries)) if choices.get("self_join") else None
    assert_same_neighbors(found, brute(queries, points, k, metric, self_ids=own), metric=metric)
