"""Exact search that screens contracted rows, of p coordinates (rows/contraction.py), and refines the original rows.

for batch of queries:
    look       screens/contracted.py: find a few points that are near in p coordinates
    refine     these points, by their original rows        -> the k-th value V
    within     screens/contracted.py: find all points whose lower bound is at most V
    refine     these points, by their original rows        -> the k best of all points

Rows whose answers this search does not certify as exact (unproved rows) are searched again. If they are few, the first
retry screens them with the minima of all groups and longer lists. The next retries use the last precision, whose bounds
are much tighter, and finally have room for nearly all groups. The last retry compares all dimensions.
"""

from __future__ import annotations

import functools
from typing import Any

from tonari.core.results.neighbors import Neighbors
from tonari.core.rows.slices import cut
from tonari.core.trail import decided
from tonari.costs.model import brute_pair_seconds
from tonari.cuda.compiling.rehearsal import joined, without_data
from tonari.cuda.streams import Written
from tonari.exact.cuda import tuning
from tonari.exact.cuda.attempts.as_bytes import BytePoints, byte_points
from tonari.exact.cuda.attempts.first import DevicePoints, Search, nothing
from tonari.exact.cuda.attempts.level import Again, Level
from tonari.exact.cuda.plan import PILOT, CudaPlan
from tonari.exact.cuda.refine.groups import refine_groups
from tonari.exact.cuda.rows.contraction import ContractedRows, Contraction, contract, contraction_of
from tonari.exact.cuda.rows.form import DeviceForm, make_form
from tonari.exact.cuda.rows.form_dim import choose_contraction, is_pilot_due
from tonari.exact.cuda.rows.pack import LARGEST_FLOAT16, PackedQueries, new_flags
from tonari.exact.cuda.rows.prepared import PackedCopies
from tonari.exact.cuda.screens.contracted import ContractedScreen, retried_at_once, retries
from tonari.exact.cuda.screens.sampling import Sample
from tonari.exact.cuda.screens.widths import Fitted


class ContractedPoints:
    """Points on one GPU with contracted rows (projections to p coordinates), which the screen compares.

    See :class:`tonari.exact.cuda.rows.prepared.Contracted`.

    Parameters
    ----------
    points : tensor of shape (n, d), checked
    form : DeviceForm
    by : Contraction
    full : DevicePoints, optional
        The points with packed copies in all dimensions. Default: packed at the first use.

    Attributes
    ----------
    fitted : dict of int to Fitted
        By k, the number of groups to refine per row that an earlier search fitted to its first rows.
    """

    def __init__(self, points: Any, form: DeviceForm, by: Contraction, full: DevicePoints | None = None) -> None:
        self.points, self.form, self.by = points, form, by
        self.flags = new_flags(points.device)
        self.rows: ContractedRows = contract(points, by, self.flags)
        errors = self.rows.errors
        # A rehearsal avoids torch's amax, because its first use imports modules for a long time.
        self.farthest = errors[:1] if errors.device.type == "meta" else errors.amax()[None]
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
        """Return a search for these queries, which screens contracted rows or all dimensions.

        It screens all dimensions if earlier searches of the contracted rows could certify only a few answers as exact.
        """
        if plan.k in self.fitted and self.fitted[plan.k].unproved > tuning.HOPELESS:
            decided("columns", f"all {plan.d}: few of the first rows were proved in {self.by.p}")
            return self.in_all_dimensions(plan).begin(queries, plan)
        return ContractedSearch(queries, self, plan)

    def without_data(self) -> ContractedPoints:
        form = self.form.without_data()
        tensors = {name: without_data(getattr(self.by, name)) for name in ("directions", "origin", "stretch")}
        twin = ContractedPoints(without_data(self.points), form, Contraction(form, **tensors))
        twin.fitted = dict(self.fitted)
        return twin

    def in_all_dimensions(self, plan: CudaPlan) -> DevicePoints:
        """Return the points with packed copies in all dimensions; they are made once and kept for later calls."""
        self._full = self._full or DevicePoints(self.points, plan.metric, plan.precisions[0])
        return self._full


def prepare_points(points: Any, plan: CudaPlan, *, only: Any = None) -> DevicePoints | ContractedPoints:
    """Prepare points by the plan: contracted, unless that is not worth its time or a row cannot be contracted.

    `only` has the queries, a tensor or an array in host memory, if the points are prepared for a single search.
    """
    whole = byte_points(only, points, plan) if only is not None and plan.bytes_first else None
    if only is not None and plan.bytes_first:
        kind = "int8: all elements are" if whole is not None else f"{plan.precisions[0]}: not all elements are"
        decided("bytes", f"the screen begins in {kind} integers of one byte")
    contracted = None if plan.form_dim == "full" else contracted_points(points, plan, beside=whole)
    return contracted or whole or DevicePoints(points, plan.metric, plan.precisions[0])


def contracted_points(points: Any, plan: CudaPlan, *, beside: DevicePoints | None = None) -> ContractedPoints | None:
    """Prepare contracted points (projections to p coordinates) by the plan; None if that is impossible or not faster.

    A contraction is impossible if a row has values that cannot be contracted. `beside`, if it is not None, has the
    points in all dimensions, which stay in memory; the contraction must then be faster than a search of `beside`.
    """
    columns = plan.d
    if isinstance(beside, BytePoints):
        columns = -(-plan.d // 2)  # number of float16 columns that take as long as d columns of int8
        if plan.form_dim == PILOT and not is_pilot_due(plan.m * plan.n * brute_pair_seconds(columns)):
            return None
    form = make_form(points, plan.metric)
    if plan.form_dim == PILOT:
        by = choose_contraction(points, form, plan.k, plan.m, columns)
        if by is None:
            decided("columns", f"all {plan.d}: by some rows, no contraction takes clearly less time")
    else:
        by = contraction_of(points, form, int(plan.form_dim))
    contracted = None if by is None else ContractedPoints(points, form, by, beside)
    if contracted is None:
        return None
    if not contracted.is_usable():
        decided("columns", f"all {plan.d}: a row has no contraction")
        return None
    decided("columns", f"{contracted.by.p} of {plan.d}{', chosen by some rows' if plan.form_dim == PILOT else ''}")
    contracted.copies.packed(plan.precisions[0])
    return contracted


class ContractedSearch(Search):
    """The state of a search that screens contracted points; all its batches share it."""

    prepared: ContractedPoints

    def __init__(self, queries: Any, prepared: ContractedPoints, plan: CudaPlan) -> None:
        super().__init__(queries, prepared, plan)
        self.least_width = plan.contracted_width
        self.width, self.unproved = prepared.fitted.get(plan.k, Fitted(self.least_width, 0.0))
        self.contracted = ContractedScreen(prepared, plan, self.flags, double=self.double)
        self._rest: Search | None = None  # the search in all dimensions, once it is needed

    @property
    def query_batch(self) -> int:
        """The number of queries in a batch."""
        return self.contracted.screener.query_batch

    def first_attempt(self) -> None:
        """Return None: searches among subsets of the points compare all dimensions, for which no sample exists."""

    @property
    def least_fitted(self) -> int:
        return self.plan.m + 1 if self.plan.k in self.prepared.fitted else tuning.FITTED_ROWS

    @property
    def again_cost(self) -> float:
        """The time to search a row again, relative to the time to refine its groups once.

        The cost is high because refining a group without a candidate is cheap here, and because a short search has to
        wait for each row that is not certified as exact at first.
        """
        return tuning.CONTRACTED_AGAIN

    def fit_width(self, own: Any) -> Search:
        """Double the width (groups refined per row) until nearly all of the first rows are certified as exact.

        The width is kept for later searches. If few rows can be certified even with the largest width, this search and
        all later ones compare all dimensions.
        """
        super().fit_width(own)
        self.prepared.fitted[self.plan.k] = Fitted(self.width, self.unproved)
        return self.prepared.begin(self.queries, self.plan)

    def batch(
        self, queries: Any, own: Any, precision: str, width: int, sample: Sample | None, first: int | None = None
    ) -> tuple[Neighbors, Any]:
        """Search a batch of rows once; see :meth:`tonari.exact.cuda.attempts.first.Search.batch`."""
        import torch

        known = None
        if self.is_graph and first is not None:
            known = self.prepared.rows.part(slice(first, first + len(queries)))
        look = self.contracted.look(queries, own, precision, width, sample, first=first, known=known)
        some = self._refine(queries, look.nearest)
        members, proved = self.contracted.within(look, some.distances[:, -1], own, width)
        del look  # free the minima of all groups
        return self._refine(queries, members.numbers), proved.to(torch.uint8)

    def begin_mirror(self) -> None:
        if self.is_graph:
            self.contracted.screener.begin_mirror(self.width, self.plan.precisions[0], self._pack_own)

    def _pack_own(self, rows: slice) -> PackedQueries:
        """Pack some of the contracted points as queries of a graph."""
        return self.contracted.packed(self.prepared.rows.part(rows), self.plan.precisions[0])

    def again(self, precision: str, width: int) -> Again:
        """Return a function that searches rows again without thresholds, in batches whose minima fit into memory."""
        search = super().again(precision, width)
        rows = retried_at_once(width)

        def search_again(queries: Any, own: Any) -> tuple[Neighbors, Any]:
            parts = [search(queries[here], None if own is None else own[here]) for here in cut(len(queries), rows)]
            lists, proved = zip(*parts, strict=True)
            return Neighbors(*map(joined, zip(*lists, strict=True))), joined(proved)

        return search_again

    def level(self, precision: str) -> str:
        """Return the name of a precision in reports, such as "float16 in 64 dimensions"."""
        return self.contracted.level(precision)

    def levels(self) -> list[Level]:
        """Return the levels (retries) that screen p coordinates, then the levels that screen all dimensions."""
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
        """Return a function that searches rows in all dimensions; the first call packs the points in all dimensions."""
        if self._rest is None:
            full = DevicePoints(self.prepared.points, self.plan.metric, self.plan.precisions[0])
            self._rest = Search(self.queries, full, self.plan)
        return self._rest.again(precision, tuning.WIDER * self.plan.width)

    def _end_rest(self, precision: str) -> None:
        if self._rest is not None:
            self._rest.prepared.copies.forget(precision)

    def _refine(self, queries: Any, points: Any) -> Neighbors:
        """Return the k best of each row's listed points, computing their exact values; missing neighbours are -1."""
        plan = self.plan
        rows = self.prepared.points
        return Neighbors(*refine_groups(queries, rows, points, plan.k, metric=plan.metric, group=1, double=self.double))
