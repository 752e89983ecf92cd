"""Exact search that screens contracted rows (contraction.py) and refines the original ones.

for batch of queries:
    screen     contracted rows, as search.py does packed ones
    limit      of the members of the lowest groups the nearest in p coordinates, by their original rows
               -> the k-th value V, and how far apart contracted rows of an answer no worse than V may be
    near       all groups at or below that limit, and of their members those within it, in p coordinates
    refine     these, by their original rows               -> the k best, which nothing else can be among

The limit holds before the points are refined, as in a search within a radius. A row is proved if everything at or below
its limit was there: in the list of the screen, and in the room for groups and members. Rows that are not proved are
retried: if they are few, with all minima and more room; then with the last precision, whose bounds are far closer, at
last with room for nearly all groups; and then they are searched like points without a contraction.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Generator
from typing import Any, NamedTuple

from tonari.core.neighbors import Neighbors
from tonari.core.slices import cut
from tonari.cuda.launch import launch
from tonari.cuda.rehearsal import joined, without_data
from tonari.cuda.streams import Written
from tonari.exact.cuda.batches import PILOT_UNPROVED, Again, DevicePoints, Search
from tonari.exact.cuda.contraction import ContractedRows, Contraction, contract, contraction_of
from tonari.exact.cuda.form import DeviceForm, make_form
from tonari.exact.cuda.form_dim import choose_contraction
from tonari.exact.cuda.memory import KEPT, NEAR_BYTES, WIDER
from tonari.exact.cuda.near import near_members
from tonari.exact.cuda.pack import LARGEST_FLOAT16, new_flags, pack_queries
from tonari.exact.cuda.packed_copies import Copied, PackedCopies
from tonari.exact.cuda.plan import PILOT, CudaPlan
from tonari.exact.cuda.refine import SCRATCH_BYTES, refine_groups
from tonari.exact.cuda.sampling import Sample
from tonari.metrics import get_metric

FITTED_ROWS = 4096  # least queries for which the width is fitted
HOPELESS = 0.5  # share of unproved rows at the largest width from which on all dimensions are screened
NEAREST = (
    20  # and twice k: the members that are refined for the first k-th value, and at most the groups that they are of
)
ROOMY = 64  # times the width: the groups of a row for which the last retry in p coordinates has room
ROWS = 256  # per program that computes limits


class Fitted(NamedTuple):
    """The width that was fitted to the first rows of a search, and the share of them that it does not prove."""

    width: int
    unproved: float


class ContractedPoints(Copied):
    """Prepared points on one GPU, and their contracted rows with packed copies of these.

    Parameters
    ----------
    points : tensor of shape (n, d), checked
        The original rows; refinement reads them, so they must not change.
    form : DeviceForm
    by : Contraction
    full : DevicePoints, optional
        The points with packed copies in all dimensions. Default: made when they are needed.

    Attributes
    ----------
    flags : int64 tensor of shape (3,)
        As for :class:`tonari.exact.cuda.batches.DevicePoints`.
    rows : ContractedRows
    farthest : float64 tensor of shape (1,)
        The largest error of any row.
    fitted : dict of int to Fitted
        By k, what earlier searches found.
    """

    def __init__(self, points: Any, form: DeviceForm, by: Contraction, full: DevicePoints | None = None) -> None:
        self.points, self.form, self.by = points, form, by
        self.flags = new_flags(points.device)
        self.rows: ContractedRows = contract(points, by, self.flags)
        self.farthest = self.rows.errors.amax()[None]
        self.fitted: dict[int, Fitted] = {}
        self._full = full
        self._copies = PackedCopies(self.rows.values, self.by.screened, new_flags(points.device))
        tensors = (form.centre, form.scale, by.directions, by.origin, by.stretch, self.farthest)
        self._written = Written(points, *tensors, self.flags, self.rows.values, self.rows.errors)

    def is_usable(self) -> bool:
        """Whether every row has a contraction that can be packed; waits for the device."""
        least, greatest = self.rows.values.aminmax()
        return max(-float(least), float(greatest)) <= LARGEST_FLOAT16

    def begin(self, queries: Any, plan: CudaPlan) -> Search:
        """Return the search of some queries, in all dimensions if earlier ones proved few rows in fewer."""
        if plan.k in self.fitted and self.fitted[plan.k].unproved > HOPELESS:
            return Search(queries, self.in_all_dimensions(plan), plan)
        return ContractedSearch(queries, self, plan)

    def without_data(self) -> ContractedPoints:
        """Return what stands for these points in a rehearsal, on the device "meta"."""
        form = dataclasses.replace(
            self.form, centre=without_data(self.form.centre), scale=without_data(self.form.scale)
        )
        tensors = {name: without_data(getattr(self.by, name)) for name in ("directions", "origin", "stretch")}
        twin = ContractedPoints(without_data(self.points), form, Contraction(form, **tensors))
        twin.fitted = dict(self.fitted)
        return twin

    def in_all_dimensions(self, plan: CudaPlan) -> DevicePoints:
        """Return the points with packed copies in all dimensions, which are kept from then on."""
        self._full = self._full or DevicePoints(self.points, plan.metric, plan.precisions[0])
        return self._full


def prepare_points(points: Any, plan: CudaPlan) -> DevicePoints | ContractedPoints:
    """Prepare points as the plan says; without a contraction if none is worth it, or if a row has none."""
    made = None if plan.form_dim == "full" else contracted_points(points, plan)
    return DevicePoints(points, plan.metric, plan.precisions[0]) if made is None else made


def contracted_points(points: Any, plan: CudaPlan, *, beside: DevicePoints | None = None) -> ContractedPoints | None:
    """Prepare contracted points as the plan says; None if no contraction is worth it, or if a row has none.

    `beside` are the points in all dimensions, if they are kept.
    """
    form = make_form(points, plan.metric)
    if plan.form_dim == PILOT:
        by = choose_contraction(points, form, plan.k, plan.m)
    else:
        by = contraction_of(points, form, int(plan.form_dim))
    made = None if by is None else ContractedPoints(points, form, by, beside)
    if made is None or not made.is_usable():
        return None
    made.packed(plan.precisions[0])
    return made


class ContractedSearch(Search):
    """The state that all batches of a search of contracted points share."""

    prepared: ContractedPoints

    def __init__(self, queries: Any, prepared: ContractedPoints, plan: CudaPlan) -> None:
        super().__init__(queries, prepared, plan)
        self.least_width = plan.contracted_width
        self.width, self.unproved = prepared.fitted.get(plan.k, Fitted(self.least_width, 0.0))
        self._unread = new_flags(prepared.points.device)  # contract() sets the flags

    @property
    def least_fitted(self) -> int:
        """The least number of queries for which the width is fitted."""
        return self.plan.m + 1 if self.plan.k in self.prepared.fitted else FITTED_ROWS

    def fit_width(self, own: Any) -> Search:
        """Double the width until nearly all of the first rows are proved, and keep it for later searches.

        If few of them are, this and later searches screen all dimensions.
        """
        super().fit_width(own)
        self.prepared.fitted[self.plan.k] = Fitted(self.width, self.unproved)
        return self.prepared.begin(self.queries, self.plan)

    def batch(
        self, queries: Any, own: Any, precision: str, width: int, sample: Sample | None, first: int = 0
    ) -> tuple[Neighbors, Any]:
        """Search some rows once; see :meth:`tonari.exact.cuda.batches.Search.batch`."""
        import torch

        prepared = self.prepared
        contracted = contract(queries, prepared.by, self.flags, first=first)
        packed = pack_queries(contracted.values, prepared.by.screened, precision, self._unread)
        screened = self.chooser.screened(packed, precision, sample)
        group = screened.group
        count = 2 * self.plan.k + NEAREST
        lowest, _ = screened.lowest(min(width, count))
        _, nearest = refine_groups(
            contracted.values,
            prepared.rows.values,
            lowest,
            min(count, lowest.shape[1] * group),
            metric="sqeuclidean",
            group=group,
            own=own,
            double=False,
        )
        some = self._refine(queries, nearest)
        within, scores = self._limits(packed.shift, contracted.errors, some.distances[:, -1])
        groups = screened.near(scores, KEPT * width)
        del screened
        members = near_members(
            contracted.values, prepared.rows.values, within, groups, KEPT * width, group=group, own=own
        )
        found = self._refine(queries, members.numbers)
        return found, (groups.whole & members.whole).to(torch.uint8)

    def again(self, precision: str, width: int) -> Again:
        """Return a search of some rows with all minima, as many at a time as the scratch memory has room for."""
        search = super().again(precision, width)
        rows = max(1, SCRATCH_BYTES // (NEAR_BYTES * KEPT * width))

        def search_again(queries: Any, own: Any) -> tuple[Neighbors, Any]:
            parts = [search(queries[here], None if own is None else own[here]) for here in cut(len(queries), rows)]
            lists, proved = zip(*parts, strict=True)
            return Neighbors(*map(joined, zip(*lists, strict=True))), joined(proved)

        return search_again

    def level(self, precision: str) -> str:
        """Return what reports call a precision of this search, such as "float16 in 64 dimensions"."""
        return f"{precision} in {self.prepared.by.p} dimensions"

    def levels(self) -> Generator[tuple[str, Again], None, None]:
        """Yield the levels of contracted rows, and then those of all dimensions."""
        first, last = self.plan.precisions[0], self.plan.precisions[-2]
        if first != last and self.unproved <= PILOT_UNPROVED:  # few rows are not worth packing the points once more
            yield self.level(first), self.again(first, WIDER * self.width)
        try:
            for wider in (WIDER, ROOMY):
                yield self.level(last), self.again(last, wider * self.width)
        finally:
            if first != last:
                self.prepared.forget(last)
        full = DevicePoints(self.prepared.points, self.plan.metric, self.plan.precisions[0])
        rest = Search(self.queries, full, self.plan)
        for precision in self.plan.precisions[:-1]:
            yield precision, rest.again(precision, WIDER * self.plan.width)
            full.forget(precision)

    def _refine(self, queries: Any, points: Any) -> Neighbors:
        """Return the k best of some points of each row, -1 where there is none."""
        plan = self.plan
        rows = self.prepared.points
        return Neighbors(*refine_groups(queries, rows, points, plan.k, metric=plan.metric, group=1, double=self.double))

    def _limits(self, shift: Any, errors: Any, kth: Any) -> tuple[Any, Any]:
        """Return the largest squared distance, and score, that contracted rows of an answer may have: float32 (rows,).

        Squared distances are compared with float32 sums of p squares.
        """
        import torch

        from tonari.exact.cuda.kernels.contracted_limits import contracted_limits_kernel

        prepared, rows = self.prepared, len(kth)
        squares, scores = (torch.empty(rows, dtype=torch.float32, device=kth.device) for _ in range(2))
        launch(
            contracted_limits_kernel,
            -(-rows // ROWS),
            {
                "shift_ptr": shift,
                "kth_ptr": kth,
                "error_ptr": errors,
                "farthest_ptr": prepared.farthest,
                "stretch_ptr": prepared.by.stretch,
                "scale_ptr": prepared.form.scale,
                "squares_ptr": squares,
                "scores_ptr": scores,
                "rows": rows,
                "d": prepared.form.d,
                "p": prepared.by.p,
                "kth_stride": kth.stride(0),
            },
            constants={"METRIC": get_metric(self.plan.metric), "DOUBLE": self.double, "ROWS": ROWS},
            warps=4,
            fused=False,
        )
        return squares, scores
