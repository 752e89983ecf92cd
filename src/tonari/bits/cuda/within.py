"""Searches for all points within a limit, and counts of them, for rows of bits on CUDA."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from tonari.bits.cuda.pairs import Pairs, over_devices
from tonari.bits.cuda.plan import BitsCudaPlan
from tonari.bits.cuda.prepared import PreparedBits
from tonari.core.process.progress import ProgressLike
from tonari.core.results.neighbors import index_dtype
from tonari.core.results.radius_neighbors import RadiusNeighbors, Within, later_points
from tonari.inputs import Side, hand_back
from tonari.select.cuda.ordering.ragged import join_parts, moved, one_after_another, order_lists

_FARTHEST = float(1 << 24)  # largest possible distance; only the pair of a query and itself has the value inf


def find_bits(
    request: Within, prepared: PreparedBits, plan: BitsCudaPlan, progress: ProgressLike = None
) -> RadiusNeighbors:
    """Find all points within the radius of each query; see :meth:`tonari.core.method.SearchMethod.find_within`."""
    if request.later:
        return later_points(find_bits(Within(request.queries, request.limits), prepared, plan, progress), request.first)
    queries, columns = request.queries, _columns(request.limits)
    host, self_join = isinstance(queries, np.ndarray), request.own is not None
    where = "cpu" if host else queries.device
    dtype = torch.int64 if index_dtype(plan.n).itemsize == 8 else torch.int32

    def find(pairs: Pairs, rows: slice) -> RadiusNeighbors:
        return moved(_lists(pairs, rows, columns[rows].to(pairs.device), dtype), where)

    parts = over_devices(queries, prepared, plan, find, self_join=self_join, progress=progress)
    side = Side("numpy", None) if host else Side("torch", str(queries.device))
    return RadiusNeighbors(*(hand_back(part, side) for part in one_after_another(parts)))


def count_bits(request: Within, prepared: PreparedBits, plan: BitsCudaPlan, progress: ProgressLike = None) -> Any:
    """Count the points that :func:`find_bits` finds for each query."""
    queries, columns = request.queries, _columns(request.limits)
    host, self_join = isinstance(queries, np.ndarray), request.own is not None

    def count(pairs: Pairs, rows: slice) -> Any:
        bounds = columns[rows].to(pairs.device)
        counts = torch.zeros(len(bounds), dtype=torch.int64, device=pairs.device)
        for _, values in pairs.values(rows):
            counts += (values <= bounds).sum(1)
        return counts.to("cpu" if host else queries.device)

    counts = torch.cat(over_devices(queries, prepared, plan, count, self_join=self_join, progress=progress))
    return counts.numpy() if host else counts


def _columns(limits: npt.NDArray[np.float32]) -> Any:
    """Return the queries' limits, lowered to finite values, as a tensor of shape (m, 1) in host memory."""
    return torch.from_numpy(np.minimum(limits, np.float32(_FARTHEST)))[:, None]


def _lists(pairs: Pairs, rows: slice, bounds: Any, dtype: Any) -> RadiusNeighbors:
    """Return the points within the limits of a block of queries, on the block's device."""
    parts = []
    for slab, values in pairs.values(rows):
        inside = values <= bounds
        counts = inside.sum(1)
        ids = inside.nonzero()[:, 1].to(dtype) + slab.start
        indptr = torch.nn.functional.pad(counts.cumsum(0), (1, 0))
        parts.append(RadiusNeighbors(indptr, ids, values[inside]))
    if len(parts) > 1:
        return join_parts(parts, descending=False)
    indptr, ids, distances = parts[0]
    return order_lists(indptr[:-1], indptr.diff(), distances, ids, descending=False)
