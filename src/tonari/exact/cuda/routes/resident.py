"""The route on which points and queries are on one device."""

from __future__ import annotations

from typing import Any

from tonari.core.neighbors import Neighbors
from tonari.core.progress import Counter, ProgressLike
from tonari.cuda.devices import to_device
from tonari.exact.cuda.attempts.contracted import prepare_points
from tonari.exact.cuda.attempts.first import Searchable
from tonari.exact.cuda.attempts.ladder import search_on_device
from tonari.exact.cuda.attempts.without_copies import PreparedOnce, prepare_once
from tonari.exact.cuda.plan import CudaPlan
from tonari.exact.cuda.routes.partition import search_whole
from tonari.exact.cuda.rows.part import Place
from tonari.exact.report import Report


def prepare_resident(points: Any, plan: CudaPlan, progress: ProgressLike = None) -> Searchable:
    """Pack points on the plan's device at the first precision; waits for the device only to contract them."""
    return prepare_points(to_device(points, plan.devices[0]), plan)


def prepare_resident_once(queries: Any, points: Any, plan: CudaPlan) -> Searchable | PreparedOnce:
    """Prepare points on the plan's device for one search, without copies that it cannot find; waits for the device.

    The queries of a graph are the points themselves.
    """
    there = to_device(points, plan.devices[0])
    return prepare_once(there if queries is points else queries, there, plan)


def search_resident(
    queries: Any,
    prepared: Searchable | PreparedOnce,
    plan: CudaPlan,
    *,
    self_join: bool = False,
    progress: ProgressLike = None,
) -> tuple[Neighbors, Report]:
    """Search prepared points; see :mod:`tonari.exact.cuda.dispatch`."""
    return search_whole(search_part, prepared.points if self_join else queries, prepared, plan, self_join, progress)


def search_part(
    queries: Any, prepared: Searchable | PreparedOnce, plan: CudaPlan, place: Place, bar: Counter
) -> tuple[Neighbors, Report]:
    """See :mod:`tonari.exact.cuda.routes.partition`."""
    rows = to_device(queries, plan.devices[0])
    if isinstance(prepared, PreparedOnce):
        return prepared.search(rows, place, bar)
    return search_on_device(
        rows,
        prepared,
        plan,
        own=place.own(len(rows), rows.device),
        bar=bar,
        first_point=place.first_point,
        first_query=place.first_query,
    )
