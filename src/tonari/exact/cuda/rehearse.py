"""Rehearsals of a whole search: what its plan will launch (cuda/rehearsal.py), before anything is launched.

The rows are on the device "meta", and everything is done once that a search does without looking at data: prepare the
points, search the first batch, the last and the pilot rows, merge lists. What depends on data follows as stages of its
own: retries, of a few rows and of a whole batch.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch

from tonari.core.neighbors import Neighbors
from tonari.core.slices import cut
from tonari.cuda.ahead import Stage
from tonari.cuda.rehearsal import to_visit
from tonari.exact.cuda.contracted_search import ContractedPoints
from tonari.exact.cuda.contraction import Contraction, form_blocks, sampled
from tonari.exact.cuda.partition import Place, plan_for_part
from tonari.exact.cuda.plan import CudaPlan, share
from tonari.exact.cuda.search import DevicePoints, Search, Searchable
from tonari.select.cuda.merge import merge_into, no_lists

FEW = 5  # rows: about as many as are not proved at first, if any


def stages_of(plan: CudaPlan, query_dtype: str, *, self_join: bool, prepared: Any = None) -> Sequence[Stage]:
    """Return the rehearsals of a search by a plan: what is needed at once, then retries of few rows, and of many.

    Parameters
    ----------
    plan : CudaPlan
        Of the routes, "host_refine" is not rehearsed, because the CPU does much of it.
    query_dtype : str
    self_join : bool
    prepared : Searchable, optional
        Points that have been prepared on a single device, whose contraction is known.
    """
    if plan.route == "host_refine":
        return []
    by_queries = plan.shard == "queries"
    devices = len(plan.devices)
    n = plan.n if by_queries else share(plan.n, devices)
    m = share(plan.m, devices) if by_queries else plan.m
    begin = functools.partial(_begin, plan, query_dtype, prepared)
    shapes = [(points, rows) for points in _lengths(n, plan.point_slab) for rows in _lengths(m, plan.query_slab)]
    merged = (n, m) != shapes[0] or (devices > 1 and not by_queries)

    def at_once() -> None:
        for points, rows in shapes:
            begun = begin(points, rows)
            found = _search(begun, rows, self_join)
            if merged:
                best = no_lists(rows, plan.k, plan.n, plan.metric, double=begun.double, device="meta")
                merge_into(best, found, 0, plan.metric, "meta")

    def again(few: bool) -> None:
        begun = begin(*shapes[0])
        rows = min(shapes[0][1], FEW if few else plan.query_batch)
        begun.rehearse(rows, Place(self_join=self_join).own(rows, "meta"))

    return [at_once, functools.partial(again, True), functools.partial(again, False)]


def _lengths(count: int, slab: int) -> list[int]:
    """Return the lengths of slabs, each once."""
    return list(dict.fromkeys(part.stop - part.start for part in cut(count, slab)))


def _begin(plan: CudaPlan, query_dtype: str, prepared: Searchable | None, n: int, m: int) -> Search:
    part = plan_for_part(plan, n, m, plan.devices[0])
    points = _prepared(_rows(n, plan.d, plan.dtype), part) if prepared is None else prepared.without_data()
    return points.begin(_rows(m, plan.d, query_dtype), part)


def _prepared(points: Any, plan: CudaPlan) -> Searchable:
    """Return prepared points, with a contraction if its number of coordinates is known beforehand."""
    full = DevicePoints(points, plan.metric, plan.precisions[0])
    if plan.form_dim == "full":
        return full
    form = full.form
    _, origin = sampled(points, form)
    if plan.form_dim is None:
        next(form_blocks(points, form, origin))
        return full
    directions = torch.empty((plan.d, int(plan.form_dim) - 1), dtype=torch.float64, device=points.device)
    made = ContractedPoints(points, form, Contraction(form, directions, origin, torch.empty_like(origin[:1])))
    made.packed(plan.precisions[0])
    return made


def _search(begun: Search, m: int, self_join: bool) -> Neighbors:
    """Search each kind of batch once; return what the first batch found."""
    own = Place(self_join=self_join).own(m, "meta")
    if m >= begun.least_fitted:
        begun.pilot(own)
    precision, sample = begun.plan.precisions[0], begun.sample
    found = []
    for rows in to_visit(cut(m, begun.plan.query_batch), torch.device("meta")):
        ids = None if own is None else own[rows]
        found.append(begun.batch(begun.queries[rows], ids, precision, begun.width, sample, rows.start)[0])
    return found[0]


def _rows(count: int, d: int, dtype: str) -> Any:
    return torch.empty((count, d), dtype=getattr(torch, dtype), device="meta")
