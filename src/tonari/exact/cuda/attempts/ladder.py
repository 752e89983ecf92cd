"""The schedule of exact search on one GPU: which queries are searched when, and in which way again.

The batches of all queries (attempts/first.py) are launched before the host waits for any results. Then rows that were
not proved are searched again:

    ahead       on the first level, if they are expected to be few: before the host knows which they are
    bytes       in int8, if all elements are integers of one byte (attempts/as_bytes.py)
    nearby      among the points near to them (attempts/nearby.py), where that saves much, or the levels prove nothing
    levels      with all minima and more groups, and with products of higher precision
    copies      among first copies of points (rows/copies.py), if the first level leaves many rows
    nearby      where it saves less
    compare     by exact values of all points

Before the levels, a search nearby costs 2 to 3 ms of the host for each neighbourhood and some ms for the distances of
all points to the centres of a round; a level costs tens of ms where 10,000 rows are left of a search among a million
points. So it pays at once if it saves the screen of each neighbourhood more than it takes. In shorter searches the
levels are cheaper, but where a sample shows that they cannot prove most rows, nearby is where these end in any case.

As soon as so few rows are left that this takes no longer than another attempt, the last is done at once.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
from collections import deque
from collections.abc import Callable
from typing import Any

from tonari import inputs
from tonari.core.neighbors import Neighbors
from tonari.core.progress import Counter
from tonari.core.slices import cut
from tonari.cuda.ahead import expecting
from tonari.cuda.rehearsal import without_data
from tonari.exact.cuda.attempts.as_bytes import shifted_points
from tonari.exact.cuda.attempts.first import Again, DevicePoints, Search, Searchable, SomePoints
from tonari.exact.cuda.attempts.in_batches import in_batches
from tonari.exact.cuda.attempts.nearby import (
    OF_SCREEN,
    OF_VALUES,
    are_inseparable,
    is_worth_a_round,
    neighbourhoods,
    reach_of,
)
from tonari.exact.cuda.plan import CudaPlan
from tonari.exact.cuda.rows.bytes import shifts_of
from tonari.exact.cuda.rows.copies import Subset, numbers_of_first_copies, runs_of_copies
from tonari.exact.cuda.rows.form import DeviceForm
from tonari.exact.cuda.rows.part import plan_for_part
from tonari.exact.cuda.screens.sampling import FirstAttempt
from tonari.exact.report import Report
from tonari.metrics import get_metric

IN_FLIGHT = 2  # batches in flight, few enough that Ctrl-C takes effect and progress is accurate
OF_BYTES = 1 << 34  # products that are left, from which on another packed copy and search take less than the levels
LEAST_LEFT = 256  # rows that a first retry has not proved, from which on copies of points are looked for


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
    if own is not None:
        search.begin_mirror()
    pending: deque[tuple[Any, int]] = deque()
    batch = search.query_batch

    def work(rows: slice) -> None:
        ids = None if own is None else own[rows]
        answer.put(rows, *search.first_batch(queries[rows], ids, rows.start))
        event = torch.cuda.Event() if device.type == "cuda" and m > batch else None
        if event is not None:
            event.record()
        pending.append((event, (rows.stop - rows.start) * n))
        if len(pending) > IN_FLIGHT:
            _wait(pending, bar)

    in_batches(m, batch, work, planned=plan.total_bytes)
    found, proved = answer.found, answer.proved
    retries = Retries(search, own, found, proved, report)
    if search.stragglers:
        retries.ahead()
    *flags, certified = search.state(proved).tolist()  # the one place that waits for the device
    while pending:
        _wait(pending, bar)
    numbered = prepared.points if all_points is None else all_points
    inputs.check_flags(flags[:3], numbered, "points", first=first_point)
    if own is None:
        inputs.check_flags(flags[3:], queries, "queries", first=first_query)
    report.certify(search.level(search.plan.precisions[0]), certified)
    if certified < m:
        retries.run()
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
    if certified < len(queries):
        Retries(prepared.begin(queries, plan), own, found, proved, report).run()
    return report


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


class Retries:
    """Rows that are not proved yet, and how to search them again.

    Parameters
    ----------
    search : Search
    own : int64 tensor of shape (m,) or None
    found : Neighbors
        Of all rows; written where a row is proved.
    proved : uint8 tensor of shape (m,)
        1 for each row that is proved; written.
    report : Report
    """

    def __init__(self, search: Search, own: Any, found: Neighbors, proved: Any, report: Report) -> None:
        self.search, self.own, self.found, self.proved, self.report = search, own, found, proved, report
        self.plan = search.plan
        self.points = search.prepared.points

    def ahead(self) -> None:
        """Search the few rows again that are expected to be left, on the first level, without waiting for the device.

        Which they are is not known here: rows that are proved make up their number. To wait, and then to launch the
        level for these few, takes several times as long as the level itself.
        """
        rows = self.proved.argsort(stable=True)[: self.search.stragglers]
        with contextlib.closing(self.search.levels()) as levels:
            _, search_again = next(levels)
            with self._expecting(functools.partial(rehearse_level, 0), len(rows)):
                self._attempt(rows, search_again)

    def run(self) -> None:
        """Search until all rows are proved."""
        self._in_bytes()
        self._nearby(OF_SCREEN)
        if self._are_inseparable():
            self._nearby(OF_VALUES)
        left = self._left()  # each look waits for the device
        if not len(left):
            return
        with contextlib.closing(self.search.levels()) as levels:
            number = 0
            while not self.search.are_few(len(left)):
                if (following := next(levels, None)) is None:
                    break
                level, search_again = following
                with self._expecting(functools.partial(rehearse_level, number), len(left)):
                    self._attempt(left, search_again)
                still = left[self.proved[left] == 0]
                self.report.certify(level, len(left) - len(still))
                may_be_copies = number == 0 and self.plan.subsets and len(still) >= LEAST_LEFT
                if may_be_copies and self._without_copies():
                    return
                left = still
                number += 1
            if not len(left):
                return
            self._nearby(OF_VALUES)
            if not (rows := len(last := self._left())):
                return
            with self._expecting(rehearse_comparison, rows):
                self._attempt(last, lambda queries, own: (self.search.compare(queries, own), 1))
            self.report.certify(self.plan.precisions[-1], rows)

    def _left(self) -> Any:
        """Return the numbers of the rows that are not proved."""
        return (self.proved == 0).nonzero()[:, 0]

    def _attempt(self, rows: Any, search_again: Again) -> None:
        """Search some rows, in batches as long as those of the plan; those that are proved keep what they have."""

        def work(some: slice) -> None:
            these = rows[some]
            ids = None if self.own is None else self.own[these]
            part, done = search_again(self.search.queries[these], ids)
            before = self.proved[these]
            for lists, again in zip(self.found, part, strict=True):
                lists[these] = again.where(before[:, None] == 0, lists[these])
            self.proved[these] = before | done

        in_batches(len(rows), self.plan.query_batch, work, planned=self.plan.total_bytes)

    def _without_copies(self) -> bool:
        """Search the rows among the points without copies that they cannot find; False if there are none."""
        kept = numbers_of_first_copies(self.points, self.plan.k + 1)
        if kept is not None:
            rows = self._left()
            with self._expecting_among([(len(rows), len(kept))]):
                self.among(kept, rows)
        return kept is not None

    def _in_bytes(self) -> None:
        """Search the rows that are left in int8, if all elements are integers of one byte: most are proved then."""
        if not self.plan.bytes_later or self.plan.precisions[0] == "int8":
            return
        rows = self._left()
        if len(rows) * self.points.numel() < OF_BYTES or not (shifts := shifts_of(self.points)):
            return
        queries = self.search.queries[rows]
        if shifts[0] not in shifts_of(queries):
            return
        ids = None if self.own is None else self.own[rows]
        part = self._plan(len(self.points), len(rows))

        def rehearse() -> None:
            begun = shifted_points(without_data(self.points), part, shifts[0]).begin(without_data(queries), part)
            begun.first_batch(begun.queries, without_data(ids))

        with expecting(rehearse):
            made = shifted_points(self.points, part, shifts[0], queries)
            if made.is_usable():
                self._answer(rows, *search_on_device(queries, made, part, own=ids))

    def _nearby(self, least: int) -> None:
        """Search rows among the points near to them, where that saves `least` values and more."""
        rows = self._rows_with_neighbourhoods(least)
        if rows is None:
            return
        for found in neighbourhoods(*self._places_of(rows), least):
            with self._expecting_among(found.sizes):
                for some, numbers in found:
                    self.among(numbers, rows[some])

    def _are_inseparable(self) -> bool:
        """Whether most rows are left, and the levels can prove few of them, but a search nearby most."""
        rows = self._rows_with_neighbourhoods(OF_VALUES)
        if rows is None or 2 * len(rows) < len(self.proved):
            return False
        return are_inseparable(*self._places_of(rows), self.search.most_refined)

    def _rows_with_neighbourhoods(self, least: int) -> Any:
        """Return the numbers of the rows that are not proved; None if a search nearby cannot save `least` values."""
        if not (self.plan.subsets and get_metric(self.plan.metric).squares):
            return None
        rows = self._left()
        return rows if is_worth_a_round(len(rows), self.points, least) else None

    def _places_of(self, rows: Any) -> tuple[Any, Any, DeviceForm, Any]:
        """Return some queries, the points, their form, and how far the k-th known neighbours of the queries are."""
        form = self.search.prepared.form
        return self.search.queries[rows], self.points, form, reach_of(self.found.distances[rows, -1], form)

    def among(self, numbers: Any, rows: Any) -> None:
        """Search some rows among the points of these numbers."""
        some, queries = Subset(self.points, numbers), self.search.queries[rows]
        ids = None if self.own is None else some.places(self.own[rows])
        fewer, part = self._part(some.rows, len(rows))
        again, done = search_on_device(queries, fewer, part, own=ids)
        self._answer(rows, some.of_all(again), done)

    def _answer(self, rows: Any, found: Neighbors, done: Report) -> None:
        """Take the answers of some rows, all of which are proved, from a search of theirs."""
        self.found.distances[rows], self.found.indices[rows] = found
        self.proved[rows] = 1
        self.report.include(done)

    @functools.cached_property
    def _first_attempt(self) -> FirstAttempt | None:
        return self.search.first_attempt()

    def _part(self, points: Any, rows: int) -> tuple[SomePoints, CudaPlan]:
        """Prepare some of the points, on the device or as a rehearsal, and plan for as many queries."""
        plan, form = self.plan, self.search.prepared.form
        if points.device.type == "meta":
            form = form.without_data()
        kept = form if plan.precisions[0] == "int8" else None
        made = SomePoints(points, plan.metric, plan.precisions[0], self._first_attempt, kept)
        return made, self._plan(len(points), rows)

    def _plan(self, points: int, rows: int) -> CudaPlan:
        """Return the plan of a search for some rows, which does not look for bytes again."""
        part = plan_for_part(self.plan, points, rows, self.plan.devices[0])
        return dataclasses.replace(part, bytes_later=False)

    def _expecting_among(self, sizes: list[tuple[int, int]]) -> contextlib.AbstractContextManager[None]:
        """Return the context of searches among some of the points: of each, the number of rows and that of points."""

        def rehearse() -> None:
            queries, points, own = map(without_data, (self.search.queries, self.points, self.own))
            for rows, count in sizes:
                fewer, part = self._part(points.new_empty((count, points.shape[1])), rows)
                begun = fewer.begin(queries.new_empty((rows, queries.shape[1])), part)
                begun.first_batch(begun.queries, None if own is None else own.new_empty(rows))

        return expecting(rehearse)

    def _expecting(
        self, stage: Callable[[Search, int, Any], None], rows: int
    ) -> contextlib.AbstractContextManager[None]:
        """Return the context in which so many rows are searched again, as `stage` rehearses it."""

        def rehearse() -> None:
            twin = self.search.prepared.without_data().begin(without_data(self.search.queries), self.plan)
            twin.width = self.search.width
            for length in {some.stop - some.start for some in cut(rows, self.plan.query_batch)}:
                stage(twin, length, without_data(self.own))

        return expecting(rehearse)


def rehearse_level(number: int, search: Search, rows: int, own: Any) -> None:
    """Search so many rows again on one of the levels: queries and points are on the device "meta".

    What comes after it is rehearsed when it is known how many rows are left: few are selected from in another way.
    """
    if number == 0 and search.plan.subsets and rows >= LEAST_LEFT:
        runs_of_copies(search.prepared.points)
    with contextlib.closing(search.levels()) as levels:
        for _, search_again in itertools.islice(levels, number, number + 1):
            search_again(search.queries[:rows], None if own is None else own[:rows])


def rehearse_comparison(search: Search, rows: int, own: Any) -> None:
    """Compare so many rows with all points: queries and points are on the device "meta"."""
    search.compare(search.queries[:rows], None if own is None else own[:rows])
