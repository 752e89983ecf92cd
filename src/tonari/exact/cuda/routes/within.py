"""Searches within a radius by every route: on one device or several, with points on the device or streamed in slabs.

    resident       the prepared points
    streamed       one slab of points after another, each searched like a whole search; lists are joined
    host_refine    as streamed, because the CPU does not refine lists of unlimited length
    codes          as streamed
    several        each device has a part of the points or of the queries; lists of parts of the points are joined

The number of points found is not known in advance, so the memory of a plan does not include them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from tonari.core.plan import Plan
from tonari.core.process.progress import Counter, Progress, ProgressLike
from tonari.core.results.neighbors import index_dtype
from tonari.core.results.radius_neighbors import RadiusNeighbors
from tonari.core.rows.slices import cut
from tonari.cuda.copying.prefetch import slabs
from tonari.cuda.device_threads import a_thread_each, side_by_side
from tonari.cuda.devices import to_device
from tonari.exact.cuda.attempts.first import DevicePoints
from tonari.exact.cuda.attempts.within import WithinSearch
from tonari.exact.cuda.plan import CudaPlan
from tonari.exact.cuda.routes.multi_gpu import SpreadPoints, Watched, tops_of
from tonari.exact.cuda.rows.part import Place, plan_for_part
from tonari.metrics import get_metric
from tonari.select.cuda.ordering.ragged import join_parts, moved, one_after_another


class Verb(NamedTuple):
    """A kind of answer to a radius search, lists or counts, and the functions that compute and join such answers.

    Attributes
    ----------
    answer : callable(WithinSearch)
        Answers the queries of one search on one device; ids are row numbers among all points.
    join : callable(list of answers)
        Joins answers of the same queries from parts of the points, all on one device.
    stack : callable(list of answers)
        Concatenates answers of successive blocks of queries, all on one device or in host memory.
    move : callable(answer, device)
    listed : bool
    """

    answer: Callable[[WithinSearch], Any]
    join: Callable[[list[Any]], Any]
    stack: Callable[[list[Any]], Any]
    move: Callable[[Any, Any], Any]
    listed: bool


def finding(plan: Plan) -> Verb:
    """Return the :class:`Verb` that lists points; its answers are RadiusNeighbors of tensors."""
    descending = get_metric(plan.metric).descending
    dtype = torch.int64 if index_dtype(plan.n).itemsize == 8 else torch.int32

    def answer(search: WithinSearch) -> RadiusNeighbors:
        found = one_after_another(search.run())
        first = search.place.first_point
        return found._replace(indices=found.indices.to(dtype) + first) if first else found

    def join(parts: list[RadiusNeighbors]) -> RadiusNeighbors:
        return join_parts([part._replace(indices=part.indices.to(dtype)) for part in parts], descending=descending)

    return Verb(answer, join, one_after_another, moved, listed=True)


def counting() -> Verb:
    """Return the :class:`Verb` that counts points; its answers are int64 tensors."""

    def add(parts: list[Any]) -> Any:
        return torch.stack(parts).sum(0)

    return Verb(lambda search: torch.cat(search.run()), add, torch.cat, lambda part, place: part.to(place), False)


def within(
    queries: Any,
    prepared: Any,
    plan: CudaPlan,
    limits: npt.NDArray[Any],
    verb: Verb,
    place: Place,
    progress: ProgressLike,
) -> Any:
    """Answer a radius search by the plan's route; the result is on the plan's first device or in host memory."""
    m = len(queries)
    with Progress(progress, total=m * plan.n, seconds=plan.seconds * m / plan.m, label="neighbours") as bar:
        if len(plan.devices) > 1:
            return _on_several(queries, prepared, plan, limits, verb, place, bar)
        if place.self_join and plan.route == "resident":
            queries = _own_rows(prepared.points, place.first_query, m)
        return _search_part(queries, prepared, plan, limits, verb, place, bar)


def _own_rows(points: Any, first: int, m: int) -> Any:
    """Return the points [first, first + m); if these are all points, return `points` itself."""
    return points if m == len(points) else points[first : first + m]


def limits_on(limits: npt.NDArray[Any], device: Any) -> Any:
    """Copy the limit of each query to a device, and replace -0.0 by 0.0.

    A limit that is the same for all queries is not copied; the tensor is filled on the device.
    """
    if limits.strides == (0,) and len(limits):
        one = float(limits[0]) + 0.0
        return torch.full(limits.shape, one, dtype=getattr(torch, limits.dtype.name), device=device)
    return torch.from_numpy(limits + 0.0).to(device)


def _search_part(
    queries: Any, prepared: Any, plan: CudaPlan, limits: npt.NDArray[Any], verb: Verb, place: Place, bar: Counter
) -> Any:
    """Answer a radius search on one device, for a part of the points or of the queries."""
    if plan.route == "resident":
        rows = to_device(queries, plan.devices[0])
        return _search_points(rows, prepared.in_all_dimensions(plan), plan, limits, verb, place, bar)
    points = prepared if plan.route == "streamed" else prepared.points
    tops, bounds = cut(len(queries), plan.query_slab), cut(len(points), plan.point_slab)
    device = torch.device(plan.devices[0])
    answers = []
    for top in tops:
        rows, parts = to_device(queries[top], device), []
        with contextlib.closing(slabs(points, bounds, device)) as arriving:
            for here in bounds:
                slab = DevicePoints(next(arriving), plan.metric, plan.precisions[0])
                part = plan_for_part(plan, here.stop - here.start, len(rows), plan.devices[0])
                there = place.at(here.start, top.start)
                parts.append(_search_points(rows, slab, part, limits[top], verb, there, bar))
                del slab  # free the packed copies before the next slab is packed
        answers.append(verb.join(parts))
        if len(tops) > 1 and isinstance(queries, np.ndarray):
            answers[-1] = verb.move(answers[-1], "cpu")
    return verb.stack(answers)


def _search_points(
    rows: Any,
    points: DevicePoints,
    plan: CudaPlan,
    limits: npt.NDArray[Any],
    verb: Verb,
    place: Place,
    bar: Counter,
) -> Any:
    """Answer a radius search for queries among prepared points on the same device."""
    search = WithinSearch(
        rows,
        points,
        plan,
        limits_on(limits, rows.device),
        listed=verb.listed,
        place=place,
        bar=bar,
    )
    return verb.answer(search)


def _on_several(
    queries: Any,
    prepared: SpreadPoints,
    plan: CudaPlan,
    limits: npt.NDArray[Any],
    verb: Verb,
    whole: Place,
    bar: Progress,
) -> Any:
    """Answer a radius search on several devices, each with its own host thread; see routes/multi_gpu.py."""
    m, host = len(queries), isinstance(queries, np.ndarray)
    by_queries = plan.shard == "queries"
    tops = tops_of(plan, prepared, m)
    workers = a_thread_each(plan.devices)
    watched = Watched(bar, workers)

    def answer(at: int) -> Any:
        here, top = prepared.bounds[at], tops[at]
        own = whole.self_join and by_queries
        first, count = whole.first_query + top.start, top.stop - top.start
        rows = _own_rows(prepared.parts[at].points, first, count) if own else queries[top]
        part = plan_for_part(plan, here.stop - here.start, len(rows), plan.devices[at])
        place = whole.at(here.start, top.start)
        return _search_part(rows, prepared.parts[at], part, limits[top], verb, place, watched)

    found = side_by_side(workers, plan.devices, len(tops), answer)
    if by_queries:
        return verb.stack([verb.move(part, "cpu" if host else queries.device) for part in found])
    return verb.join([verb.move(part, plan.devices[0]) for part in found])
