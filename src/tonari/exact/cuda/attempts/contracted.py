"""Exact search that screens contracted rows (rows/contraction.py) and refines the original ones.

for batch of queries:
    look       screens/contracted.py: some points that are near in p coordinates
    refine     these, by their original rows               -> the k-th value V
    within     screens/contracted.py: everything that may be no worse than V
    refine     this, by its original rows                  -> the k best, which nothing else can be among

Rows that are not proved are retried: if they are few, with all minima and more room; then with the last precision,
whose bounds are far closer, at last with room for nearly all groups; and then they are searched like points without a
contraction.
"""

from __future__ import annotations

import functools
from typing import Any

from tonari.core.neighbors import Neighbors
from tonari.core.slices import cut
from tonari.core.trail import decided
from tonari.costs.model import brute_pair_seconds
from tonari.cuda.rehearsal import joined, without_data
from tonari.cuda.streams import Written
from tonari.exact.cuda.attempts.as_bytes import BytePoints, byte_points
from tonari.exact.cuda.attempts.first import Again, DevicePoints, Level, Search, nothing
from tonari.exact.cuda.plan import PILOT, CudaPlan
from tonari.exact.cuda.refine.groups import refine_groups
from tonari.exact.cuda.rows.contraction import ContractedRows, Contraction, contract, contraction_of
from tonari.exact.cuda.rows.form import DeviceForm, make_form
from tonari.exact.cuda.rows.form_dim import choose_contraction, is_pilot_due
from tonari.exact.cuda.rows.pack import LARGEST_FLOAT16, PackedQueries, new_flags
from tonari.exact.cuda.rows.prepared import PackedCopies
from tonari.exact.cuda.screens.contracted import FITTED_ROWS, HOPELESS, ContractedScreen, retried_at_once, retries
from tonari.exact.cuda.screens.sampling import Sample
from tonari.exact.cuda.screens.widths import WIDER, Fitted

LONG_AGAIN = 1000.0  # times as long as the least groups of a row take


class ContractedPoints:
    """Points on one GPU, and their contracted rows; see :class:`tonari.exact.cuda.rows.prepared.Contracted`.

    Parameters
    ----------
    points : tensor of shape (n, d), checked
    form : DeviceForm
    by : Contraction
    full : DevicePoints, optional
        The points with packed copies in all dimensions. Default: made when they are needed.

    Attributes
    ----------
    fitted : dict of int to Fitted
        Results of earlier searches, by k.
    """

    def __init__(self, points: Any, form: DeviceForm, by: Contraction, full: DevicePoints | None = None) -> None:
        self.points, self.form, self.by = points, form, by
        self.flags = new_flags(points.device)
        self.rows: ContractedRows = contract(points, by, self.flags)
        self.farthest = self.rows.errors.amax()[None]
        self.fitted: dict[int, Fitted] = {}
        self._full = full
        self.copies = PackedCopies(self.rows.values, self.by.screened, new_flags(points.device))
        tensors = (form.centre, form.scale, by.directions, by.origin, by.stretch, self.farthest)
        self.written = Written(points, *tensors, self.flags, self.rows.values, self.rows.errors)

    def is_usable(self) -> bool:
        """Whether every row has a contraction that can be packed; waits for the device."""
        if self.points.device.type == "meta":
            return True
        least, greatest = self.rows.values.aminmax()
        return max(-float(least), float(greatest)) <= LARGEST_FLOAT16

    def begin(self, queries: Any, plan: CudaPlan) -> Search:
        """Return the search of some queries, in all dimensions if earlier ones proved few rows in fewer."""
        if plan.k in self.fitted and self.fitted[plan.k].unproved > HOPELESS:
            decided("columns", f"all {plan.d}: few of the first rows were proved in {self.by.p}")
            return self.in_all_dimensions(plan).begin(queries, plan)
        return ContractedSearch(queries, self, plan)

    def without_data(self) -> ContractedPoints:
        """Return the stand-in for these points in a rehearsal, on the device "meta"."""
        form = self.form.without_data()
        tensors = {name: without_data(getattr(self.by, name)) for name in ("directions", "origin", "stretch")}
        twin = ContractedPoints(without_data(self.points), form, Contraction(form, **tensors))
        twin.fitted = dict(self.fitted)
        return twin

    def in_all_dimensions(self, plan: CudaPlan) -> DevicePoints:
        """Return the points with packed copies in all dimensions, which are kept from then on."""
        self._full = self._full or DevicePoints(self.points, plan.metric, plan.precisions[0])
        return self._full


def prepare_points(points: Any, plan: CudaPlan, *, only: Any = None) -> DevicePoints | ContractedPoints:
    """Prepare points as the plan says; without a contraction if none is worth it, or if a row has none.

    `only` are the queries, a tensor or an array in host memory, if it is for a single search.
    """
    whole = byte_points(only, points, plan) if only is not None and plan.bytes_first else None
    if only is not None and plan.bytes_first:
        kind = "int8: all elements are" if whole is not None else f"{plan.precisions[0]}: not all elements are"
        decided("bytes", f"the screen begins in {kind} integers of one byte")
    made = None if plan.form_dim == "full" else contracted_points(points, plan, beside=whole)
    return made or whole or DevicePoints(points, plan.metric, plan.precisions[0])


def contracted_points(points: Any, plan: CudaPlan, *, beside: DevicePoints | None = None) -> ContractedPoints | None:
    """Prepare contracted points as the plan says; None if no contraction is worth it, or if a row has none.

    `beside` are the points in all dimensions, if they are kept, and what a contraction has to be faster than.
    """
    columns = plan.d
    if isinstance(beside, BytePoints):
        columns = -(-plan.d // 2)  # of float16, which take as long
        if plan.form_dim == PILOT and not is_pilot_due(plan.m * plan.n * brute_pair_seconds(columns)):
            return None
    form = make_form(points, plan.metric)
    if plan.form_dim == PILOT:
        by = choose_contraction(points, form, plan.k, plan.m, columns)
        if by is None:
            decided("columns", f"all {plan.d}: by some rows, no contraction takes clearly less time")
    else:
        by = contraction_of(points, form, int(plan.form_dim))
    made = None if by is None else ContractedPoints(points, form, by, beside)
    if made is None:
        return None
    if not made.is_usable():
        decided("columns", f"all {plan.d}: a row has no contraction")
        return None
    decided("columns", f"{made.by.p} of {plan.d}{', chosen by some rows' if plan.form_dim == PILOT else ''}")
    made.copies.packed(plan.precisions[0])
    return made


class ContractedSearch(Search):
    """The state that all batches of a search of contracted points share."""

    prepared: ContractedPoints

    def __init__(self, queries: Any, prepared: ContractedPoints, plan: CudaPlan) -> None:
        super().__init__(queries, prepared, plan)
        self.least_width = plan.contracted_width
        self.width, self.unproved = prepared.fitted.get(plan.k, Fitted(self.least_width, 0.0))
        self.contracted = ContractedScreen(prepared, plan, self.flags, double=self.double)
        self._rest: Search | None = None  # in all dimensions

    @property
    def query_batch(self) -> int:
        """The queries of a batch."""
        return self.contracted.chooser.query_batch

    def first_attempt(self) -> None:
        """Return None: searches among some of the points screen all dimensions."""

    @property
    def least_fitted(self) -> int:
        """The least number of queries for which the width is fitted."""
        return self.plan.m + 1 if self.plan.k in self.prepared.fitted else FITTED_ROWS

    @property
    def again_cost(self) -> float:
        """Much: groups that hold no candidate cost little here, and short searches wait for each that is left."""
        return LONG_AGAIN

    def fit_width(self, own: Any) -> Search:
        """Double the width until nearly all of the first rows are proved, and keep it for later searches.

        If few of them are, this and later searches screen all dimensions.
        """
        super().fit_width(own)
        self.prepared.fitted[self.plan.k] = Fitted(self.width, self.unproved)
        return self.prepared.begin(self.queries, self.plan)

    def batch(
        self, queries: Any, own: Any, precision: str, width: int, sample: Sample | None, first: int | None = None
    ) -> tuple[Neighbors, Any]:
        """Search some rows once; see :meth:`tonari.exact.cuda.attempts.first.Search.batch`."""
        import torch

        known = None
        if self.is_graph and first is not None:
            known = self.prepared.rows.part(slice(first, first + len(queries)))
        look = self.contracted.look(queries, own, precision, width, sample, first=first, known=known)
        some = self._refine(queries, look.nearest)
        members, proved = self.contracted.within(look, some.distances[:, -1], own, width)
        del look  # all minima
        return self._refine(queries, members.numbers), proved.to(torch.uint8)

    def begin_mirror(self) -> None:
        """Compare rows and points once for both from now on, if these are the same and it pays."""
        if self.is_graph:
            self.contracted.chooser.begin_mirror(self.width, self.plan.precisions[0], self._pack_own)

    def _pack_own(self, rows: slice) -> PackedQueries:
        """Pack some of the points as queries, which are contracted already."""
        return self.contracted.packed(self.prepared.rows.part(rows), self.plan.precisions[0])

    def again(self, precision: str, width: int) -> Again:
        """Return a search of some rows with all minima, as many at a time as the scratch memory has room for."""
        search = super().again(precision, width)
        rows = retried_at_once(width)

        def search_again(queries: Any, own: Any) -> tuple[Neighbors, Any]:
            parts = [search(queries[here], None if own is None else own[here]) for here in cut(len(queries), rows)]
            lists, proved = zip(*parts, strict=True)
            return Neighbors(*map(joined, zip(*lists, strict=True))), joined(proved)

        return search_again

    def level(self, precision: str) -> str:
        """Return what reports call a precision of this search, such as "float16 in 64 dimensions"."""
        return self.contracted.level(precision)

    def levels(self) -> list[Level]:
        """Return the levels of contracted rows, then the levels of rows in all dimensions."""
        first, last = self.plan.precisions[0], self.plan.precisions[-2]
        found = [
            Level(self.level(precision), functools.partial(self.again, precision, times * self.width), nothing)
            for precision, times in retries(self.plan, self.unproved)
        ]
        if last != first:
            found[-1] = found[-1]._replace(end=functools.partial(self.prepared.copies.forget, last))
        for precision in self.plan.precisions[:-1]:
            begin, end = functools.partial(self._begin_rest, precision), functools.partial(self._end_rest, precision)
            found.append(Level(precision, begin, end))
        return found

    def _begin_rest(self, precision: str) -> Again:
        """Return a search in all dimensions, whose points are packed for the first of them."""
        if self._rest is None:
            full = DevicePoints(self.prepared.points, self.plan.metric, self.plan.precisions[0])
            self._rest = Search(self.queries, full, self.plan)
        return self._rest.again(precision, WIDER * self.plan.width)

    def _end_rest(self, precision: str) -> None:
        if self._rest is not None:
            self._rest.prepared.copies.forget(precision)

    def _refine(self, queries: Any, points: Any) -> Neighbors:
        """Return the k best of some points of each row, -1 where there is none."""
        plan = self.plan
        rows = self.prepared.points
        return Neighbors(*refine_groups(queries, rows, points, plan.k, metric=plan.metric, group=1, double=self.double))
