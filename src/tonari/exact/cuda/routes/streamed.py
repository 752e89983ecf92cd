"""The route for streamed points: each slab of points is searched on its own, and the lists are merged.

    for slab of queries:
        for slab of points, back and forth:      the next slab is copied at the same time (cuda/copying/prefetch.py)
            pack, search                         attempts/ladder.py
            merge                                by (value, row number), so that the order of the slabs does not matter

Points are in host memory, in a mapped file, or on the device if there is no room for their packed copy.
"""

from __future__ import annotations

import contextlib
import time
from typing import Any

import numpy as np
import torch

from tonari import inputs
from tonari.core import trail
from tonari.core.process.progress import Counter, ProgressLike
from tonari.core.results.neighbors import Neighbors
from tonari.core.rows.slices import cut
from tonari.cuda.copying.prefetch import slabs
from tonari.cuda.devices import to_device
from tonari.exact.cuda.attempts.first import DevicePoints
from tonari.exact.cuda.attempts.ladder import search_on_device
from tonari.exact.cuda.plan import CudaPlan
from tonari.exact.cuda.routes.partition import search_whole
from tonari.exact.cuda.rows.part import Place, plan_for_part
from tonari.exact.report import Report
from tonari.select.cuda.ordering.merge import merge_into, no_lists


def prepare_streamed(points: Any, plan: CudaPlan, progress: ProgressLike = None) -> Any:
    """Return the points unchanged, because a streamed search keeps nothing on the device."""
    return points


def search_streamed(
    queries: Any, prepared: Any, plan: CudaPlan, *, self_join: bool = False, progress: ProgressLike = None
) -> tuple[Neighbors, Report]:
    """Search streamed points; see :mod:`tonari.exact.cuda.dispatch`."""
    return search_whole(search_part, queries, prepared, plan, self_join, progress)


def search_part(queries: Any, points: Any, plan: CudaPlan, place: Place, bar: Counter) -> tuple[Neighbors, Report]:
    """Search one part, slab by slab (:mod:`tonari.exact.cuda.routes.partition`)."""
    device = torch.device(plan.devices[0])
    tops, bounds = cut(len(queries), plan.query_slab), cut(len(points), plan.point_slab)
    passes = [bounds[::-1] if at % 2 else bounds for at in range(len(tops))]
    visits = [here for order in passes for here in order]
    # A pass begins with the slab that ended the previous pass, which is still on the device and is not loaded again.
    loads = [here for at, here in enumerate(visits) if at == 0 or here != visits[at - 1]]
    double = "float64" in (inputs.name_of_dtype(queries), inputs.name_of_dtype(points))

    def lists(rows: int, device: Any) -> Neighbors:
        return no_lists(rows, plan.k, len(points), plan.metric, double=double, device=device)

    report, started = Report(rows=len(queries)), time.perf_counter()
    whole = None if len(tops) == 1 else lists(len(queries), "cpu" if isinstance(queries, np.ndarray) else device)
    with contextlib.closing(slabs(points, loads, device)) as arriving:
        prepared, held = None, None
        for rows, order in zip(tops, passes, strict=True):
            part = to_device(queries[rows], device)
            best = lists(len(part), device)
            for here in order:
                if here != held:
                    prepared = None  # free the packed copies of this slab before the next slab is packed
                    prepared, held = DevicePoints(next(arriving), plan.metric, plan.precisions[0]), here
                at = place.at(here.start, rows.start)
                with trail.part("each slab of points", len(part)):
                    report.include(_visit(part, prepared, plan, at, here.start, best, bar))
            if whole is not None:
                whole.distances[rows], whole.indices[rows] = best
                del part, best  # free these lists before those of the next slab are allocated
    record = trail.current.get()
    if record is not None:
        name = f"lists of {len(bounds)} slab{'s' if len(bounds) > 1 else ''} of points, merged"
        record.tried(name, len(queries), len(queries), time.perf_counter() - started)
    return best if whole is None else whole, report


def _visit(
    queries: Any, prepared: Any, plan: CudaPlan, place: Place, first: int, best: Neighbors, bar: Counter
) -> Report:
    """Search a slab of points, which begins at row `first`, for a slab of queries, and merge the lists."""
    m, n, device = len(queries), len(prepared.points), plan.devices[0]
    part, own = plan_for_part(plan, n, m, device), place.own(m, device)
    found, report = search_on_device(queries, prepared, part, own=own, bar=bar, place=place)
    merge_into(best, found, first, plan.metric, device)
    return report
