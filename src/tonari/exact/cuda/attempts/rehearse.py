"""Rehearse a whole search: compile in advance the kernels that its plan will launch (cuda/compiling/rehearsal.py).

A rehearsal runs the code of the search with tensors on the device "meta", which have no data. It prepares points, and
runs each step of a search that depends only on the sizes of arrays. It omits the choice of a contraction, which depends
on the data. It also omits attempts at unproved rows (not yet certified as exact): these attempts are rehearsed when the
number of unproved rows is known (attempts/retries/attempt.py).
"""

from __future__ import annotations

from typing import Any

import torch

from tonari.core.rows.slices import cut
from tonari.exact.cuda.attempts.as_bytes import shifted_points
from tonari.exact.cuda.attempts.contracted import prepare_points
from tonari.exact.cuda.attempts.first import Searchable
from tonari.exact.cuda.attempts.ladder import search_on_device
from tonari.exact.cuda.divisions import share
from tonari.exact.cuda.plan import CudaPlan
from tonari.exact.cuda.rows.copies import runs_of_copies
from tonari.exact.cuda.rows.part import Place, plan_for_part
from tonari.select.cuda.ordering.merge import merge_into, no_lists


def can_rehearse(plan: CudaPlan) -> bool:
    """Whether a search by a plan can run on tensors without data, to compile its kernels in advance.

    False for the route "host_refine", where the CPU refines. The route "codes" has rehearsals of its own.
    """
    return plan.route != "host_refine"


def rehearse_preparation(plan: CudaPlan) -> None:
    """Prepare points without data by a plan, to find the kernels that the preparation launches."""
    if plan.route == "resident":
        n, _ = _shares(plan)
        prepare_points(_rows(n, plan.d, plan.dtype), plan_for_part(plan, n, 1, plan.devices[0]))


def rehearse_search(
    plan: CudaPlan,
    query_dtype: str,
    *,
    self_join: bool,
    prepared: Searchable | None = None,
    shift: int | None = None,
) -> None:
    """Run the steps of a search that depend only on sizes, on tensors without data, to find the kernels to compile.

    Parameters
    ----------
    plan : CudaPlan
        A plan that can be rehearsed.
    query_dtype : str
    self_join : bool
    prepared : Searchable, optional
        Points prepared on a single device; their contraction is known.
    shift : int, optional
        The shift of rows that are integers of one byte (attempts/as_bytes.py), if a sample has shown it.
    """
    n, m = _shares(plan)
    if plan.copies_first and prepared is None:
        runs_of_copies(_rows(n, plan.d, plan.dtype))
    slabs = [(points, rows) for points in _lengths(n, plan.point_slab) for rows in _lengths(m, plan.query_slab)]
    merged = (n, m) != slabs[0] or n != plan.n
    if plan.points_at_home:
        slabs.append((plan.points_at_home, m))
    for points, rows in slabs:
        part = plan_for_part(plan, points, rows, plan.devices[0])
        if prepared is not None:
            held = prepared.without_data()
        elif shift is not None:
            held = shifted_points(_rows(points, plan.d, plan.dtype), part, shift)
        else:
            held = prepare_points(_rows(points, plan.d, plan.dtype), part)
        if self_join and rows == points:  # a search that leaves out copies of points also has fewer queries
            rows, queries = len(held.points), held.points
        else:
            queries = _rows(rows, plan.d, query_dtype)
        found, _ = search_on_device(queries, held, part, own=Place(self_join=self_join).own(rows, "meta"))
        if merged:
            double = torch.float64 in (queries.dtype, held.points.dtype)
            best = no_lists(rows, plan.k, plan.n, plan.metric, double=double, device="meta")
            merge_into(best, found, 0, plan.metric, "meta")


def _shares(plan: CudaPlan) -> tuple[int, int]:
    """Return the largest number of points on one device, and the largest number of queries on one device."""
    devices = len(plan.devices)
    return (plan.n, share(plan.m, devices)) if plan.shard == "queries" else (share(plan.n, devices), plan.m)


def _lengths(count: int, slab: int) -> list[int]:
    """Return the distinct lengths of the slabs of `count` rows, which have `slab` rows except for the last one."""
    return list(dict.fromkeys(part.stop - part.start for part in cut(count, slab)))


def _rows(count: int, d: int, dtype: str) -> Any:
    return torch.empty((count, d), dtype=getattr(torch, dtype), device="meta")
