"""List or count all points within a limit, for rows of bits on CUDA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from tonari.bits.cuda.pairs import Pairs
from tonari.bits.cuda.plan import BitsCudaPlan
from tonari.bits.cuda.prepared import PreparedBits
from tonari.core.neighbors import index_dtype
from tonari.core.progress import Progress, ProgressLike
from tonari.core.radius_neighbors import RadiusNeighbors
from tonari.core.slices import cut
from tonari.cuda.device_threads import a_thread_each, side_by_side
from tonari.cuda.devices import on
from tonari.inputs import Side, hand_back
from tonari.select.cuda.ragged import join_parts, moved, one_after_another, order_lists

_FARTHEST = float(1 << 24)  # no value is larger; that of a query and the point that it is itself is inf

Work = Callable[[Pairs, slice, Any], Any]


def find_bits(
    queries: Any,
    prepared: PreparedBits,
    plan: BitsCudaPlan,
    limits: npt.NDArray[np.float32],
    *,
    self_join: bool = False,
    progress: ProgressLike = None,
) -> RadiusNeighbors:
    """Find all points within the limits; see :meth:`tonari.core.method.SearchMethod.find_within`."""
    host = isinstance(queries, np.ndarray)
    where = "cpu" if host else queries.device
    dtype = torch.int64 if index_dtype(plan.n).itemsize == 8 else torch.int32

    def find(pairs: Pairs, rows: slice, bounds: Any) -> RadiusNeighbors:
        return moved(_lists(pairs, rows, bounds, dtype), where)

    parts = _on_devices(queries, prepared, plan, limits, find, self_join, progress)
    side = Side("numpy", None) if host else Side("torch", str(queries.device))
    return RadiusNeighbors(*(hand_back(part, side) for part in one_after_another(parts)))


def count_bits(
    queries: Any,
    prepared: PreparedBits,
    plan: BitsCudaPlan,
    limits: npt.NDArray[np.float32],
    *,
    self_join: bool = False,
    progress: ProgressLike = None,
) -> Any:
    """Count the points that :func:`find_bits` finds for each query."""
    host = isinstance(queries, np.ndarray)

    def count(pairs: Pairs, rows: slice, bounds: Any) -> Any:
        counts = torch.zeros(len(bounds), dtype=torch.int64, device=pairs.device)
        for _, values in pairs.values(rows):
            counts += (values <= bounds).sum(1)
        return counts.to("cpu" if host else queries.device)

    counts = torch.cat(_on_devices(queries, prepared, plan, limits, count, self_join, progress))
    return counts.numpy() if host else counts


def _on_devices(
    queries: Any,
    prepared: PreparedBits,
    plan: BitsCudaPlan,
    limits: npt.NDArray[np.float32],
    work: Work,
    self_join: bool,
    progress: ProgressLike,
) -> list[Any]:
    """Return the answers of all blocks of queries, in order; `work` receives the limits of a block as a column."""
    bounds = cut(len(queries), -(-len(queries) // len(plan.devices)))
    workers = a_thread_each(plan.devices)
    columns = torch.from_numpy(np.minimum(limits, np.float32(_FARTHEST)))[:, None]
    total = len(queries) * plan.n
    with (
        on(plan.devices[0]),
        Progress(progress, total=total, seconds=plan.seconds, label="neighbours") as bar,
    ):

        def answer(at: int) -> list[Any]:
            pairs = Pairs(queries, prepared, plan, at, self_join=self_join, check=workers.check, bar=bar)
            return [work(pairs, rows, columns[rows].to(pairs.device)) for rows in pairs.blocks(bounds[at])]

        parts = side_by_side(workers, plan.devices, len(bounds), answer)
    return [block for part in parts for block in part]


def _lists(pairs: Pairs, rows: slice, bounds: Any, dtype: Any) -> RadiusNeighbors:
    """Return the points that a block of queries finds, on the device."""
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
