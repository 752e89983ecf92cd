"""The first attempt at a batch of queries on one GPU, and the levels (retries), which search unproved rows again.

A group is a few points that share one lower bound, their minimum; the width is the number of groups refined per row.

    screen    a sample of the points               -> a threshold per row (large n only)
    screen    all points                           -> the groups below the threshold, or the minima of all groups
    select    the `width` lowest minima, and the next one
    refine    exact values of the points in the selected groups       -> the k best
    certify   does the next minimum exceed the score of the k-th value?                     -> proved or not

The host waits for the device only to choose the width.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable
from typing import Any, Protocol

from tonari import inputs
from tonari.core.results.neighbors import Neighbors
from tonari.core.trail import decided
from tonari.costs.model import brute_pair_seconds
from tonari.costs.rates import CARD
from tonari.cuda.compiling.ahead import expecting
from tonari.cuda.compiling.rehearsal import all_repeated, without_data
from tonari.cuda.devices import on
from tonari.cuda.streams import Written
from tonari.exact.cuda import tuning
from tonari.exact.cuda.attempts.compare import compare_few
from tonari.exact.cuda.attempts.level import Again, Level
from tonari.exact.cuda.divisions import PRECISIONS
from tonari.exact.cuda.plan import CudaPlan
from tonari.exact.cuda.refine.certify import certify
from tonari.exact.cuda.refine.group_lists import listed_room
from tonari.exact.cuda.refine.groups import refine_all
from tonari.exact.cuda.refine.lowest import refine_lowest
from tonari.exact.cuda.rows.form import DeviceForm, make_form
from tonari.exact.cuda.rows.groups import LEAST_GROUP, group_count
from tonari.exact.cuda.rows.pack import PackedQueries, new_flags, pack_queries
from tonari.exact.cuda.rows.prepared import PackedCopies, Prepared
from tonari.exact.cuda.screens.few import search_few
from tonari.exact.cuda.screens.sampling import FirstAttempt, Sample
from tonari.exact.cuda.screens.screener import Screener
from tonari.exact.cuda.screens.widths import fitted_width, wider, widths_from
from tonari.metrics import get_metric


class Searchable(Prepared, Protocol):
    """The interface of prepared points on one GPU. They decide how queries are searched: for example, in int8."""

    @property
    def copies(self) -> PackedCopies:
        """The packed copies of the points; copies at other precisions are made when rows are retried."""

    def begin(self, queries: Any, plan: CudaPlan) -> Search:
        """Return a search for these queries by a plan."""

    def without_data(self) -> Searchable:
        """Return points of the same shapes without data (on the device "meta"), to rehearse a search."""

    def in_all_dimensions(self, plan: CudaPlan) -> DevicePoints:
        """Return the points with packed copies in all dimensions."""


class DevicePoints:
    """Points on one GPU, in all dimensions; see :class:`tonari.exact.cuda.rows.prepared.Prepared`.

    Parameters
    ----------
    points : tensor of shape (n, d), checked
    metric : str
    precision : str
        The precision of the first packed copy; copies at other precisions are made when rows are retried.
    form : DeviceForm, optional
        Default: made for the points.
    like : FirstAttempt, optional
        The first attempt at all points, if `points` is a subset of them; the subset is then searched by the same
        kernels. Default: the kernels are chosen by the number of points.
    """

    def __init__(
        self,
        points: Any,
        metric: str,
        precision: str,
        form: DeviceForm | None = None,
        like: FirstAttempt | None = None,
    ) -> None:
        self.points = points
        self.metric, self.precision = metric, precision
        self.form = make_form(points, metric) if form is None else form
        self.flags = new_flags(points.device)
        self.copies = PackedCopies(points, self.form, self.flags)
        self.copies.packed(precision)
        self.written = Written(self.points, self.form.centre, self.form.scale, self.flags)
        self._like, self._has_own_form = like, form is None

    def begin(self, queries: Any, plan: CudaPlan) -> Search:
        search = Search(queries, self, plan)
        search.screener.like = self._like
        return search

    def without_data(self) -> DevicePoints:
        form = None if self._has_own_form else self.form.without_data()
        return DevicePoints(without_data(self.points), self.metric, self.precision, form, self._like)

    def in_all_dimensions(self, plan: CudaPlan) -> DevicePoints:
        return self


class Search:
    """The state of a search for queries among prepared points on one GPU; all its batches share it."""

    def __init__(self, queries: Any, prepared: Searchable, plan: CudaPlan) -> None:
        import torch

        prepared.written.read()
        self.queries, self.prepared, self.plan = queries, prepared, plan
        self.double = torch.float64 in (queries.dtype, prepared.points.dtype)
        self.flags = new_flags(prepared.points.device)
        self.screener = Screener(prepared, plan)
        self.width = self.least_width = plan.width
        self.unproved = 0.0  # share of the first rows, on which the width was fitted, that are not certified as exact
        self.left_before = 0  # number of rows that the last search by an equal plan had to search again
        self._after_screen: Callable[[], None] = nothing

    @property
    def sample(self) -> Sample | None:
        """The sample of points that gives thresholds for the current width; None if the search uses no sample."""
        return self.screener.sample(self.width)

    @property
    def query_batch(self) -> int:
        """The number of queries in a batch."""
        return self.screener.query_batch

    def after_screen(self, work: Callable[[], None]) -> None:
        """Set a function to be called once, right after the launch of the next screen, while the device is busy."""
        self._after_screen = work

    def call_after_screen(self) -> None:
        """Call the function that was passed to :meth:`after_screen`, unless it has been called already."""
        work, self._after_screen = self._after_screen, nothing
        work()

    def first_attempt(self) -> FirstAttempt | None:
        """Return the sample and the sizes of the first attempt, for later searches among subsets of the points.

        None if the first attempt uses no sample.
        """
        return self.screener.first_attempt(self.least_width)

    def some_points(self, points: Any, like: FirstAttempt | None) -> DevicePoints:
        """Prepare a subset of the points for a search with the kernels that the first attempt `like` has compiled."""
        plan = self.plan
        form = self.prepared.form if plan.precisions[0] == "int8" else None  # int8 needs the shift of all points
        return DevicePoints(points, plan.metric, plan.precisions[0], form, like)

    @property
    def least_fitted(self) -> int:
        """The smallest number of queries for which the width (groups refined per row) is fitted."""
        return tuning.PILOT_BATCHES * self.plan.query_batch

    def fit_width(self, own: Any) -> Search:
        """Fit the width (groups refined per row) to the first rows, and return the search to continue with."""
        if self.queries.device.type == "meta":  # a rehearsal has no data, so widths cannot be compared
            self.pilot(own)
            return self

        def unproved(width: int) -> float:
            self.width = width
            with contextlib.nullcontext() if width == self.least_width else expecting(rehearse):
                proved = self.pilot(own)
            return int((proved == 0).sum()) / len(proved)

        def rehearse() -> None:
            twin = self.prepared.without_data().begin(without_data(self.queries), self.plan)
            for width in widths_from(self.width, self.least_width):
                twin.width = width
                twin.pilot(without_data(own))

        self.width, self.unproved = fitted_width(self.least_width, unproved, self.again_cost)
        decided("width", f"{self.width} groups of a row are refined: {self.unproved:.2%} of the first rows need more")
        return self

    @property
    def again_cost(self) -> float:
        """The time to search a row again without thresholds, relative to the time to refine `least_width` groups."""
        n, d = self.prepared.points.shape
        refine = self.least_width * LEAST_GROUP * d * int(self.prepared.points.element_size()) / CARD.read_rows
        return float(tuning.RETRIES_TIMES * n * brute_pair_seconds(d) / refine + wider(d))

    def begin_mirror(self) -> None:
        """From now on, compute each product of two rows of a graph once and use it for both rows, if that is faster."""
        if self.is_graph:
            self.screener.begin_mirror(self.width, self.plan.precisions[0], self._pack_own)

    @property
    def is_graph(self) -> bool:
        """Whether the queries are the points, in their order."""
        return self.queries is self.prepared.points

    def _pack_own(self, rows: slice) -> PackedQueries:
        """Pack some of the points as queries of a graph; their values have been checked already."""
        precision = self.plan.precisions[0]
        return pack_queries(self.queries[rows], self.prepared.form, precision, new_flags(self.flags.device))

    def pilot(self, own: Any) -> Any:
        """Search the first rows once with the current width; return 1 for each row certified as exact, else 0."""
        rows = slice(0, min(tuning.PILOT_ROWS, self.plan.query_batch, len(self.queries)))
        ids = None if own is None else own[rows]
        return self.first_batch(self.queries[rows], ids)[1]

    def first_batch(self, queries: Any, own: Any, first: int | None = None) -> tuple[Neighbors, Any]:
        """Search a batch of rows for the first time; see :meth:`batch` for the arguments."""
        if self.plan.few and own is None:
            return search_few(queries, self.prepared, self.plan, self.flags, first=first or 0)
        return self.batch(queries, own, self.plan.precisions[0], self.width, self.sample, first)

    def batch(
        self, queries: Any, own: Any, precision: str, width: int, sample: Sample | None, first: int | None = None
    ) -> tuple[Neighbors, Any]:
        """Search a batch once. `first` is the row number of its first query, for flags and for the screen of a graph.

        Returns
        -------
        Neighbors, and uint8 tensor of shape (rows,)
            1 for each row whose answer is certified as exact, else 0.
        """
        import torch

        plan, prepared = self.plan, self.prepared
        packed = pack_queries(queries, prepared.form, precision, self.flags, first=first or 0)
        screened = self.screener.screened_in_turn(packed, precision, sample, first)
        self.call_after_screen()
        found, following = refine_lowest(
            *self.refined_rows(queries, first),
            screened,
            width,
            plan.k,
            metric=plan.metric,
            own=own,
            double=self.double,
        )
        make = torch.ones if following is None else torch.empty
        proved = make(len(queries), dtype=torch.uint8, device=queries.device)
        if following is not None:
            certify(prepared.form, packed.shift, found.distances[:, -1], following, proved, double=self.double)
        return found, proved

    def refined_rows(self, queries: Any, first: int | None) -> tuple[Any, Any]:
        """Return forms of queries and points that give the exact values of the original rows, but are fast to read.

        `first` is the row number of the first query.
        """
        return queries, self.prepared.points

    @property
    def stragglers(self) -> int:
        """The number of rows to search again before the device has reported which rows are certified as exact.

        It is 0 if the first rows or an earlier search suggest that all answers will be certified, or that many will not
        be. In these cases it is faster to wait for the report.
        """
        if self.left_before:
            most = self.left_before + 2 * math.sqrt(self.left_before)
            return next((rows for rows in tuning.ROWS_AHEAD if rows >= most), 0)
        return tuning.STRAGGLERS if 1 <= self.unproved * len(self.queries) <= tuning.STRAGGLERS // 2 else 0

    def filled(self, rows: Any) -> Any:
        """Return the row numbers for the first retry: those of the unproved rows, some repeated if they are few.

        A long search retries at least RETRIED rows: if fewer are unproved, some are repeated.
        """
        if len(rows) >= tuning.RETRIED or len(self.queries) < self.least_fitted:
            return rows
        return all_repeated(rows[:, None], -(-tuning.RETRIED // len(rows)))[: tuning.RETRIED, 0]

    def state(self, proved: Any) -> Any:
        """Return an int64 tensor (7,): 3 flags of the points, 3 flags of the queries, and the count of proved rows."""
        import torch

        return torch.cat([self.prepared.flags, self.flags, proved.sum()[None]])

    def levels(self) -> list[Level]:
        """Return the levels of retries, in their order; each searches the rows that are not yet certified as exact."""
        first, width = self.plan.precisions[0], wider(self.plan.d) * self.width
        return [
            Level(
                self.level(precision),
                functools.partial(self.again, precision, width),
                nothing if precision == first else functools.partial(self.prepared.copies.forget, precision),
            )
            for precision in self.plan.precisions[:-1]
        ]

    def level(self, precision: str) -> str:
        """Return the name of a precision in reports."""
        return precision

    def again(self, precision: str, width: int) -> Again:
        """Return a function that searches rows again without thresholds, from the minima of all groups."""
        return lambda queries, own: self.batch(queries, own, precision, width, None)

    @property
    def most_refined(self) -> int:
        """The number of points whose exact values a retry computes for each row."""
        return wider(self.plan.d) * self.width * self.plan.group

    def are_few(self, rows: int) -> bool:
        """Whether comparing `rows` rows with all points takes at most the time of one more attempt."""
        n, d = self.prepared.points.shape
        return rows == 0 or rows * n * (d + tuning.OF_PAIR) <= tuning.OF_ATTEMPT

    def compare(self, queries: Any, own: Any) -> Neighbors:
        """Return the neighbours of a few rows, computing the exact values of all points."""
        plan, points = self.plan, self.prepared.points
        facts: dict[str, Any] = {"metric": plan.metric, "own": own, "double": self.double}
        groups = group_count(len(points), plan.group)
        if not self.are_few(len(queries)):
            # The memory that the plan reserves for the minima of a batch is free now.
            scratch = max(tuning.LEAST_SCRATCH, 4 * plan.query_batch * groups)
            return Neighbors(*refine_all(queries, points, plan.k, scratch_bytes=scratch, **facts))
        # The group size and the number of groups of the first attempt, so that its compiled kernels can be used.
        group, columns = plan.group, min(self.width, groups)
        if self.sample is not None:
            group, columns = LEAST_GROUP, listed_room(self.width)
        return Neighbors(*compare_few(queries, points, plan.k, group=group, columns=columns, **facts))


def nothing() -> None:
    """Do nothing: the default for a function that is called after a step, such as the `end` of a level."""


def no_others(points: Any, metric: str) -> Neighbors:
    """Check the values of the points, and return empty neighbour lists, of shape (n, 0)."""
    with on(points.device):
        flags = DevicePoints(points, metric, PRECISIONS[get_metric(metric).form][0]).flags
    inputs.check_flags(flags, points, "points")
    import torch

    value = torch.float64 if points.dtype == torch.float64 else torch.float32
    shape = (len(points), 0)
    return Neighbors(points.new_empty(shape, dtype=value), points.new_empty(shape, dtype=torch.int32))
