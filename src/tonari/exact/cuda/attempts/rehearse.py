"""Rehearsals of a whole search: what its plan will launch (cuda/rehearsal.py), before anything is launched.

The rows are on the device "meta", and the code is that of the search: points are prepared, and searched once in each
way that sizes alone decide. The choice of a contraction depends on data, and is left out there. So are attempts at rows
that are not proved: they are rehearsed when it is known how many these are (attempts/attempt.py).
"""

from __future__ import annotations

from typing import Any

import torch

from tonari.core.slices import cut
from tonari.exact.cuda.attempts.as_bytes import shifted_points
from tonari.exact.cuda.attempts.contracted import prepare_points
from tonari.exact.cuda.attempts.first import Searchable
from tonari.exact.cuda.attempts.ladder import search_on_device
from tonari.exact.cuda.divisions import share
from tonari.exact.cuda.plan import CudaPlan
from tonari.exact.cuda.rows.copies import runs_of_copies
from tonari.exact.cuda.rows.part import Place, plan_for_part
from tonari.select.cuda.merge import merge_into, no_lists


def can_rehearse(plan: CudaPlan) -> bool:
    """Whether searches by a plan are rehearsed: not on the route "host_refine", where the CPU does much of the work."""
    return plan.route != "host_refine"


def rehearse_preparation(plan: CudaPlan) -> None:
    """Prepare points by a plan."""
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
    """Prepare points by a plan and search them, once in each way that sizes alone decide.

    Parameters
    ----------
    plan : CudaPlan
        One that can be rehearsed.
    query_dtype : str
    self_join : bool
    prepared : Searchable, optional
        Points that have been prepared on a single device, whose contraction is known.
    shift : int, optional
        Of rows that are integers of one byte (attempts/as_bytes.py), if that has been looked for.
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
        if self_join and rows == points:  # without copies, there are fewer of both
            rows, queries = len(held.points), held.points
        else:
            queries = _rows(rows, plan.d, query_dtype)
        found, _ = search_on_device(queries, held, part, own=Place(self_join=self_join).own(rows, "meta"))
        if merged:
            double = torch.float64 in (queries.dtype, held.points.dtype)
            best = no_lists(rows, plan.k, plan.n, plan.metric, double=double, device="meta")
            merge_into(best, found, 0, plan.metric, "meta")


def _shares(plan: CudaPlan) -> tuple[int, int]:
    """Return the most points and queries of a device."""
    devices = len(plan.devices)
    return (plan.n, share(plan.m, devices)) if plan.shard == "queries" else (share(plan.n, devices), plan.m)


def _lengths(count: int, slab: int) -> list[int]:
    """Return the lengths of slabs, each once."""
    return list(dict.fromkeys(part.stop - part.start for part in cut(count, slab)))


def _rows(count: int, d: int, dtype: str) -> Any:
    return torch.empty((count, d), dtype=getattr(torch, dtype), device="meta")
