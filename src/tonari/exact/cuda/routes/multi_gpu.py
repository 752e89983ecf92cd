"""The route for several devices: each has an equal part of the points or of the queries, and its own host thread.

    points     every query is compared with every part; lists are merged on the first device
    queries    all points are on each device; lists are concatenated

The plan's route searches each part like a whole search (routes/partition.py).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

from tonari.core import trail
from tonari.core.neighbors import Neighbors, index_dtype
from tonari.core.progress import Counter, Progress, ProgressLike
from tonari.core.slices import cut
from tonari.core.workers import Workers
from tonari.cuda.device_threads import a_thread_each, side_by_side
from tonari.cuda.devices import on, to_device
from tonari.exact.cuda.divisions import share
from tonari.exact.cuda.plan import CudaPlan
from tonari.exact.cuda.routes import host_refine, resident, streamed
from tonari.exact.cuda.routes.partition import SearchPart
from tonari.exact.cuda.rows.part import Place, plan_for_part
from tonari.exact.report import Report
from tonari.select.cuda.merge import merge_into, no_lists


class _Route(NamedTuple):
    prepare: Callable[[Any, CudaPlan], Any]
    search_part: SearchPart


_ROUTES = {
    "resident": _Route(resident.prepare_resident, resident.search_part),
    "streamed": _Route(streamed.prepare_streamed, streamed.search_part),
    "host_refine": _Route(host_refine.prepare_host_refine, host_refine.search_part),
}


class SpreadPoints(NamedTuple):
    """Points prepared on several devices.

    Attributes
    ----------
    bounds : list of slices
        The slice of the points on each device.
    parts : list
        The prepared points of each slice.
    """

    bounds: list[slice]
    parts: list[Any]


def prepare_on_several(points: Any, plan: CudaPlan, progress: ProgressLike = None) -> SpreadPoints:
    """Prepare points on the plan's devices: one part on each, or all of them on each."""
    n = len(points)
    bounds = [slice(0, n)] * len(plan.devices) if plan.shard == "queries" else cut(n, share(n, len(plan.devices)))

    def prepare(at: int) -> Any:
        here = bounds[at]
        part = plan_for_part(plan, here.stop - here.start, plan.m, plan.devices[at])
        return _ROUTES[plan.route].prepare(points[here], part)

    return SpreadPoints(bounds, side_by_side(a_thread_each(plan.devices), plan.devices, len(bounds), prepare))


def search_on_several(
    queries: Any, prepared: SpreadPoints, plan: CudaPlan, *, self_join: bool = False, progress: ProgressLike = None
) -> tuple[Neighbors, Report]:
    """Search points on several devices; see :mod:`tonari.exact.cuda.dispatch`."""
    m, host = len(queries), isinstance(queries, np.ndarray)
    by_queries = plan.shard == "queries"
    tops = cut(m, share(m, len(plan.devices))) if by_queries else [slice(0, m)] * len(prepared.bounds)

    def rows_for(at: int) -> Any:
        if self_join and by_queries:
            return prepared.parts[at].points[tops[at]]
        rows = queries[tops[at]]
        return rows if host else to_device(rows, plan.devices[at])

    # Copies of rows from one device to the others are launched before that device has other work.
    rows = [rows_for(at) for at in range(len(tops))]
    workers = a_thread_each(plan.devices)
    with Progress(progress, total=m * plan.n, seconds=plan.seconds, label="neighbours") as bar:
        watched = Watched(bar, workers)

        def part_of(at: int) -> tuple[Any, Any, CudaPlan, Place, Counter]:
            here, top = prepared.bounds[at], tops[at]
            part = plan_for_part(plan, here.stop - here.start, len(rows[at]), plan.devices[at])
            return rows[at], prepared.parts[at], part, Place(here.start, top.start, self_join), watched

        def search(at: int) -> tuple[Neighbors, Report]:
            return _ROUTES[plan.route].search_part(*part_of(at))

        started, count = time.perf_counter(), len(tops)
        with contextlib.nullcontext() if by_queries else trail.part("the points of each device", count * m):
            if plan.route == "resident" and not host and all(len(part) <= plan.query_batch for part in rows):
                # One batch each: two threads that launch at the same time take turns, and take longer than one.
                launched = [_launched(*part_of(at)) for at in range(count)]
                answers = side_by_side(workers, plan.devices, count, lambda at: launched[at]())
            else:
                answers = side_by_side(workers, plan.devices, count, search)
        record = trail.current.get()
        if record is not None and not by_queries:
            record.tried(f"lists of {count} devices, merged", m, m, time.perf_counter() - started)
    report = Report(rows=m)
    for _, of_part in answers:
        report.include(of_part)
    # Results that the CPU made are NumPy arrays.
    lists = [Neighbors(*(torch.as_tensor(array) for array in found)) for found, _ in answers]
    values = lists[0].distances
    double = values.dtype == torch.float64
    if by_queries:
        where = "cpu" if host else queries.device
        found = no_lists(m, plan.k, plan.n, plan.metric, double=double, device=where)
        for top, part in zip(tops, lists, strict=True):
            found.distances[top], found.indices[top] = part
        return found, report
    if values.shape[1] == plan.k and lists[0].indices.element_size() == index_dtype(plan.n).itemsize:
        found, others = lists[0], range(1, len(lists))  # the first part begins with point 0
    else:
        found, others = no_lists(m, plan.k, plan.n, plan.metric, double=double, device=values.device), range(len(lists))
    for at in others:
        merge_into(found, lists[at], prepared.bounds[at].start, plan.metric, torch.device(plan.devices[0]))
    return found, report


def _launched(
    queries: Any, prepared: Any, plan: CudaPlan, place: Place, bar: Counter
) -> Callable[[], tuple[Neighbors, Report]]:
    """Launch the search of a part on its device; see :func:`tonari.exact.cuda.routes.resident.begin_part`."""
    with on(plan.devices[0]):
        return resident.begin_part(queries, prepared, plan, place, bar)


class Watched:
    """The progress of one of several parts; stops the part if another part has failed or Ctrl-C was pressed."""

    def __init__(self, bar: Progress, workers: Workers) -> None:
        self._bar, self._workers = bar, workers

    def add(self, amount: int) -> None:
        self._workers.check()
        self._bar.add(amount)
