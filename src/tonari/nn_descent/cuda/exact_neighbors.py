"""The exact engine on tensors of one device."""

from __future__ import annotations

from typing import Any

import torch

from tonari import inputs
from tonari.core.neighbors import Neighbors
from tonari.exact.cuda import dispatch as run
from tonari.exact.cuda.groups import GROUP_SIZES, POINT_TILE
from tonari.exact.cuda.plan import CudaPlan, plan_on_gpu
from tonari.exact.cuda.refine import refine_all
from tonari.metrics import is_own

_LEAST_SLAB = 1 << 15  # points: of fewer at a time their number is what takes the time


def nearest(queries: Any, points: Any, k: int, metric: str, memory: int) -> Neighbors:
    """The k nearest points of every query, found within so many bytes: tensors of shape (m, k), in order."""
    n, d = points.shape
    if is_own(metric):  # nothing is known of it that a screen could go by
        double = torch.float64 in (queries.dtype, points.dtype)
        return Neighbors(*refine_all(queries, points, k, metric=metric, double=double, scratch_bytes=memory))
    given: dict[str, Any] = {
        "dtype": inputs.name_of_dtype(points),
        "query_dtype": inputs.name_of_dtype(queries),
        "metric": metric,
        "devices": (str(points.device),),
    }
    return run.search_once(queries, points, plan_nearest(n, len(queries), d, k, memory, **given), progress=False)


def plan_nearest(n: int, m: int, d: int, k: int, memory: int, **given: Any) -> CudaPlan:
    """The plan for some thousands of queries within so many bytes.

    What takes the room is a minimum for each query and group of points. Slabs of the points, each packed in its turn,
    leave room for more queries at a time, and the fewest visits of a batch of queries to a slab take the least time.

    Parameters
    ----------
    n, m, d, k, memory
        As for :func:`tonari.exact.cuda.plan.plan_on_gpu`.
    **given
        The same; all rows lie on the device.
    """
    given |= {"group": GROUP_SIZES[-1], "host_points": False, "host_queries": False}

    def visits(plan: CudaPlan) -> int:
        return -(-n // plan.point_slab) * -(-m // plan.query_batch)

    plans = [plan_on_gpu(n, m, d, k, memory=memory, **given)]
    slab = n
    while plans[-1].query_batch < m and slab > _LEAST_SLAB:
        slab = -(-slab // (2 * POINT_TILE)) * POINT_TILE
        slabs: dict[str, Any] = {"route": "streamed", "point_slab": slab, "query_slab": m}
        plans.append(plan_on_gpu(n, m, d, k, memory=memory, **given, **slabs))
    return min(plans, key=visits)
