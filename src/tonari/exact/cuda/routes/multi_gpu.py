"""The route for several devices; each has an equal part of the points or of the queries, and a thread of its own.

    points     every query is compared with every part; lists are merged on the first device
    queries    all points are on each device; lists are concatenated

The plan's route searches each part like a whole search (routes/partition.py). If each device has a single batch, one
thread launches all parts, since several threads could not launch at the same time. Launching a part takes the thread a
millisecond or more, and most launches follow the screen, which takes the device longest. The thread therefore launches
a part up to its screen, then the next part, and the rest of the first part at the end:

    host         prepare 0 | screen 0 | prepare 1 | screen 1 | refine 1 | refine 0
    device 0               pack | screen ............................... | refine
    device 1     copy of its points ........ pack | screen ............. | refine
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch

from tonari.core import trail
from tonari.core.process.progress import Counter, Progress, ProgressLike
from tonari.core.process.workers import Workers
from tonari.core.results.neighbors import Neighbors, index_dtype
from tonari.core.rows.slices import cut
from tonari.cuda.device_threads import a_thread_each, side_by_side
from tonari.cuda.devices import await_copies, on, to_device
from tonari.cuda.host_rows import HostRows
from tonari.exact.cuda.attempts.retries.attempt import Begun
from tonari.exact.cuda.divisions import share
from tonari.exact.cuda.plan import CudaPlan
from tonari.exact.cuda.routes import host_refine, resident, streamed
from tonari.exact.cuda.routes.codes import search as codes
from tonari.exact.cuda.routes.partition import SearchPart
from tonari.exact.cuda.rows.part import Place, plan_for_part
from tonari.exact.report import Report
from tonari.select.cuda.ordering.merge import merge_into, no_lists

PARTS = "the points of each device"  # name, in records, for searches of parts of the points


class _Route(NamedTuple):
    prepare: Callable[[Any, CudaPlan], Any]
    search_part: SearchPart


_ROUTES = {
    "resident": _Route(resident.prepare_resident, resident.search_part),
    "streamed": _Route(streamed.prepare_streamed, streamed.search_part),
    "host_refine": _Route(host_refine.prepare_host_refine, host_refine.search_part),
    "codes": _Route(codes.prepare_codes, codes.search_part),
}


# Identity, not equality, decides which replayed searches belong to an object.
@dataclasses.dataclass(frozen=True, eq=False)
class SpreadPoints:
    """Points prepared on several devices.

    Attributes
    ----------
    bounds : list of slices
        The slice of the points on each device.
    parts : sequence
        The prepared points of each slice.
    """

    bounds: list[slice]
    parts: Sequence[Any]
    takes_host_queries: ClassVar[bool] = True  # replayed searches accept queries in host memory


class _PreparedInTurn(Sequence[Any]):
    """The prepared points of each device, which are prepared when they are first requested.

    Parameters
    ----------
    rows : list of tensors
        The points of each device.
    prepare : callable(int, tensor) -> prepared points
    """

    def __init__(self, rows: list[Any], prepare: Callable[[int, Any], Any]) -> None:
        self._rows, self._prepare = rows, prepare
        self._made: dict[int, Any] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, at: Any) -> Any:
        return self.prepared(at)

    def prepared(self, at: int) -> Any:
        """Return the prepared points of a device."""
        if at not in self._made:
            self._made[at] = self._prepare(at, self._rows[at])
        return self._made[at]


def prepare_on_several(
    points: Any, plan: CudaPlan, progress: ProgressLike = None, *, once: bool = False
) -> SpreadPoints:
    """Prepare a part of the points, or all points, on each of the plan's devices.

    With `once`, the points are prepared for a single search, which follows."""
    bounds = _bounds(points, plan, once)

    resident, host = plan.route == "resident", isinstance(points, np.ndarray)

    def rows_of(at: int) -> Any:
        rows = points[bounds[at]]
        return to_device(rows, plan.devices[at], at_once=len(bounds)) if resident else rows

    # A page can be locked only once, and parts may share a page. So the whole array is locked, for use by all parts.
    locked = HostRows(points, plan.devices[0]) if plan.route == "codes" else None

    def prepare(at: int, rows: Any) -> Any:
        part = plan_for_part(plan, len(rows), plan.m, plan.devices[at])
        with on(plan.devices[at]):
            return _ROUTES[plan.route].prepare(rows, part)

    if resident and not host and plan.form_dim == "full":
        # The host does not wait for a device here, so one thread launches faster than several that would take turns.
        in_turn = _PreparedInTurn([rows_of(at) for at in range(len(bounds))], prepare)
        # The device of the largest part packs its points while it copies queries to other devices.
        in_turn.prepared(_largest_first(bounds)[0])
        parts: Sequence[Any] = in_turn if once else list(in_turn)
    else:
        workers = a_thread_each(plan.devices)
        parts = side_by_side(workers, plan.devices, len(bounds), lambda at: prepare(at, rows_of(at)))
    del locked
    if not once and not host:  # with `once`, the search itself waits for all devices
        await_copies(points, plan.devices)
    return SpreadPoints(bounds, parts)


def _bounds(points: Any, plan: CudaPlan, once: bool) -> list[slice]:
    """Return each device's slice of the points: all, an equal share, or a larger one for the device that has all."""
    n, devices = len(points), len(plan.devices)
    if plan.shard == "queries":
        return [slice(0, n)] * devices
    home = "" if isinstance(points, np.ndarray) else str(points.device)
    if not (once and plan.points_at_home and home in plan.devices):
        return cut(n, share(n, devices))
    rest = n - plan.points_at_home
    sizes = [part.stop - part.start for part in cut(rest, share(rest, devices - 1))]
    sizes.insert(plan.devices.index(home), plan.points_at_home)
    ends = list(itertools.accumulate(sizes))
    return [slice(end - size, end) for size, end in zip(sizes, ends, strict=True)]


def search_on_several(
    queries: Any, prepared: SpreadPoints, plan: CudaPlan, *, self_join: bool = False, progress: ProgressLike = None
) -> tuple[Neighbors, Report]:
    """Search points on several devices; see :mod:`tonari.exact.cuda.dispatch`."""
    m, host = len(queries), isinstance(queries, np.ndarray)
    by_queries = plan.shard == "queries"
    tops = tops_of(plan, prepared, m)

    def rows_for(at: int) -> Any:
        if self_join and by_queries:
            return prepared.parts[at].points[tops[at]]
        rows = queries[tops[at]]
        return rows if host else to_device(rows, plan.devices[at])

    # A device copies rows to other devices before it begins any other work.
    rows = [rows_for(at) for at in range(len(tops))]
    workers = a_thread_each(plan.devices)
    with Progress(progress, total=m * plan.n, seconds=plan.seconds, label="neighbours") as bar:
        watched = Watched(bar, workers)

        def part_of(at: int) -> tuple[Any, Any, CudaPlan, Place, Counter]:
            here, top = prepared.bounds[at], tops[at]
            part = plan_for_part(plan, here.stop - here.start, len(rows[at]), plan.devices[at])
            return rows[at], prepared.parts[at], part, Place(here.start, top.start, self_join), watched

        def search(at: int) -> tuple[Neighbors, Report]:
            return _ROUTES[plan.route].search_part(*part_of(at))

        started, count, bounds = time.perf_counter(), len(tops), prepared.bounds
        joined: Neighbors | None = None
        with contextlib.nullcontext() if by_queries else trail.part(PARTS, count * m):
            if plan.route == "resident" and not host and all(len(part) <= plan.query_batch for part in rows):
                begun = _all_begun(_largest_first(bounds[:count]), lambda at, then: _launched(*part_of(at), then))
                # Lists are joined while the host waits. The join overwrites its first list, which may be needed again.
                first, *others = [part.found for part in begun]
                copy = Neighbors(*(each.clone() for each in first))
                joined = join([copy, *others], plan, prepared.bounds, queries.device, m)
                left = [at for at, part in enumerate(begun) if not part.proved_all()]
                joined = None if left else joined
                answers = _all_ended(begun, left, workers, plan.devices)
            else:
                answers = side_by_side(workers, plan.devices, count, search)
        record = trail.current.get()
        if record is not None and not by_queries:
            record.tried(merged_name(count), m, m, time.perf_counter() - started)
    report = Report(rows=m)
    for _, of_part in answers:
        report.include(of_part)
    if joined is not None:
        return joined, report
    # Results that the CPU computed are NumPy arrays.
    lists = [Neighbors(*(torch.as_tensor(array) for array in found)) for found, _ in answers]
    where = lists[0].distances.device if not by_queries else "cpu" if host else queries.device
    return join(lists, plan, prepared.bounds, where, m), report


def _largest_first(bounds: Sequence[slice]) -> list[int]:
    """Return device indices by descending numbers of points; the device that holds all points, if any, is first."""
    return sorted(range(len(bounds)), key=lambda at: bounds[at].start - bounds[at].stop)


def tops_of(plan: CudaPlan, prepared: SpreadPoints, m: int) -> list[slice]:
    """Return the slice of the queries that each device searches."""
    if plan.shard == "queries":
        return cut(m, share(m, len(plan.devices)))
    return [slice(0, m)] * len(prepared.bounds)


def parts_of(plan: CudaPlan, prepared: SpreadPoints, m: int) -> list[tuple[slice, CudaPlan]]:
    """Return, for each device, the slice of its queries and the plan of its part."""
    tops = tops_of(plan, prepared, m)
    return [
        (top, plan_for_part(plan, here.stop - here.start, top.stop - top.start, device))
        for here, top, device in zip(prepared.bounds, tops, plan.devices, strict=False)
    ]


def join(lists: Sequence[Neighbors], plan: CudaPlan, bounds: Sequence[slice], device: Any, m: int) -> Neighbors:
    """Join the lists of all devices into the answer for m queries.

    Lists of parts of the points are merged; lists of successive queries are concatenated.

    Parameters
    ----------
    lists : Neighbors of tensors
        The lists of each part; the first ones may be overwritten.
    plan : CudaPlan
        The plan of the whole search.
    bounds : slices
        The points of each part.
    device : torch device
        The device of the result if the queries are divided. Lists of parts of the points are merged on the plan's first
        device.
    m : int
    """
    first = lists[0]
    double = first.distances.dtype == torch.float64
    if plan.shard == "queries":
        found = no_lists(m, plan.k, plan.n, plan.metric, double=double, device=device)
        for top, part in zip(cut(m, share(m, len(plan.devices))), lists, strict=True):
            found.distances[top], found.indices[top] = part
        return found
    if first.distances.shape[1] == plan.k and first.indices.element_size() == index_dtype(plan.n).itemsize:
        found, others = first, range(1, len(lists))  # the first part begins with point 0
    else:
        found, others = no_lists(m, plan.k, plan.n, plan.metric, double=double, device=device), range(len(lists))
    for at in others:
        merge_into(found, lists[at], bounds[at].start, plan.metric, torch.device(plan.devices[0]))
    return found


def merged_name(count: int) -> str:
    """Return the name, in records, of the step that merges the lists of `count` devices."""
    return f"lists of {count} devices, merged"


def _launched(
    queries: Any, prepared: Any, plan: CudaPlan, place: Place, bar: Counter, after_screen: Callable[[], None]
) -> Begun:
    """Launch the search of a part on its device; see :func:`tonari.exact.cuda.routes.resident.begin_part`."""
    with on(plan.devices[0]):
        return resident.begin_part(queries, prepared, plan, place, bar, after_screen)


def _all_begun(order: Sequence[int], begin: Callable[[int, Callable[[], None]], Begun]) -> list[Begun]:
    """Launch the searches of all parts in the given order, each as soon as the screen of the previous part is launched.

    `begin(part, then)` launches a part, and calls `then` after its screen.
    """
    begun: dict[int, Begun] = {}
    failed: list[BaseException] = []

    def begin_from(turn: int) -> None:
        if turn < len(order):
            try:
                begun[order[turn]] = begin(order[turn], lambda: begin_from(turn + 1))
            except BaseException as error:  # raised at the end: `begin_from` may run inside another part's launch
                failed.append(error)

    begin_from(0)
    if failed:
        raise failed[0]
    return [begun[part] for part in sorted(order)]


def _all_ended(
    begun: Sequence[Begun], left: Sequence[int], workers: Workers, devices: Sequence[str]
) -> list[tuple[Neighbors, Report]]:
    """End the searches of all parts; parts in `left`, which have unproved rows, end in threads of their own."""
    ended = {at: part.end() for at, part in enumerate(begun) if at not in left}  # end() does not wait here
    again = side_by_side(workers, [devices[at] for at in left], len(left), lambda at: begun[left[at]].end())
    ended.update(zip(left, again, strict=True))
    return [ended[at] for at in range(len(begun))]


class Watched:
    """The progress of a part; it stops the part if another part has failed or Ctrl-C was pressed."""

    def __init__(self, bar: Progress, workers: Workers) -> None:
        self._bar, self._workers = bar, workers

    def add(self, amount: int) -> None:
        self._workers.check()
        self._bar.add(amount)
