"""The schedule of the exact engine on one GPU: which batch of queries meets the points, at which precision.

for batch of queries:
    screen    a sample of the points, all minima       -> a threshold per row               (large n only)
    screen    all points                               -> the groups that it lets through, or all minima
    select    the `width` lowest minima, and the next
    refine    exact values of those groups' members    -> the k best
    certify   the next minimum exceeds what the k-th value allows                           -> proved or not

Nothing waits for the device until all batches are under way; then rows that were not proved are searched again: with
all minima and more groups, then with products of higher precision, then by exact values of everything.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from typing import Any, Protocol

from tonari import arrays
from tonari.exact.gpu.batches import in_batches
from tonari.exact.gpu.certify import certify
from tonari.exact.gpu.chosen import choose_groups
from tonari.exact.gpu.form import DeviceForm, make_form
from tonari.exact.gpu.groups import LEAST_GROUP, group_count
from tonari.exact.gpu.pack import new_flags, pack_points, pack_queries
from tonari.exact.gpu.refine import refine_all, refine_groups
from tonari.exact.gpu.sampling import Sample, sample_for
from tonari.exact.gpu.screen import screen, screen_below
from tonari.exact.gpu.screen_elementwise import screen_elementwise
from tonari.exact.report import Report
from tonari.memory_gpu import WIDER
from tonari.metrics import get_metric
from tonari.planning_gpu import GpuPlan
from tonari.progress import Counter
from tonari.results import Neighbors
from tonari.select.gpu import k_smallest

logger = logging.getLogger("tonari")

# A long search first finds out on some rows how many groups it takes to prove all but a share of them.
PILOT_BATCHES, PILOT_ROWS, PILOT_UNPROVED, WIDEST = 8, 1024, 0.01, 8
IN_FLIGHT = 2  # batches under way at a time, so that Ctrl-C is answered and progress is true
LEAST_SCRATCH = 1 << 25  # for the rows that are compared with everything, where a batch's minima have less room


class Prepared(Protocol):
    """Points of which packed copies are at hand."""

    points: Any
    form: DeviceForm

    def packed(self, precision: str, stride: int = 1) -> Any:
        """The packed copy of every stride-th point."""


class DevicePoints:
    """Points on one GPU, made ready: their form, and packed copies by precision.

    Parameters
    ----------
    points : tensor of shape (n, d), checked
        The original rows; refinement reads them, so they must not change.
    metric : str
    precision : str
        Of the first packed copy; others are made when rows climb.

    Attributes
    ----------
    flags : int64 tensor of shape (3,)
        First row that is not finite, too large or negative; see ``arrays.check_flags``.
    """

    def __init__(self, points: Any, metric: str, precision: str) -> None:
        self.points = points
        self.metric = metric
        self.form = make_form(points, metric)
        self.flags = new_flags(points.device)
        self._packed: dict[tuple[str, int], Any] = {}
        self.packed(precision)

    def packed(self, precision: str, stride: int = 1) -> Any:
        """The packed copy of every stride-th point."""
        key = precision, stride
        if key not in self._packed:
            flags = self.flags if stride == 1 else new_flags(self.points.device)  # a sample's rows count otherwise
            self._packed[key] = pack_points(self.points[::stride], self.form, precision, flags)
        return self._packed[key]

    def forget(self, precision: str) -> None:
        """Drop the packed copies of a precision."""
        self._packed = {key: packed for key, packed in self._packed.items() if key[0] != precision}


def search_on_device(
    queries: Any,
    prepared: DevicePoints,
    plan: GpuPlan,
    *,
    own: Any = None,
    bar: Counter | None = None,
    first_point: int = 0,
    first_query: int = 0,
) -> tuple[Neighbors, Report]:
    """Answer checked queries against prepared points on their device.

    Parameters
    ----------
    queries : tensor of shape (m, d)
    prepared : DevicePoints
    plan : GpuPlan
    own : int64 tensor of shape (m,), optional
        The point that each query is, which it must not find.
    bar : Counter, optional
        Counts pairs, m * n in all.
    first_point, first_query : int
        Numbers of ``prepared.points[0]`` and ``queries[0]`` among all rows of their names, for messages.

    Returns
    -------
    Neighbors of tensors of shape (m, k), and the Report of the run

    Raises
    ------
    ValueError
        A row, of the points first, has a value that no search accepts.
    MemoryError
        The device has no room even for one query at a time.
    """
    import torch

    started = time.perf_counter()
    m, n = len(queries), len(prepared.points)
    double = torch.float64 in (queries.dtype, prepared.points.dtype)
    device = prepared.points.device
    found = Neighbors(
        torch.empty((m, plan.k), dtype=torch.float64 if double else torch.float32, device=device),
        torch.empty((m, plan.k), dtype=torch.int32, device=device),
    )
    proved = torch.empty(m, dtype=torch.uint8, device=device)
    report = Report(rows=m)
    search = _Search(prepared, plan, double, new_flags(device))
    if m >= PILOT_BATCHES * plan.query_batch:
        search.fit_width(queries, own, found, proved)
    pending: deque[tuple[Any, int]] = deque()

    def work(rows: slice) -> None:
        search.batch(queries, own, found, proved, rows, plan.ladder[0], search.width, search.sample)
        event = torch.cuda.Event() if device.type == "cuda" and m > plan.query_batch else None
        if event is not None:
            event.record()
        pending.append((event, (rows.stop - rows.start) * n))
        if len(pending) > IN_FLIGHT:
            _wait(pending, bar)

    in_batches(m, plan.query_batch, work, planned=plan.total_bytes)
    # The one place that waits for the device.
    *flags, unproved = torch.cat([prepared.flags, search.flags, (proved == 0).sum()[None]]).tolist()
    while pending:
        _wait(pending, bar)
    arrays.check_flags(flags[:3], prepared.points, "points", first=first_point)
    if own is None:
        arrays.check_flags(flags[3:], queries, "queries", first=first_query)
    report.certify(plan.ladder[0], m - unproved)
    if unproved:
        search.climb(queries, own, found, proved, report)
    report.seconds = time.perf_counter() - started
    logger.info("%s", report)
    return found, report


def _wait(pending: deque[tuple[Any, int]], bar: Counter | None) -> None:
    event, pairs = pending.popleft()
    if event is not None:
        event.synchronize()
    if bar is not None:
        bar.add(pairs)


class Chooser:
    """Screens and selects: which groups of points are worth refining.

    Parameters
    ----------
    prepared : Prepared
    plan : GpuPlan
        Gives the metric and the size of groups.
    """

    def __init__(self, prepared: Prepared, plan: GpuPlan) -> None:
        self.prepared, self.plan = prepared, plan
        self.elementwise = get_metric(plan.metric).form == "elementwise"

    def sample(self, width: int) -> Sample | None:
        """How rows are sampled for a threshold that lets `width` groups through, if they are."""
        return None if self.elementwise else sample_for(len(self.prepared.points), width, self.plan.group)

    def choose(self, packed: Any, precision: str, width: int, sample: Sample | None) -> tuple[Any, Any]:
        """The groups of each row that are refined, and a lower bound of the scores of all other points.

        Groups are of the plan's size, with a sample of LEAST_GROUP. The bound is None where there are no others.
        """
        groups = group_count(len(self.prepared.points), self.plan.group)
        width = min(width, groups)
        if sample is not None:
            return self._sampled(packed, precision, width, sample)
        minima = self._minima(packed, precision, 1, groups)
        lowest = k_smallest(minima, min(width + 1, groups))
        return lowest.indices[:, :width], lowest.values[:, width] if width < groups else None

    def _minima(self, packed: Any, precision: str, stride: int, groups: int) -> Any:
        import torch

        points = self.prepared.packed(precision, stride)
        minima = torch.empty((len(packed.values), groups), dtype=torch.float32, device=packed.values.device)
        everything = slice(0, len(packed.values))
        if self.elementwise:
            screen_elementwise(packed, points, minima, metric=self.plan.metric, group=self.plan.group, rows=everything)
        else:
            screen(packed, points, everything, self.plan.group, minima)
        return minima

    def _sampled(self, packed: Any, precision: str, width: int, sample: Sample) -> tuple[Any, Any]:
        """Groups of the lowest minima that a sample's threshold lets through, and a bound on all others."""
        m = len(packed.values)
        count = -(-len(self.prepared.points) // sample.stride)
        minima = self._minima(packed, precision, sample.stride, group_count(count, self.plan.group))
        thresholds = k_smallest(minima, sample.rank).values[:, -1].contiguous()
        del minima
        points = self.prepared.packed(precision)
        lists = screen_below(packed, points, slice(0, m), thresholds, sample.capacity)
        return choose_groups(lists, thresholds, width, width + max(6, width // 4))


class _Search:
    """One run: what stays the same over its batches."""

    def __init__(self, prepared: DevicePoints, plan: GpuPlan, double: bool, flags: Any) -> None:
        self.prepared, self.plan, self.double, self.flags = prepared, plan, double, flags
        self.chooser = Chooser(prepared, plan)
        self.width = plan.width

    @property
    def sample(self) -> Sample | None:
        """How rows are sampled at the present width."""
        return self.chooser.sample(self.width)

    def fit_width(self, queries: Any, own: Any, found: Neighbors, proved: Any) -> None:
        """Widen the search until nearly all of some first rows are proved by it.

        How many groups the bounds cannot tell apart depends on the data; rows that are not proved cost a second pass.
        """
        rows = slice(0, min(PILOT_ROWS, self.plan.query_batch))
        while True:
            self.batch(queries, own, found, proved, rows, self.plan.ladder[0], self.width, self.sample)
            unproved = int((proved[rows] == 0).sum())
            if unproved <= PILOT_UNPROVED * rows.stop or self.width >= WIDEST * self.plan.width:
                return
            self.width *= 2

    def batch(
        self,
        queries: Any,
        own: Any,
        found: Neighbors,
        proved: Any,
        rows: slice,
        precision: str,
        width: int,
        sample: Sample | None,
    ) -> None:
        """Search some rows once, write what was found and whether it is proved."""
        plan, prepared = self.plan, self.prepared
        part = queries[rows]
        packed = pack_queries(part, prepared.form, precision, self.flags, first=rows.start)
        chosen, following = self.chooser.choose(packed, precision, width, sample)
        distances, indices = refine_groups(
            part,
            prepared.points,
            chosen,
            plan.k,
            metric=plan.metric,
            group=plan.group if sample is None else LEAST_GROUP,
            own=None if own is None else own[rows],
            double=self.double,
        )
        if following is None:
            proved[rows] = 1
        else:
            certify(prepared.form, packed.shift, distances[:, -1], following, proved[rows], double=self.double)
        found.distances[rows], found.indices[rows] = distances, indices

    def climb(self, queries: Any, own: Any, found: Neighbors, proved: Any, report: Report) -> None:
        """Search the rows that are not proved again, ever more carefully."""
        plan, prepared = self.plan, self.prepared
        steps = [(precision, WIDER * self.width) for precision in plan.ladder[:-1]]
        for precision, width in steps:
            rows = (proved == 0).nonzero()[:, 0]
            if len(rows) == 0:
                return

            def again(some: slice, rows: Any = rows, precision: str = precision, width: int = width) -> None:
                these = rows[some]
                part, good = Neighbors(found.distances[these], found.indices[these]), proved[these]
                ids, everything = None if own is None else own[these], slice(0, len(these))
                self.batch(queries[these], ids, part, good, everything, precision, width, None)
                found.distances[these], found.indices[these] = part
                proved[these] = good

            in_batches(len(rows), plan.query_batch, again, planned=plan.total_bytes)
            report.certify(precision, int((proved[rows] != 0).sum()))
            if precision != plan.ladder[0]:
                prepared.forget(precision)
        rows = (proved == 0).nonzero()[:, 0]
        # What compares with everything works in the room that a batch's minima had.
        scratch = max(LEAST_SCRATCH, 4 * plan.query_batch * group_count(len(prepared.points), plan.group))

        def compare(some: slice) -> None:
            these = rows[some]
            found.distances[these], found.indices[these] = refine_all(
                queries[these],
                prepared.points,
                plan.k,
                metric=plan.metric,
                own=None if own is None else own[these],
                double=self.double,
                scratch_bytes=scratch,
            )

        in_batches(len(rows), plan.query_batch, compare, planned=plan.total_bytes)
        report.certify(plan.ladder[-1], len(rows))
