"""The schedule of exact search on one GPU: which batch of queries is searched at which precision.

for batch of queries:
    screen    a sample of the points, all minima       -> a threshold per row               (large n only)
    screen    all points                               -> the groups below the threshold, or all minima
    select    the `width` lowest minima, and the next
    refine    exact values of those groups' members    -> the k best
    certify   the next minimum exceeds what the k-th value allows                           -> proved or not

The host does not wait for results until all batches are launched. Then rows that were not proved are searched again:
with all minima and more groups, among first copies (copies.py), with products of higher precision, among the points
near to them (neighbourhoods.py; in long searches before all this), and by exact values of all points.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeAlias

from tonari import inputs
from tonari.core.neighbors import Neighbors
from tonari.core.progress import Counter
from tonari.cuda.ahead import expecting
from tonari.cuda.devices import on
from tonari.cuda.rehearsal import without_data
from tonari.cuda.streams import Written
from tonari.exact.cuda.certify import certify
from tonari.exact.cuda.choices import PRECISIONS
from tonari.exact.cuda.chooser import Chooser, Prepared
from tonari.exact.cuda.copies import Subset, numbers_of_first_copies, runs_of_copies
from tonari.exact.cuda.few import search_few
from tonari.exact.cuda.form import make_form
from tonari.exact.cuda.groups import LEAST_GROUP, group_count
from tonari.exact.cuda.memory import WIDEST, wider
from tonari.exact.cuda.neighbourhoods import OF_SCREEN, OF_VALUES, neighbourhoods, reach_of, rehearse_distances
from tonari.exact.cuda.oom_retry import in_batches
from tonari.exact.cuda.pack import new_flags, pack_queries
from tonari.exact.cuda.packed_copies import Copied, PackedCopies
from tonari.exact.cuda.partition import plan_for_part
from tonari.exact.cuda.plan import CudaPlan
from tonari.exact.cuda.refine import refine_all, refine_groups
from tonari.exact.cuda.sampling import Sample
from tonari.exact.report import Report
from tonari.metrics import get_metric

# A search of at least PILOT_BATCHES batches first determines, on PILOT_ROWS rows, how many groups (at most WIDEST times
# the planned width) it takes to prove all but a share of PILOT_UNPROVED.
PILOT_BATCHES, PILOT_ROWS, PILOT_UNPROVED = 8, 1024, 0.01
HARDLY_MORE = 1.1  # times as many rows
IN_FLIGHT = 2  # batches in flight, few enough that Ctrl-C takes effect and progress is accurate
LEAST_LEFT = 256  # rows that a first retry has not proved, from which on copies of points are looked for
TYPICAL = 16  # the points near some rows, and these rows, are about one in so many: kernels are compiled ahead for that
LEAST_SCRATCH = 1 << 25  # least scratch bytes for rows that are compared with all points


class Searchable(Prepared, Protocol):
    """Prepared points on one GPU that search themselves."""

    flags: Any

    def forget(self, precision: str) -> None:
        """Drop the packed copies of a precision."""

    def begin(self, queries: Any, plan: CudaPlan) -> Search:
        """Return the search of some queries."""

    def without_data(self) -> Searchable:
        """Return what stands for these points in a rehearsal, on the device "meta"."""

    def in_all_dimensions(self, plan: CudaPlan) -> DevicePoints:
        """Return the points with packed copies in all dimensions."""


class DevicePoints(Copied):
    """Prepared points on one GPU: their form, and packed copies by precision.

    Parameters
    ----------
    points : tensor of shape (n, d), checked
        The original rows; refinement reads them, so they must not change.
    metric : str
    precision : str
        The precision of the first packed copy; others are made when rows are retried.

    Attributes
    ----------
    flags : int64 tensor of shape (3,)
        The first rows that are not finite, too large, or negative; see ``inputs.check_flags``.
    """

    def __init__(self, points: Any, metric: str, precision: str) -> None:
        self.points = points
        self.metric, self.precision = metric, precision
        self.form = make_form(points, metric)
        self.flags = new_flags(points.device)
        self._copies = PackedCopies(points, self.form, self.flags)
        self.packed(precision)
        self._written = Written(self.points, self.form.centre, self.form.scale, self.flags)

    def begin(self, queries: Any, plan: CudaPlan) -> Search:
        """Return the search of some queries."""
        return Search(queries, self, plan)

    def without_data(self) -> DevicePoints:
        """Return what stands for these points in a rehearsal, on the device "meta"."""
        return DevicePoints(without_data(self.points), self.metric, self.precision)

    def in_all_dimensions(self, plan: CudaPlan) -> DevicePoints:
        """Return the points with packed copies in all dimensions: these."""
        return self


def search_on_device(
    queries: Any,
    prepared: Searchable,
    plan: CudaPlan,
    *,
    own: Any = None,
    bar: Counter | None = None,
    first_point: int = 0,
    first_query: int = 0,
    all_points: Any = None,
) -> tuple[Neighbors, Report]:
    """Search prepared points on their device for checked queries.

    Parameters
    ----------
    queries : tensor of shape (m, d)
    prepared : DevicePoints or ContractedPoints
    plan : CudaPlan
    own : int64 tensor of shape (m,), optional
        For each query, the number of the point that it is itself, which is left out.
    bar : Counter, optional
        Counts pairs, m * n in all.
    first_point, first_query : int
        Numbers of ``prepared.points[0]`` and ``queries[0]`` in the whole search, for messages.
    all_points : tensor, optional
        The points that messages number. Default: the prepared ones.

    Returns
    -------
    Neighbors of tensors of shape (m, k), and the Report of the run, without its seconds

    Raises
    ------
    ValueError
        A row has a value that searches refuse; points are reported before queries.
    MemoryError
        The device has not enough memory for even one query at a time.
    """
    import torch

    m, n = len(queries), len(prepared.points)
    device = prepared.points.device
    answer = _Answer(m)
    report = Report(rows=m)
    search = prepared.begin(queries, plan)
    if m >= search.least_fitted:
        search = search.fit_width(own)
    pending: deque[tuple[Any, int]] = deque()

    def work(rows: slice) -> None:
        ids = None if own is None else own[rows]
        answer.put(rows, *search.first_batch(queries[rows], ids, rows.start))
        event = torch.cuda.Event() if device.type == "cuda" and m > plan.query_batch else None
        if event is not None:
            event.record()
        pending.append((event, (rows.stop - rows.start) * n))
        if len(pending) > IN_FLIGHT:
            _wait(pending, bar)

    in_batches(m, plan.query_batch, work, planned=plan.total_bytes)
    found, proved = answer.found, answer.proved
    *flags, certified = search.state(proved).tolist()  # the one place that waits for the device
    while pending:
        _wait(pending, bar)
    numbered = prepared.points if all_points is None else all_points
    inputs.check_flags(flags[:3], numbered, "points", first=first_point)
    if own is None:
        inputs.check_flags(flags[3:], queries, "queries", first=first_query)
    report.certify(search.level(plan.precisions[0]), certified)
    _prove_others(search, own, found, proved, certified, report)
    return found, report


def attempt(queries: Any, prepared: DevicePoints, plan: CudaPlan, *, own: Any = None) -> tuple[Neighbors, Any, Any]:
    """Search a single batch of queries once, without retries, without waiting for the device or checking values.

    For the parameters see :func:`search_on_device`.

    Returns
    -------
    Neighbors of tensors of shape (m, k), uint8 tensor of shape (m,) and int64 tensor of shape (7,)
        1 for each row that is proved; flags of the points, flags of the queries, and the number of proved rows. Rows
        that are proved are valid if no flag is below ``inputs.values.NO_ROW``.
    """
    search = prepared.begin(queries, plan)
    found, proved = search.first_batch(queries, own)
    return found, proved, search.state(proved)


def finish(
    queries: Any,
    prepared: DevicePoints,
    plan: CudaPlan,
    found: Neighbors,
    proved: Any,
    certified: int,
    *,
    own: Any = None,
) -> Report:
    """Search again the rows that an :func:`attempt` did not prove, all but `certified`, and write them to `found`."""
    report = Report(rows=len(queries))
    report.certify(plan.precisions[0], certified)
    _prove_others(prepared.begin(queries, plan), own, found, proved, certified, report)
    return report


def _prove_others(search: Search, own: Any, found: Neighbors, proved: Any, certified: int, report: Report) -> None:
    """Search the rows again that are not among the `certified` ones, expecting kernels that this has to compile."""
    queries, prepared, plan = search.queries, search.prepared, search.plan
    left = min(len(queries) - certified, plan.query_batch)
    if left == 0:
        return

    def rehearse() -> None:
        twin = prepared.without_data().begin(without_data(queries), plan)
        twin.width = search.width
        twin.rehearse(left, without_data(own))

    with expecting(rehearse):
        search.retry(own, found, proved, report)


def _wait(pending: deque[tuple[Any, int]], bar: Counter | None) -> None:
    event, pairs = pending.popleft()
    if event is not None:
        event.synchronize()
    if bar is not None:
        bar.add(pairs)


class _Answer:
    """The results of all batches in one pair of tensors. The result of a single batch is kept as it is."""

    def __init__(self, m: int) -> None:
        self.m = m
        self.found: Any = None
        self.proved: Any = None

    def put(self, rows: slice, found: Neighbors, proved: Any) -> None:
        """Store the results of some rows."""
        if rows.stop - rows.start == self.m:
            self.found, self.proved = found, proved
            return
        if self.found is None:
            self.found = Neighbors(*(part.new_empty((self.m, part.shape[1])) for part in found))
            self.proved = proved.new_empty(self.m)
        self.found.distances[rows], self.found.indices[rows] = found
        self.proved[rows] = proved


# Searches some rows: their queries and own numbers -> neighbours, and 1 for each row that is proved.
Again: TypeAlias = Callable[[Any, Any], tuple[Neighbors, Any]]


class Search:
    """The state that all batches of one search share."""

    def __init__(self, queries: Any, prepared: Searchable, plan: CudaPlan) -> None:
        import torch

        prepared.read()
        self.queries, self.prepared, self.plan = queries, prepared, plan
        self.double = torch.float64 in (queries.dtype, prepared.points.dtype)
        self.flags = new_flags(prepared.points.device)
        self.chooser = Chooser(prepared, plan)
        self.width = self.least_width = plan.width
        self.unproved = 0.0  # share of the first rows that the fitted width does not prove

    @property
    def sample(self) -> Sample | None:
        """The sample for the current width."""
        return self.chooser.sample(self.width)

    @property
    def least_fitted(self) -> int:
        """The least number of queries for which the width is fitted."""
        return PILOT_BATCHES * self.plan.query_batch

    def fit_width(self, own: Any) -> Search:
        """Double the width until nearly all of the first rows are proved; return the search to go on with.

        How many groups the bounds cannot separate depends on the data, and rows that are not proved need a second pass.
        If even the largest width leaves many, the least of those that leave hardly more is taken.
        """
        tried: list[tuple[int, float]] = []
        while True:
            proved = self.pilot(own)
            self.unproved = int((proved == 0).sum()) / len(proved)
            tried.append((self.width, self.unproved))
            if self.unproved <= PILOT_UNPROVED:
                return self
            if self.width >= WIDEST * self.least_width:
                self.width, self.unproved = next(one for one in tried if one[1] <= HARDLY_MORE * self.unproved)
                return self
            self.width *= 2

    def pilot(self, own: Any) -> Any:
        """Search the first rows once, with the present width; return which are proved."""
        rows = slice(0, min(PILOT_ROWS, self.plan.query_batch, len(self.queries)))
        ids = None if own is None else own[rows]
        return self.first_batch(self.queries[rows], ids)[1]

    def first_batch(self, queries: Any, own: Any, first: int = 0) -> tuple[Neighbors, Any]:
        """Search some rows for the first time; `first` is the number of the first one. See :meth:`batch`."""
        if self.plan.few and own is None:
            return search_few(queries, self.prepared, self.plan, self.flags, first=first)
        return self.batch(queries, own, self.plan.precisions[0], self.width, self.sample, first)

    def batch(
        self, queries: Any, own: Any, precision: str, width: int, sample: Sample | None, first: int = 0
    ) -> tuple[Neighbors, Any]:
        """Search some rows once; `first` is the number of the first one, for flags.

        Returns
        -------
        Neighbors, and uint8 tensor of shape (rows,)
            1 for each row that is proved, else 0.
        """
        import torch

        plan, prepared = self.plan, self.prepared
        packed = pack_queries(queries, prepared.form, precision, self.flags, first=first)
        chosen, following = self.chooser.choose(packed, precision, width, sample)
        found = Neighbors(
            *refine_groups(
                queries,
                prepared.points,
                chosen,
                plan.k,
                metric=plan.metric,
                group=plan.group if sample is None else LEAST_GROUP,
                own=own,
                double=self.double,
            )
        )
        make = torch.ones if following is None else torch.empty
        proved = make(len(queries), dtype=torch.uint8, device=queries.device)
        if following is not None:
            certify(prepared.form, packed.shift, found.distances[:, -1], following, proved, double=self.double)
        return found, proved

    def state(self, proved: Any) -> Any:
        """Return an int64 tensor of shape (7,): flags of the points, flags of the queries, number of proved rows."""
        import torch

        return torch.cat([self.prepared.flags, self.flags, proved.sum()[None]])

    def levels(self) -> Iterator[tuple[str, Again]]:
        """Yield the ways to search again the rows that are not proved, each with its name in reports."""
        first = self.plan.precisions[0]
        for precision in self.plan.precisions[:-1]:
            yield self.level(precision), self.again(precision, wider(self.plan.d) * self.width)
            if precision != first:
                self.prepared.forget(precision)

    def level(self, precision: str) -> str:
        """Return what reports call a precision of this search."""
        return precision

    def again(self, precision: str, width: int) -> Again:
        """Return a search of some rows with all minima."""
        return lambda queries, own: self.batch(queries, own, precision, width, None)

    def retry(self, own: Any, found: Neighbors, proved: Any, report: Report) -> None:
        """Search the rows that are not proved again, with more groups and at higher precisions."""
        queries, plan = self.queries, self.plan
        self.retry_nearby(OF_SCREEN, own, found, proved, report)
        for turn, (level, search_again) in enumerate(self.levels()):
            rows = (proved == 0).nonzero()[:, 0]
            if len(rows) == 0:
                return

            def again(some: slice, rows: Any = rows, search_again: Again = search_again) -> None:
                these = rows[some]
                ids = None if own is None else own[these]
                part, proved[these] = search_again(queries[these], ids)
                found.distances[these], found.indices[these] = part

            in_batches(len(rows), plan.query_batch, again, planned=plan.total_bytes)
            certified = int((proved[rows] != 0).sum())
            report.certify(level, certified)
            may_be_copies = turn == 0 and plan.subsets and len(rows) - certified >= LEAST_LEFT
            if may_be_copies and self.retry_without_copies(rows[proved[rows] == 0], own, found, report):
                return
        self.retry_nearby(OF_VALUES, own, found, proved, report)
        rows = (proved == 0).nonzero()[:, 0]

        def compare(some: slice) -> None:
            these = rows[some]
            ids = None if own is None else own[these]
            found.distances[these], found.indices[these] = self.compare(queries[these], ids)

        in_batches(len(rows), plan.query_batch, compare, planned=plan.total_bytes)
        report.certify(plan.precisions[-1], len(rows))

    def retry_without_copies(self, rows: Any, own: Any, found: Neighbors, report: Report) -> bool:
        """Search some rows among the points without copies that they cannot find; False if there are none."""
        kept = numbers_of_first_copies(self.prepared.points, self.plan.k + 1)
        if kept is not None:
            self.search_among(kept, rows, own, found, report)
        return kept is not None

    def retry_nearby(self, least: int, own: Any, found: Neighbors, proved: Any, report: Report) -> None:
        """Search rows among the points near to them, where that saves `least` values and more."""
        plan, prepared = self.plan, self.prepared
        if not (plan.subsets and get_metric(plan.metric).squares):
            return
        rows = (proved == 0).nonzero()[:, 0]
        reach = reach_of(found.distances[rows, -1], prepared.form)
        for some, numbers in neighbourhoods(self.queries[rows], prepared.points, prepared.form, reach, least):
            self.search_among(numbers, rows[some], own, found, report)
            proved[rows[some]] = 1

    def search_among(self, numbers: Any, rows: Any, own: Any, found: Neighbors, report: Report) -> None:
        """Search some rows among the points of these numbers, expecting kernels for as many."""
        plan, some, queries = self.plan, Subset(self.prepared.points, numbers), self.queries[rows]
        part = plan_for_part(plan, len(numbers), len(rows), plan.devices[0])
        ids = None if own is None else some.places(own[rows])

        def rehearse() -> None:
            twin = DevicePoints(without_data(some.rows), plan.metric, plan.precisions[0])
            begun = twin.begin(without_data(queries), part)
            begun.first_batch(begun.queries, without_data(ids))

        with expecting(rehearse):
            fewer = DevicePoints(some.rows, plan.metric, plan.precisions[0])
            again, done = search_on_device(queries, fewer, part, own=ids)
        found.distances[rows], found.indices[rows] = some.of_all(again)
        report.include(done)

    def compare(self, queries: Any, own: Any) -> Neighbors:
        """Return the neighbours of some rows by exact values of all points."""
        plan, points = self.plan, self.prepared.points
        # Comparing with all points may use the memory that the minima of a batch took.
        scratch = max(LEAST_SCRATCH, 4 * plan.query_batch * group_count(len(points), plan.group))
        compared = refine_all(
            queries, points, plan.k, metric=plan.metric, own=own, double=self.double, scratch_bytes=scratch
        )
        return Neighbors(*compared)

    def rehearse(self, rows: int, own: Any) -> None:
        """Search as many rows again on every level, as a rehearsal: queries and points are on the device "meta"."""
        queries, ids = self.queries[:rows], None if own is None else own[:rows]
        if self.plan.subsets and rows >= LEAST_LEFT:
            runs_of_copies(self.prepared.points)
            rehearse_distances(queries, self.prepared.form)
            some = slice(0, max(1, len(self.prepared.points) // TYPICAL))
            twin = DevicePoints(self.prepared.points[some], self.plan.metric, self.plan.precisions[0])
            few = twin.begin(queries[: max(1, rows // TYPICAL)], self.plan)
            few.first_batch(few.queries, None if ids is None else ids[: len(few.queries)])
        for _, search_again in self.levels():
            search_again(queries, ids)
        self.compare(queries, ids)


def no_others(points: Any, metric: str) -> Neighbors:
    """Return empty neighbour lists, after checking the values of the points."""
    with on(points.device):
        flags = DevicePoints(points, metric, PRECISIONS[get_metric(metric).form][0]).flags
    inputs.check_flags(flags, points, "points")
    import torch

    value = torch.float64 if points.dtype == torch.float64 else torch.float32
    shape = (len(points), 0)
    return Neighbors(points.new_empty(shape, dtype=value), points.new_empty(shape, dtype=torch.int32))
