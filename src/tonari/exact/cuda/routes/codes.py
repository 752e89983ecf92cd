"""The route for points in host memory with codes on the device: contracted rows, one byte per coordinate.

    look       screens/coded.py             -> points whose codes are near
    refine     the rows of these points, read from host memory by the device     -> the k-th value
    within     screens/coded.py             -> all points that may be as near, and a mark for complete lists
    refine     their rows, in the same way  -> the k best

Codes take 64 bytes per point of 61 coordinates, or 128 of 123, and a query reads few rows, so that points may be
several times as large as the memory of the device. Unproved rows, whose lists were too short, are searched again with
longer lists. The remaining rows are searched in all dimensions (host_search.py).
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from tonari import inputs
from tonari.core.process.garbage import collection_off
from tonari.core.process.progress import Counter, ProgressLike
from tonari.core.results.neighbors import Neighbors
from tonari.core.slices import cut
from tonari.core.trail import decided
from tonari.cuda.compiling.ahead import expecting
from tonari.cuda.compiling.rehearsal import joined, to_visit
from tonari.cuda.copying.prefetch import slabs
from tonari.cuda.devices import over, to_device
from tonari.cuda.host_rows import HostRows
from tonari.cuda.recorded import check_room, record
from tonari.cuda.streams import Written
from tonari.exact.cuda import tuning
from tonari.exact.cuda.attempts.in_batches import IDLE, in_batches
from tonari.exact.cuda.coded_memory import CODED_BYTES
from tonari.exact.cuda.plan import CudaPlan
from tonari.exact.cuda.refine.groups import NO_MEMBER, refine_groups
from tonari.exact.cuda.routes.host_search import HostSearch, Sent, ascending
from tonari.exact.cuda.routes.partition import search_whole
from tonari.exact.cuda.rows.codes import Coding, FoldedCodes, code_points, code_queries, codes_for, coding_of
from tonari.exact.cuda.rows.contraction import ContractedRows, sample_rows
from tonari.exact.cuda.rows.pack import new_flags
from tonari.exact.cuda.rows.part import Place
from tonari.exact.cuda.screens.coded import CodedScreen
from tonari.exact.cuda.screens.contracted import retried_at_once
from tonari.exact.cuda.screens.sampling import Sample
from tonari.exact.cuda.screens.widths import Fitted, fitted_width
from tonari.exact.report import Report
from tonari.inputs.arrays.values import NO_ROW
from tonari.select.cuda.order import merge_lists


class CodedPoints:
    """Points in host memory with codes on a device; see :class:`tonari.exact.cuda.rows.prepared.Contracted`.

    Parameters
    ----------
    points : C-contiguous array of shape (n, d)
    plan : CudaPlan
        Points are copied to the device and coded ``point_slab`` rows at a time.

    Attributes
    ----------
    beyond : int32 tensor
        The numbers of the points beyond the range of codes.
    host : HostRows
        The original rows, as the device reads them.
    fitted : dict of int to Fitted
        The number of refined groups that earlier searches fitted, by k.
    replays : Replays
    """

    def __init__(self, points: npt.NDArray[Any], plan: CudaPlan) -> None:
        n, d = points.shape
        p, device = int(plan.form_dim), torch.device(plan.devices[0])
        self.points: Any = points
        self.flags = new_flags(device)
        sample = to_device(np.ascontiguousarray(points[:: -(-n // sample_rows(d))]), device)
        self._code_by(coding_of(sample, plan.metric, p))
        del sample
        whole = codes_for(n, p, device)
        self.farthest = torch.zeros(1, dtype=torch.float64, device=device)
        beyond = []
        bounds = cut(n, plan.point_slab)
        with contextlib.closing(slabs(points, bounds, device)) as arriving:
            for here, rows in zip(bounds, arriving, strict=True):
                apart = code_points(rows, self.coding, self.flags, first=here.start, room=whole.part(here))
                self.farthest = torch.maximum(self.farthest, apart.amax()[None])
                beyond.append((apart < 0).nonzero()[:, 0] + here.start)  # waits for the device
        self.host = HostRows(points, device)
        decided("rows", f"read {'by the device' if self.host.is_mapped else 'by the CPU'}, from host memory")
        self.beyond = torch.cat(beyond).to(torch.int32)
        if len(self.beyond):
            decided("codes", f"{len(self.beyond)} points are beyond range, and candidates of all queries")
        self._keep(whole)

    @classmethod
    def without_data(cls, plan: CudaPlan) -> CodedPoints:
        """Return points that are coded by a plan, without data, for a rehearsal of their preparation or a search."""
        coded = object.__new__(cls)
        n, d, p, dtype = plan.n, plan.d, int(plan.form_dim), getattr(torch, plan.dtype)
        coded.points = torch.empty((n, d), dtype=dtype, device="meta")
        coded.flags, coded.host = new_flags("meta"), HostRows.without_data(n, d, dtype)
        coded._code_by(coding_of(coded.points[:: -(-n // sample_rows(d))].contiguous(), plan.metric, p))
        coded.farthest = torch.empty(1, dtype=torch.float64, device="meta")
        coded.beyond = torch.empty(0, dtype=torch.int32, device="meta")
        coded._keep(codes_for(n, p, coded.flags.device))
        return coded

    def _code_by(self, coding: Coding) -> None:
        self.coding, self.by, self.form = coding, coding.by, coding.by.form

    def _keep(self, whole: FoldedCodes) -> None:
        """Keep the codes of all points."""
        self.rows = ContractedRows(whole.values[: whole.n, : whole.p], None)
        self.fitted: dict[int, Fitted] = {}
        self.replays = Replays()
        self.copies: Any = _Samples(whole)  # codes, which are packed rows of another kind
        tensors = (self.by.directions, self.by.origin, self.by.stretch, self.coding.shift, self.farthest, self.flags)
        self.written = Written(self.form.centre, self.form.scale, *tensors, self.beyond, whole.values)


class _Samples:
    """The codes of all points, and the samples that are taken from them."""

    def __init__(self, whole: FoldedCodes) -> None:
        self._made = {1: (whole, Written(whole.values))}

    def packed(self, precision: str, stride: int = 1) -> FoldedCodes:
        """Return the codes of every stride-th point, for use on the current stream."""
        if stride not in self._made:
            some = self.packed(precision).every(stride)
            self._made[stride] = some, Written(some.values)
        codes, written = self._made[stride]
        written.read()
        return codes

    def forget_samples(self) -> None:
        """Drop the codes of some of the points."""
        self._made = {1: self._made[1]}


def rehearse_coding(plan: CudaPlan) -> None:
    """Launch the kernels that make codes by a plan on tensors without data; see attempts/rehearse.py."""
    prepared = CodedPoints.without_data(plan)
    slab = prepared.points[: plan.point_slab]
    code_points(slab, prepared.coding, prepared.flags, first=0, room=codes_for(len(slab), prepared.by.p, slab.device))


def rehearse_codes(plan: CudaPlan, query_dtype: str, *, self_join: bool) -> None:
    """Launch the kernels of the first pass of a search on tensors without data; see attempts/rehearse.py."""
    sizes = {some.stop - some.start for some in cut(plan.m, plan.query_batch)}
    _rehearse_pass(plan, query_dtype, sizes, plan.contracted_width, self_join=self_join)
    # Many searches leave a few rows. Other kernels answer them, and would be compiled while the search waits.
    few = {min(plan.m, rows) for rows in tuning.CODED_LEFT}
    _rehearse_pass(plan, query_dtype, few, tuning.WIDER * plan.contracted_width, self_join=self_join)


class Replays:
    """Batches of searches that are replayed as CUDA graphs, by their sizes. Several threads may use it at once.

    The first batch of some sizes is launched step by step, the second one is captured.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], _Graph | None] = {}  # None: seen, or not to be captured
        self._failed: set[tuple[Any, ...]] = set()
        self._lock = threading.Lock()
        _ALL.add(self)

    def graph(self, key: tuple[Any, ...], make: Callable[[], _Graph]) -> _Graph | None:
        """Return the graph of a batch, captured by `make`; None for the first batch, or if the capture has failed."""
        with self._lock:
            if key not in self._known:
                self._known[key] = None
                while len(self._known) > tuning.REMEMBERED:
                    del self._known[next(iter(self._known))]
                return None
            graph = self._known.pop(key)
            if graph is None and key not in self._failed:
                self._drop_all_but(tuning.CODED_GRAPHS - 1)
                try:
                    graph = make()
                except (RuntimeError, MemoryError) as error:  # torch's out-of-memory error is a RuntimeError
                    decided("replay", f"searches like this one are launched step by step: {error}")
                    self._failed.add(key)
            self._known[key] = graph
            return graph

    def forget(self) -> bool:
        """Drop all graphs; return whether there were any."""
        with self._lock:
            return self._drop_all_but(0)

    def _drop_all_but(self, count: int) -> bool:
        kept = [key for key, graph in self._known.items() if graph is not None]
        for key in kept[: max(0, len(kept) - count)]:
            del self._known[key]
        return len(kept) > count


_ALL: weakref.WeakSet[Replays] = weakref.WeakSet()


def _forget_replays() -> bool:
    if not any(list(_ALL)):
        return False
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
    dropped = [replays.forget() for replays in list(_ALL)]  # of all points, not of the first ones with a graph
    return any(dropped)


atexit.register(_forget_replays)  # before CUDA is shut down
IDLE.append(_forget_replays)


def _rehearse_pass(plan: CudaPlan, query_dtype: str, sizes: set[int], width: int, *, self_join: bool) -> None:
    prepared = CodedPoints.without_data(plan)
    steps = _Steps(prepared, plan, double="float64" in (query_dtype, plan.dtype))
    for rows in sizes:
        queries = torch.empty((rows, plan.d), dtype=getattr(torch, query_dtype), device="meta")
        own = torch.empty(rows, dtype=torch.int64, device="meta") if self_join else None
        steps.launch(queries, own, width, steps.screen.sample(width), 0, prepared.flags)


def prepare_codes(points: npt.NDArray[Any], plan: CudaPlan, progress: ProgressLike = None) -> CodedPoints:
    """Make the codes of the points on the plan's device, slab by slab."""
    return CodedPoints(points, plan)


def search_codes(
    queries: Any, prepared: CodedPoints, plan: CudaPlan, *, self_join: bool = False, progress: ProgressLike = None
) -> tuple[Neighbors, Report]:
    """Search points in host memory by their codes; see :mod:`tonari.exact.cuda.dispatch`."""
    return search_whole(search_part, queries, prepared, plan, self_join, progress)


def search_part(
    queries: Any, prepared: CodedPoints, plan: CudaPlan, place: Place, bar: Counter
) -> tuple[Neighbors, Report]:
    """See :mod:`tonari.exact.cuda.routes.partition`; results are NumPy arrays."""
    prepared.written.read()
    inputs.check_flags(prepared.flags, prepared.points, "points", first=place.first_point)
    search = _Search(queries, prepared, plan, place, bar)
    search.run()
    return search.found, search.report


@dataclass
class _Batch:
    """A batch of queries whose results are being copied to host memory.

    Attributes
    ----------
    some : slice
        The batch among the queries of this pass.
    sent : Sent
        Distances, indices, a mark for each proved row, and the number of refined points.
    """

    some: slice
    sent: Sent


class _Search(HostSearch):
    """A search by codes."""

    refined_where: ClassVar[str] = "refined from host memory"

    @property
    def long_seconds(self) -> float:
        """See :class:`HostSearch`."""
        return tuning.CODES_LONG_SECONDS

    def __init__(self, queries: Any, prepared: CodedPoints, plan: CudaPlan, place: Place, bar: Counter) -> None:
        super().__init__(queries, prepared, plan, place, bar)
        self.prepared = prepared
        self.steps = _Steps(prepared, plan, double=self.double)
        self._first_flags = [NO_ROW] * 3

    def check_queries(self) -> None:
        """See :class:`HostSearch`; the flags of all batches have arrived."""
        inputs.check_flags(self._first_flags, self.queries, self._name, first=self.place.first_query)

    def run(self) -> None:
        """Answer all queries."""
        left, k = np.arange(len(self.queries)), self.plan.k
        with self.workers:
            width, unproved = self._fitted()
            worth = unproved <= tuning.HOPELESS and len(self.prepared.beyond) <= tuning.MOST_BEYOND
            if worth:
                left = self._certified(left, width, first_pass=True)
                self.check_queries()
                if len(left) and width < tuning.CODED_WIDEST * self.plan.contracted_width:
                    self.prepared.fitted[k] = Fitted(2 * width, 0.0)  # for the next search
                for times in (tuning.WIDER, tuning.ROOMY):
                    left = self._certified(left, times * width)
        if len(left):
            self.rest(left, seen=worth)

    def _fitted(self) -> Fitted:
        """Return the number of groups per row for the first pass: the plan's, or, for many queries, a fitted number."""
        plan, fitted = self.plan, self.prepared.fitted
        few = len(self.prepared.beyond) <= tuning.MOST_BEYOND
        if plan.k not in fitted and plan.m >= tuning.FITTED_ROWS and few:
            rows = np.arange(min(tuning.PILOT_ROWS, plan.query_batch, len(self.queries)))

            def unproved_at(width: int) -> float:
                proved = self._pass(rows, width)
                self.check_queries()
                return float(np.count_nonzero(~proved)) / len(rows)

            fitted[plan.k] = fitted_width(plan.contracted_width, unproved_at, widest=tuning.CODED_WIDEST)
        return fitted.get(plan.k, Fitted(plan.contracted_width, 0.0))

    def _certified(
        self, numbers: npt.NDArray[np.int64], width: int, *, first_pass: bool = False
    ) -> npt.NDArray[np.int64]:
        """Search some queries, report the number of proved queries, and return the numbers of the others."""
        if not len(numbers):
            return numbers
        started = time.perf_counter()
        proved = self._pass(numbers, width, self.bar if first_pass else None)
        count, level = int(np.count_nonzero(proved)), self.steps.screen.level("")
        self.certify(level, len(numbers), count, started, again=not first_pass)
        left: npt.NDArray[np.int64] = numbers[~proved]
        return left

    def _pass(self, numbers: npt.NDArray[np.int64], width: int, bar: Counter | None = None) -> npt.NDArray[np.bool_]:
        """Search some queries, write the results, and return a mark for each proved query."""
        proved = np.zeros(len(numbers), np.bool_)
        ahead: list[_Batch] = []
        sample = self.steps.screen.sample(width)

        def finish(batch: _Batch) -> None:
            distances, indices, proved[batch.some], refined, flags = batch.sent.arrive()
            self.report.refined += int(refined)
            self._first_flags = [min(pair) for pair in zip(self._first_flags, flags.tolist(), strict=True)]
            self.write(numbers[batch.some], Neighbors(distances, indices))
            if bar is not None:
                bar.add(len(distances) * len(self.points))

        def work(some: slice) -> None:
            batch = _Batch(some, self._launch(numbers[some], width, sample))
            if ahead:
                finish(ahead[0])
            ahead[:] = [batch]

        size = self.plan.query_batch  # which has room for the widest lists of a first pass
        if width > tuning.CODED_WIDEST * self.plan.contracted_width:
            size = min(size, retried_at_once(width, CODED_BYTES))
        sizes = {some.stop - some.start for some in cut(len(numbers), size)}
        dtype, self_join = inputs.name_of_dtype(self.queries), self.place.self_join
        with expecting(functools.partial(_rehearse_pass, self.plan, dtype, sizes, width, self_join=self_join)):
            in_batches(len(numbers), size, work, planned=self.plan.total_bytes)
        finish(ahead.pop())
        return proved

    def _launch(self, numbers: npt.NDArray[np.int64], width: int, sample: Sample | None) -> Sent:
        """Launch all steps of a batch; waits for the device only if rows are read by the CPU."""
        rows = self.on_host(numbers)
        graph = self._graph_of(rows, width, sample) if self._is_replayed(len(rows), width) else None
        if graph is not None:
            return graph.launch(rows)
        own, flags = self.own_there(numbers), new_flags(self.device)
        done = self.steps.launch(self.there(rows), own, width, sample, int(numbers[0]), flags)
        return Sent(*done.found, done.proved, done.refined, flags)

    def _is_replayed(self, rows: int, width: int) -> bool:
        """Whether launching a batch step by step may take longer than the device needs for it."""
        short = rows * len(self.points) <= tuning.CODED_REPLAYED
        listed = tuning.NEAR_KEPT * width <= tuning.CODED_REPLAYED_LIST  # longer ones are sorted in other ways
        return short and listed and not self.place.self_join and _captures(self.device) and self.prepared.host.is_mapped

    def _graph_of(self, rows: npt.NDArray[Any], width: int, sample: Sample | None) -> _Graph | None:
        key = rows.shape, rows.dtype, self.plan.k, width, sample, self.double, self.plan.group

        def make() -> _Graph:
            check_room(self.device, self.plan.working_bytes)
            # The graph is dropped with the points, and must not keep them.
            steps = _Steps(weakref.proxy(self.prepared), self.plan, double=self.double)
            return _Graph(self.there(rows), steps, width, sample)

        return self.prepared.replays.graph(key, make)


class _Done(NamedTuple):
    """The result of a batch on the device: neighbours, a mark for each proved row, and the number of refined points."""

    found: Neighbors
    proved: Any
    refined: Any


def _captures(device: Any) -> bool:
    return bool(device.type == "cuda")


class _Graph:
    """The steps of a batch, captured as a CUDA graph.

    Parameters
    ----------
    rows : tensor of shape (rows, d)
        Queries of the same number and dtype as in later batches.
    steps : _Steps
    width : int
    sample : Sample, optional
    """

    def __init__(self, rows: Any, steps: _Steps, width: int, sample: Sample | None) -> None:
        self._lock, self._device = threading.Lock(), rows.device
        # Buffers made in inference mode could not be written to outside it. The capture would fail if the collector
        # destroyed another graph.
        with torch.inference_mode(False), torch.no_grad(), collection_off():
            self._rows, self._flags = rows.clone(), new_flags(rows.device)

            def work() -> _Done:
                self._flags.fill_(NO_ROW)
                return steps.launch(self._rows, None, width, sample, 0, self._flags)

            self._graph, self._done = record(work, rows.device, run_first=True)
            self._used = torch.cuda.Event() if rows.device.type == "cuda" else None

    def launch(self, rows: npt.NDArray[Any]) -> Sent:
        """Launch the steps for other queries; the flags number the rows of the batch."""
        # The lock and the event protect the buffers: another stream waits until the results have been copied.
        with self._lock, torch.inference_mode(False), torch.no_grad():
            if self._used is not None:
                self._used.wait()
            self._rows.copy_(over(rows).pin_memory() if self._used is not None else over(rows), non_blocking=True)
            self._graph.replay()
            sent = Sent(*self._done.found, self._done.proved, self._done.refined, self._flags)
            if self._used is not None:
                self._used.record()
        return sent


class _Steps:
    """The steps of a batch of queries on the device.

    Parameters
    ----------
    prepared : CodedPoints
    plan : CudaPlan
    double : bool
        Whether values are returned as float64.
    """

    def __init__(self, prepared: CodedPoints, plan: CudaPlan, *, double: bool) -> None:
        self.prepared, self.plan, self.double = prepared, plan, double
        self.screen = CodedScreen(prepared, plan, prepared.flags, double=double)

    def launch(self, rows: Any, own: Any, width: int, sample: Sample | None, first: int, flags: Any) -> _Done:
        """Launch all steps for some queries.

        `flags`, int64 (3,), is an output: flags of the queries, whose first one has the number `first`.
        """
        coded = code_queries(rows, self.prepared.coding, flags, first=first)
        look = self.screen.coded_look(coded, own, width, sample)
        nearest = look.nearest if _has_no_data(rows) else ascending(look.nearest)
        best = self._refine(rows, nearest)
        kth = best.distances[:, -1]
        members, proved = self.screen.within(look, kth, own, width)
        del look  # all minima
        listed = members.numbers if _has_no_data(rows) else self._others(members.numbers, proved, nearest, own)
        found = merge_lists(best, self._refine(rows, listed), self.plan.k, metric=self.plan.metric)
        if _has_no_data(rows):
            return _Done(Neighbors(*found), proved, None)
        return _Done(Neighbors(*found), proved, (nearest != NO_MEMBER).sum() + (listed != NO_MEMBER).sum())

    def _others(self, members: Any, proved: Any, nearest: Any, own: Any) -> Any:
        """Return the members of proved rows in ascending order, except rows that have been read; see ``ascending``.

        Points beyond range are members of all rows.
        """
        numbers = self._with_beyond(members, own).masked_fill(~proved[:, None], -1)
        places = torch.searchsorted(nearest, numbers).clamp_max_(nearest.shape[1] - 1)
        return ascending(numbers.masked_fill(nearest.gather(1, places) == numbers, -1))

    def _with_beyond(self, numbers: Any, own: Any) -> Any:
        """Return each row's members with the points beyond range, but not the row's own."""
        beyond = self.prepared.beyond
        if not len(beyond):
            return numbers
        others = beyond.expand(len(numbers), -1)
        others = others if own is None else others.masked_fill(others == own[:, None], -1)
        return torch.cat([numbers, others], 1)

    def _refine(self, queries: Any, listed: Any) -> Neighbors:
        """Return the k best of each row's points, listed as by ``ascending``; missing neighbours are -1."""
        plan = self.plan
        columns, row = listed.shape[1], plan.d * self.prepared.points.itemsize
        blocks = cut(len(listed), max(1, tuning.REFINE_SCRATCH_BYTES // (columns * row)))
        parts = [self._refine_block(queries[here], listed[here]) for here in to_visit(blocks, listed.device)]
        if len(parts) == 1:
            return Neighbors(*parts[0])
        return Neighbors(*map(joined, zip(*parts, strict=True)))

    def _refine_block(self, queries: Any, listed: Any) -> tuple[Any, Any]:
        """Return the k best of some rows' points, which are listed in ascending order.

        The copies of the points have the order of the lists, so that ties go to the smaller number.
        """
        plan, device = self.plan, listed.device
        dtype = getattr(torch, inputs.name_of_dtype(self.prepared.points))
        there = torch.empty((listed.numel(), plan.d), dtype=dtype, device=device)
        if _has_no_data(listed):
            flat, places = listed.reshape(-1), listed
        else:
            present = listed != NO_MEMBER
            flat = listed.masked_fill(~present, -1).reshape(-1)
            places = torch.arange(len(flat), dtype=torch.int32, device=device).view(listed.shape)
            places = places.masked_fill(~present, -1)
        self.prepared.host.fetch(flat, there)
        facts: dict[str, Any] = {"metric": plan.metric, "group": 1, "double": self.double}
        distances, indices = refine_groups(queries, there, places, plan.k, **facts)
        if _has_no_data(listed):
            return distances, indices
        return distances, torch.where(indices < 0, indices, flat[indices.clamp_min(0).long()])


def _has_no_data(rows: Any) -> bool:
    """Whether rows belong to a rehearsal, where tensor operations between kernels would take seconds to import."""
    return bool(rows.device.type == "meta")
