"""The schedule of exact search on one GPU: first attempts at all batches, then attempts at unproved rows.

The batches of all queries (attempts/first.py) are launched before the host waits for any results. Then unproved rows,
whose answers are not certified as exact, are searched again by the attempts that :func:`attempts_at` lists:
``print(*attempts_at(search.levels()), sep="\\n")``.

A level is a retry with more groups or a higher precision; it takes tens of ms for 10,000 unproved rows among a million
points. The search of neighbourhoods (retries/nearby.py), which compares rows only with nearby points, takes 2 to 3 ms
of host time per neighbourhood. Computing the distances of all points from the centres of neighbourhoods takes a few
more ms. It runs before the levels if it saves more time in the screen than it takes. Otherwise the levels run first,
unless a sample shows that they cannot prove most rows.

As soon as computing the exact values of all points for the unproved rows takes no longer than one more attempt, these
values are computed.
"""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from tonari import inputs
from tonari.core import trail
from tonari.core.process.caches import emptied_by
from tonari.core.process.progress import Counter
from tonari.core.results.neighbors import Neighbors
from tonari.core.rows.slices import cut
from tonari.cuda.compiling.rehearsal import to_visit
from tonari.cuda.streams import synchronize
from tonari.exact.cuda import tuning
from tonari.exact.cuda.attempts.as_bytes import AsBytes
from tonari.exact.cuda.attempts.first import DevicePoints, Search, Searchable, nothing
from tonari.exact.cuda.attempts.in_batches import in_batches
from tonari.exact.cuda.attempts.level import Level
from tonari.exact.cuda.attempts.retries.attempt import Attempt, Begun, Unproved
from tonari.exact.cuda.attempts.retries.levels import Ahead, AtLevel, ByValues, levels_of, search_unknown
from tonari.exact.cuda.attempts.retries.nearby import Nearby, NearbyAtOnce
from tonari.exact.cuda.attempts.retries.without_copies import WithoutCopies
from tonari.exact.cuda.plan import CudaPlan
from tonari.exact.cuda.rows.part import Place
from tonari.exact.report import Report

# For each plan: the number of rows left unproved by the first attempt of the last search.
_left: dict[CudaPlan, int] = {}
emptied_by(_left.clear)

_WHOLE = Place()


def search_on_device(
    queries: Any,
    prepared: Searchable,
    plan: CudaPlan,
    *,
    own: Any = None,
    bar: Counter | None = None,
    place: Place = _WHOLE,
    all_points: Any = None,
) -> tuple[Neighbors, Report]:
    """Find the neighbours of all queries among prepared points, by all attempts that are necessary.

    Rows on the device "meta" rehearse the first attempts at all batches; later attempts are rehearsed shortly before
    they run.

    Parameters
    ----------
    queries : tensor of shape (m, d)
    prepared : DevicePoints or ContractedPoints
    plan : CudaPlan
    own : int64 tensor of shape (m,), optional
        For each query, the row number of its own point, which is excluded from its answer.
    bar : Counter, optional
        Counts pairs, m * n in all.
    place : Place
        The position of the points and the queries in the whole search, for messages.
    all_points : tensor, optional
        Messages number the rows of this tensor. Default: the prepared points.

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
    return begin_on_device(queries, prepared, plan, own=own, bar=bar, place=place, all_points=all_points).end()


def begin_on_device(
    queries: Any,
    prepared: Searchable,
    plan: CudaPlan,
    *,
    own: Any = None,
    bar: Counter | None = None,
    place: Place,
    all_points: Any = None,
    after_screen: Callable[[], None] = nothing,
) -> Begun:
    """Launch the first attempt at every batch of queries, and return the search that is in progress.

    :meth:`Begun.end` waits for the device, and searches again the rows that are not yet certified as exact. With only
    one batch, the host does not wait before that call. `place` numbers the rows in messages. `after_screen` is called
    once, as soon as the device is busy with the first screen. See :func:`search_on_device`.
    """
    import torch

    m, n, started = len(queries), len(prepared.points), time.perf_counter()
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
    search.after_screen(after_screen)

    def work(rows: slice) -> None:
        ids = None if own is None else own[rows]
        answer.put(rows, *search.first_batch(queries[rows], ids, rows.start))
        event = torch.cuda.Event() if device.type == "cuda" and m > batch else None
        if event is not None:
            event.record()
        pending.append((event, (rows.stop - rows.start) * n))
        if len(pending) > tuning.IN_FLIGHT:
            _wait(pending, bar)

    if device.type == "meta":
        for rows in to_visit(cut(m, batch), device):
            work(rows)
        if m >= search.least_fitted:  # also rehearse the retry of a few unproved rows
            rows = slice(0, tuning.RETRIED)
            search.levels()[0].begin()(queries[rows], None if own is None else own[rows])
        return Begun(answer.found, lambda: True, lambda: (answer.found, report))
    in_batches(m, batch, work, planned=plan.total_bytes)
    search.call_after_screen()  # a search for a few queries has no screen after which the function would be called
    found, proved = answer.found, answer.proved
    left = Unproved(search, own, found, proved, report, search_all)
    # No rows have been searched to fit the width, so the number of unproved rows is not estimated yet.
    if m < search.least_fitted:
        search.left_before = _left.get(plan, 0)
    ahead = search.stragglers
    at_first = proved.sum()[None] if ahead else None
    make_attempts(left, BEFORE_WAITING)
    state = search.state(proved)
    state = torch.cat([state, at_first]) if ahead else state

    read: list[int] = []

    def numbers() -> list[int]:
        if not read:
            read.extend(state.tolist())  # only this line waits for the device
        return read

    def proved_all() -> bool:
        return numbers()[6] == m

    def end() -> tuple[Neighbors, Report]:
        flags, certified, proved_at_first = numbers()[:6], numbers()[6], numbers()[-1]
        while pending:
            _wait(pending, bar)
        numbered = prepared.points if all_points is None else all_points
        inputs.check_flags(flags[:3], numbered, "points", first=place.first_point)
        if own is None:
            inputs.check_flags(flags[3:], queries, "queries", first=place.first_query)
        level, seconds = search.level(search.plan.precisions[0]), time.perf_counter() - started
        report.certify(level, certified, seconds)
        record = trail.current.get()
        if record is not None:
            record.tried(level, m, certified, seconds)
        if ahead and certified == proved_at_first:
            _left.pop(plan, None)
        else:
            _remember(search, plan, m - proved_at_first)
        if certified < m:
            _finish(left)
        return found, report

    return Begun(found, proved_all, end)


def _remember(search: Search, plan: CudaPlan, left: int) -> None:
    """Remember the number of rows that the first attempt left unproved, for the next search by an equal plan.

    A small number is forgotten, because so few rows are compared with all points instead of being retried.
    """
    if not left or search.are_few(left):
        _left.pop(plan, None)
        return
    if len(_left) >= tuning.REMEMBERED:
        _left.clear()
    _left[plan] = left


def search_all(queries: Any, prepared: Searchable, plan: CudaPlan, own: Any) -> tuple[Neighbors, Report]:
    """Search unproved rows separately, for example among a subset of the points; see :func:`search_on_device`."""
    with trail.part("searches of rows that were left", len(queries)):
        return search_on_device(queries, prepared, plan, own=own)


def attempt(queries: Any, prepared: DevicePoints, plan: CudaPlan, *, own: Any = None) -> tuple[Neighbors, Any, Any]:
    """Search one batch of queries once: without retries, without checks of values, without waiting for the device.

    For the parameters see :func:`search_on_device`.

    Returns
    -------
    Neighbors of tensors of shape (m, k)
        The answers; they are valid if no flag is below ``inputs.arrays.values.NO_ROW``.
    uint8 tensor of shape (m,)
        1 for each row whose answer is certified as exact, else 0.
    int64 tensor of shape (7,)
        The state: flags of the points, flags of the queries, and the number of rows certified as exact.
    """
    search = prepared.begin(queries, plan)
    found, proved = search.first_batch(queries, own)
    return found, proved, search.state(proved)


def attempt_again(
    queries: Any, prepared: DevicePoints, plan: CudaPlan, found: Neighbors, proved: Any, rows: int, *, own: Any = None
) -> Any:
    """Search `rows` rows of an :func:`attempt` again with more groups per row, unproved rows first.

    Writes the answers that are now certified to `found` and `proved`; does not wait for the device.

    Returns
    -------
    int64 tensor of shape (7,)
        The state, as from :func:`attempt`.
    """
    search = prepared.begin(queries, plan)
    search_unknown(Unproved(search, own, found, proved, Report(rows=len(queries)), search_all), rows)
    return search.state(proved)


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
    """Search again the rows that an :func:`attempt` did not certify as exact, and write their answers to `found`.

    `certified` is the number of rows that the attempt certified.
    """
    report = Report(rows=len(queries))
    report.certify(plan.precisions[0], certified)
    if certified < len(queries):
        _finish(Unproved(prepared.begin(queries, plan), own, found, proved, report, search_all))
    return report


def attempts_at(levels: Sequence[Level]) -> list[Attempt]:
    """Return all ways to search rows that are not yet certified as exact, in the order in which they are tried.

    `levels` are the retries with more groups per row or a higher precision.
    """
    first, *others = (AtLevel(number, level.name) for number, level in enumerate(levels))
    return [
        AsBytes(),
        Nearby(tuning.NEARBY_SCREEN),
        NearbyAtOnce(tuning.NEARBY_VALUES),
        first,
        WithoutCopies(),
        *others,
        Nearby(tuning.NEARBY_VALUES),
        ByValues(),
    ]


# Attempts that run before the host knows which rows are unproved.
BEFORE_WAITING: tuple[Attempt, ...] = (Ahead(),)


def make_attempts(left: Unproved, attempts: Sequence[Attempt]) -> None:
    """Search the rows not yet certified as exact by one attempt after another; skip those not worth their time."""
    for attempt, following in itertools.zip_longest(attempts, attempts[1:]):
        if left.is_done:
            return
        argument = attempt.worth(left)
        if argument is not None:
            left.following = following
            _run(attempt, left, argument)
            left.tried.append(attempt)


def _run(attempt: Attempt, left: Unproved, given: Any) -> None:
    """Run an attempt; record its duration and the number of rows that it proved."""
    record = trail.current.get()
    if record is None:
        attempt.run(left, given)
        return
    before, started = left.report.certified, time.perf_counter()
    attempt.run(left, given)
    if not attempt.waits and record.timed:
        synchronize([left.proved.device])
    seconds = time.perf_counter() - started if attempt.waits or record.timed else None
    if attempt.counts:
        record.tried(attempt.name, left.report.rows - before, left.report.certified - before, seconds)


def _finish(left: Unproved) -> None:
    """Make attempts until all rows are proved; the last attempt proves every row."""
    with levels_of(left.search) as levels:
        make_attempts(left, attempts_at(levels))


def _wait(pending: deque[tuple[Any, int]], bar: Counter | None) -> None:
    event, pairs = pending.popleft()
    if event is not None:
        event.synchronize()
    if bar is not None:
        bar.add(pairs)


class _Answer:
    """Collects the neighbours and certificates of all batches. The result of a single batch is not copied."""

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
