"""Rehearsals of a whole search: what its plan will launch (cuda/rehearsal.py), before anything is launched.

The rows are on the device "meta". Every step of a search that does not look at data is done once: prepare the points,
search the first batch, the last and the pilot rows, merge lists. What depends on data is left out: the choice
of a contraction, and retries, which attempts/ladder.py rehearses when it knows how many rows they have.
"""

from __future__ import annotations

from typing import Any

import torch

from tonari.core.neighbors import Neighbors
from tonari.core.slices import cut
from tonari.cuda.rehearsal import to_visit
from tonari.exact.cuda.attempts.contracted import ContractedPoints
from tonari.exact.cuda.attempts.first import DevicePoints, Search, Searchable
from tonari.exact.cuda.divisions import share
from tonari.exact.cuda.plan import PILOT, CudaPlan
from tonari.exact.cuda.rows.contraction import Contraction, form_blocks, sampled
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
        _prepared(_rows(n, plan.d, plan.dtype), plan_for_part(plan, n, 1, plan.devices[0]))


def rehearse_search(plan: CudaPlan, query_dtype: str, *, self_join: bool, prepared: Searchable | None = None) -> None:
    """Prepare points by a plan and search them, once in each way that sizes alone decide.

    Parameters
    ----------
    plan : CudaPlan
        One that can be rehearsed.
    query_dtype : str
    self_join : bool
    prepared : Searchable, optional
        Points that have been prepared on a single device, whose contraction is known.
    """
    n, m = _shares(plan)
    if plan.copies_first and prepared is None:
        runs_of_copies(_rows(n, plan.d, plan.dtype))
    slabs = [(points, rows) for points in _lengths(n, plan.point_slab) for rows in _lengths(m, plan.query_slab)]
    merged = (n, m) != slabs[0] or n != plan.n
    for points, rows in slabs:
        part = plan_for_part(plan, points, rows, plan.devices[0])
        held = _prepared(_rows(points, plan.d, plan.dtype), part) if prepared is None else prepared.without_data()
        if self_join and rows == points:  # without copies, there are fewer of both
            rows, queries = len(held.points), held.points
        else:
            queries = _rows(rows, plan.d, query_dtype)
        begun = held.begin(queries, part)
        found = _search(begun, rows, self_join)
        if merged:
            best = no_lists(rows, plan.k, plan.n, plan.metric, double=begun.double, device="meta")
            merge_into(best, found, 0, plan.metric, "meta")


def _shares(plan: CudaPlan) -> tuple[int, int]:
    """Return the most points and queries of a device."""
    devices = len(plan.devices)
    return (plan.n, share(plan.m, devices)) if plan.shard == "queries" else (share(plan.n, devices), plan.m)


def _lengths(count: int, slab: int) -> list[int]:
    """Return the lengths of slabs, each once."""
    return list(dict.fromkeys(part.stop - part.start for part in cut(count, slab)))


def _prepared(points: Any, plan: CudaPlan) -> Searchable:
    """Return prepared points, with a contraction if its number of coordinates is known beforehand."""
    full = DevicePoints(points, plan.metric, plan.precisions[0])
    if plan.form_dim == "full":
        return full
    form = full.form
    _, origin = sampled(points, form)
    if plan.form_dim == PILOT:
        next(form_blocks(points, form, origin))
        return full
    directions = torch.empty((plan.d, int(plan.form_dim) - 1), dtype=torch.float64, device=points.device)
    made = ContractedPoints(points, form, Contraction(form, directions, origin, torch.empty_like(origin[:1])))
    made.copies.packed(plan.precisions[0])
    return made


def _search(begun: Search, m: int, self_join: bool) -> Neighbors:
    """Search each kind of batch once; return what the first batch found."""
    own = Place(self_join=self_join).own(m, "meta")
    if m >= begun.least_fitted:
        begun.pilot(own)
    if own is not None:
        begun.begin_mirror()
    found = []
    for rows in to_visit(cut(m, begun.query_batch), torch.device("meta")):
        ids = None if own is None else own[rows]
        found.append(begun.first_batch(begun.queries[rows], ids, rows.start)[0])
    return found[0]


def _rows(count: int, d: int, dtype: str) -> Any:
    return torch.empty((count, d), dtype=getattr(torch, dtype), device="meta")
