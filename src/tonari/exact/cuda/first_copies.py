"""Points that are prepared for one long search, without the copies of rows that it cannot find (copies.py)."""

from __future__ import annotations

import dataclasses
from typing import Any

from tonari.core.neighbors import Neighbors
from tonari.core.progress import Counter
from tonari.exact.cuda.batches import Searchable
from tonari.exact.cuda.contracted_search import prepare_points
from tonari.exact.cuda.copies import Subset, numbers_of_first_copies
from tonari.exact.cuda.partition import Place, plan_for_part
from tonari.exact.cuda.plan import CudaPlan
from tonari.exact.cuda.search import search_on_device
from tonari.exact.report import Report


class PreparedOnce:
    """Prepared points on one GPU of which copies are left out; they serve searches of one k.

    Parameters
    ----------
    points : tensor of shape (n, d)
        All of them.
    first : Subset
        Those that are searched.
    plan : CudaPlan
    """

    def __init__(self, points: Any, first: Subset, plan: CudaPlan) -> None:
        self.points, self.first = points, first
        self.plan = plan_for_part(plan, len(first.kept), plan.m, plan.devices[0])
        self.searched: Searchable = prepare_points(first.rows, self.plan)

    def without_data(self) -> Searchable:
        """Return what stands for the points that are searched in a rehearsal, on the device "meta"."""
        return self.searched.without_data()

    def search(self, queries: Any, place: Place, bar: Counter) -> tuple[Neighbors, Report]:
        """Search the points that are kept for checked queries."""
        own = self.first.places(place.own(len(queries), queries.device))
        if queries is self.points and own is not None:
            found, report = self._search_graph(own, bar)
        else:
            found, report = self._search_some(queries, own, bar)
        bar.add(len(queries) * (len(self.points) - len(self.first.kept)))
        return self.first.of_all(found), report

    def _search_some(self, queries: Any, own: Any, bar: Counter) -> tuple[Neighbors, Report]:
        plan = dataclasses.replace(self.plan, m=len(queries))
        return search_on_device(queries, self.searched, plan, own=own, bar=bar, all_points=self.points)

    def _search_graph(self, own: Any, bar: Counter) -> tuple[Neighbors, Report]:
        """Search for all points: those that are kept as a graph of their own, whose rows are its points (mirror.py)."""
        kept, rows = self.first.kept, self.searched.points
        found, report = self._search_some(rows, own[kept], bar)
        others = (own < 0).nonzero()[:, 0]
        rest, of_rest = self._search_some(self.points[others], own[others], bar)
        report.rows = len(own)
        report.include(of_rest)
        both = Neighbors(*(part.new_empty((len(own), part.shape[1])) for part in found))
        for whole, part, more in zip(both, found, rest, strict=True):
            whole[kept], whole[others] = part, more
        return both, report


def prepare_once(points: Any, plan: CudaPlan) -> Searchable | PreparedOnce:
    """Prepare points for one search of the plan's k, without copies that it cannot find; waits for the device."""
    kept = numbers_of_first_copies(points, plan.k + 1)
    return prepare_points(points, plan) if kept is None else PreparedOnce(points, Subset(points, kept), plan)
