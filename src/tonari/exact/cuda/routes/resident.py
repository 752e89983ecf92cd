"""The route for points and queries that are on one device."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from tonari.core.process.progress import Counter, ProgressLike
from tonari.core.results.neighbors import Neighbors
from tonari.core.trail import current, decided
from tonari.cuda.devices import to_device
from tonari.exact.cuda.attempts.contracted import prepare_points
from tonari.exact.cuda.attempts.first import Searchable, nothing
from tonari.exact.cuda.attempts.ladder import begin_on_device, search_on_device
from tonari.exact.cuda.attempts.retries.attempt import Begun
from tonari.exact.cuda.plan import CudaPlan
from tonari.exact.cuda.routes.partition import search_whole
from tonari.exact.cuda.rows.copies import FirstCopies, Subset, first_copies
from tonari.exact.cuda.rows.part import Place, plan_for_part
from tonari.exact.report import Report

COPIES = "copies"  # name, in reports, for duplicate rows, which need no search


class PreparedOnce:
    """Points prepared on one GPU for a single search, without the duplicate rows that no answer can contain.

    Parameters
    ----------
    points : tensor of shape (n, d)
        All points.
    copies : FirstCopies
        The first k + 1 copies of each row, which are the points that are searched.
    queries : tensor, or array in host memory
        The queries; for a graph, the points.
    plan : CudaPlan
    """

    def __init__(self, points: Any, copies: FirstCopies, queries: Any, plan: CudaPlan) -> None:
        self.points, self.first, self.alike = points, Subset(points, copies.kept), copies.alike
        first = self.first
        decided("copies", f"{len(first.kept):,} of {len(points):,} points are searched: no answer holds a later copy")
        self.plan = plan_for_part(plan, len(first.kept), plan.m, plan.devices[0])
        only = first.rows if queries is points else queries
        self.searched: Searchable = prepare_points(first.rows, self.plan, only=only)

    def without_data(self) -> Searchable:
        return self.searched.without_data()

    def search(self, queries: Any, place: Place, bar: Counter) -> tuple[Neighbors, Report]:
        """Search among the points except duplicates that no answer needs; return row numbers among all points."""
        graph = place.self_join and queries is self.points
        if graph:  # a row left out has the same answer as the last kept row that equals it
            queries, own = self.searched.points, place.own(len(self.first.kept), queries.device)
        else:
            own = self.first.places(place.own(len(queries), queries.device))
        plan = dataclasses.replace(self.plan, m=len(queries))
        found, report = search_on_device(queries, self.searched, plan, own=own, bar=bar, all_points=self.points)
        if graph:
            left_out, record = len(self.points) - len(queries), current.get()
            report.certify(COPIES, left_out)
            if record is not None:
                record.tried("copies, which have the answers of first ones", left_out, left_out)
            report.rows = len(self.points)
            found = Neighbors(*(part[self.alike] for part in found))
        bar.add(report.rows * len(self.points) - len(queries) * len(self.first.kept))
        return self.first.of_all(found), report


def prepare_resident(points: Any, plan: CudaPlan, progress: ProgressLike = None) -> Searchable:
    """Prepare points on the plan's device; the host waits for the device only if it contracts the points."""
    return prepare_points(to_device(points, plan.devices[0]), plan)


def prepare_resident_once(queries: Any, points: Any, plan: CudaPlan) -> Searchable | PreparedOnce:
    """Prepare points on the plan's device for one search, without the duplicate rows that it cannot return.

    Waits for the device.

    The queries of a graph are the points themselves.
    """
    there = to_device(points, plan.devices[0])
    rows = there if queries is points else queries
    copies = first_copies(there, plan.k + 1) if plan.copies_first else None
    return prepare_points(there, plan, only=rows) if copies is None else PreparedOnce(there, copies, rows, plan)


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
    """Search one part on its device (:mod:`tonari.exact.cuda.routes.partition`)."""
    rows = to_device(queries, plan.devices[0])
    if isinstance(prepared, PreparedOnce):
        return prepared.search(rows, place, bar)
    return begin_part(rows, prepared, plan, place, bar).end()


def begin_part(
    queries: Any,
    prepared: Searchable,
    plan: CudaPlan,
    place: Place,
    bar: Counter,
    after_screen: Callable[[], None] = nothing,
) -> Begun:
    """Launch the first attempt at one part; `after_screen` is called as soon as its screen is launched."""
    own = place.own(len(queries), queries.device)
    return begin_on_device(queries, prepared, plan, own=own, bar=bar, place=place, after_screen=after_screen)
