"""The exact engine on tensors of one device."""

from __future__ import annotations

from typing import Any

from tonari import arrays
from tonari.exact.gpu import run
from tonari.planning_gpu import plan_on_gpu
from tonari.results import Neighbors


def nearest(queries: Any, points: Any, k: int, metric: str, memory: int) -> Neighbors:
    """The k nearest points of every query, found within so many bytes: tensors of shape (m, k), in order."""
    n, d = points.shape
    plan = plan_on_gpu(
        n,
        len(queries),
        d,
        k,
        dtype=arrays.name_of_dtype(points),
        metric=metric,
        devices=(str(points.device),),
        memory=memory,
        host_points=False,
        host_queries=False,
        query_dtype=arrays.name_of_dtype(queries),
    )
    return run.search_once(queries, points, plan, progress=False)
