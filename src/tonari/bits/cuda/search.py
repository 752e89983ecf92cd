"""Searches for the k nearest rows of bits on CUDA; several devices share the queries."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from tonari.bits.cuda.pairs import Pairs, over_devices
from tonari.bits.cuda.plan import BitsCudaPlan
from tonari.bits.cuda.prepared import PreparedBits
from tonari.core.process.progress import ProgressLike
from tonari.core.results.neighbors import Neighbors
from tonari.core.trail import current
from tonari.cuda.streams import synchronize
from tonari.select.cuda.dispatch import k_smallest
from tonari.select.cuda.ordering.merge import empty_lists, merge_into, no_lists


def search_bits(
    queries: Any,
    prepared: PreparedBits,
    plan: BitsCudaPlan,
    *,
    self_join: bool = False,
    progress: ProgressLike = None,
) -> Neighbors:
    """Find the k nearest points of each query; the result is on the device of the queries."""
    found, started, record = _new_results(queries, plan), time.perf_counter(), current.get()

    def answer(pairs: Pairs, rows: slice) -> None:
        _write(found, rows, _nearest(pairs, rows, plan))

    over_devices(queries, prepared, plan, answer, self_join=self_join, progress=progress)
    if record is not None:
        if record.timed:
            synchronize(plan.devices)
        seconds = time.perf_counter() - started if record.timed or isinstance(queries, np.ndarray) else None
        record.tried("all bits", len(queries), len(queries), seconds)
    return found


def _nearest(pairs: Pairs, rows: slice, plan: BitsCudaPlan) -> Neighbors:
    """Return the k nearest points of a block of queries, on the block's device.

    In a self-join, the k nearest points of a single slab may include the query itself, with the value inf, but the
    merged list has k other points.
    """
    best: Neighbors | None = None
    for slab, values in pairs.values(rows):
        near = Neighbors(*k_smallest(values, min(plan.k, values.shape[1])))
        if len(pairs.slabs) == 1:
            best = near
            continue
        if best is None:
            best = no_lists(len(values), plan.k, plan.n, plan.metric, double=False, device=pairs.device)
        merge_into(best, near, slab.start, plan.metric, pairs.device)
    assert best is not None
    return best


def _new_results(queries: Any, plan: BitsCudaPlan) -> Neighbors:
    """Allocate the result on the device of the queries."""
    if isinstance(queries, np.ndarray):
        return Neighbors.empty(len(queries), plan.k, plan.n)
    return empty_lists(len(queries), plan.k, plan.n, double=False, device=queries.device)


def _write(found: Neighbors, rows: slice, part: Neighbors) -> None:
    """Write the neighbours of a block of queries to the result; wait for the device if it is in host memory."""
    for mine, new in zip(found, part, strict=True):
        mine[rows] = new.cpu().numpy() if isinstance(mine, np.ndarray) else new
