"""The route on which the GPU screens and the CPU refines (matsumoto2015): the original rows need not fit on the GPU.

    GPU   screen, select (search.py)   -> members of the chosen groups    of one batch of queries, while
    CPU   exact values, order          -> the k best                      of the previous batch are computed
    GPU   certify                      -> proved or not

Points are in host memory or in a mapped file; their packed copy is on the device. Rows that are not proved are searched
once more, with all minima and more groups; exact search on the CPU answers the rest.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from tonari import inputs
from tonari.core._native import exact_values
from tonari.core.neighbors import Neighbors, index_dtype
from tonari.core.progress import Counter, ProgressLike
from tonari.core.slices import cut
from tonari.core.workers import Workers, default_threads
from tonari.cuda.devices import over, to_device
from tonari.cuda.prefetch import slabs
from tonari.cuda.streams import Written
from tonari.exact.cpu.prepared import PreparedPoints
from tonari.exact.cpu.search import search_prepared
from tonari.exact.cuda.certify import certify
from tonari.exact.cuda.chooser import Chooser
from tonari.exact.cuda.form import SAMPLE_ROWS, make_form
from tonari.exact.cuda.groups import LEAST_GROUP
from tonari.exact.cuda.memory import MEMBER_BYTES, wider
from tonari.exact.cuda.oom_retry import in_batches
from tonari.exact.cuda.pack import PackedPoints, new_flags, pack_points, pack_queries, room_for
from tonari.exact.cuda.partition import Place, search_whole
from tonari.exact.cuda.plan import CudaPlan
from tonari.exact.cuda.refine import NO_MEMBER, SCRATCH_BYTES, list_members
from tonari.exact.plan import plan_on_cpu
from tonari.exact.report import Report
from tonari.metrics import get_metric
from tonari.metrics.problem import make_problem
from tonari.metrics.reference import returned
from tonari.select import select_k

MEMBERS = 1 << 13  # per slice of work: takes a millisecond, or a second if each member is a page read from disk


class ScreenedPoints:
    """Points in host memory, and their packed copy on a device.

    Parameters
    ----------
    points : C-contiguous array of shape (n, d)
        Refinement reads it, so it must not change.
    plan : CudaPlan
        Points are copied to the device and packed ``point_slab`` rows at a time.

    Attributes
    ----------
    flags : int64 tensor of shape (3,)
        As for :class:`tonari.exact.cuda.batches.DevicePoints`.
    """

    def __init__(self, points: npt.NDArray[Any], plan: CudaPlan) -> None:
        n, d = points.shape
        device = torch.device(plan.devices[0])
        self.points = points
        self.form = make_form(to_device(np.ascontiguousarray(points[:: -(-n // SAMPLE_ROWS)]), device), plan.metric)
        self.flags = new_flags(device)
        precision = plan.precisions[0]
        whole = room_for(n, d, precision, device)
        bounds = cut(n, plan.point_slab)
        with contextlib.closing(slabs(points, bounds, device)) as arriving:
            for here, rows in zip(bounds, arriving, strict=True):
                room = whole.part(here.start, len(rows))
                pack_points(rows, self.form, precision, self.flags, first=here.start, room=room)
        self._packed = {1: (whole, whole.written())}
        self._written = Written(self.form.centre, self.form.scale, self.flags)

    def read(self) -> None:
        """Make the current stream wait until form and flags are written."""
        self._written.read()

    def packed(self, precision: str, stride: int = 1) -> PackedPoints:
        """Return the packed copy of every stride-th point, for use on the current stream, at the only precision."""
        if stride not in self._packed:
            part = self.packed(precision).every(stride)
            self._packed[stride] = part, part.written()
        packed, written = self._packed[stride]
        written.read()
        return packed


def prepare_host_refine(points: npt.NDArray[Any], plan: CudaPlan, progress: ProgressLike = None) -> ScreenedPoints:
    """Pack points on the plan's device, slab by slab."""
    return ScreenedPoints(points, plan)


def search_host_refine(
    queries: Any, prepared: ScreenedPoints, plan: CudaPlan, *, self_join: bool = False, progress: ProgressLike = None
) -> tuple[Neighbors, Report]:
    """Search points in host memory; see :mod:`tonari.exact.cuda.dispatch`."""
    return search_whole(search_part, queries, prepared, plan, self_join, progress)


def search_part(
    queries: Any, prepared: ScreenedPoints, plan: CudaPlan, place: Place, bar: Counter
) -> tuple[Neighbors, Report]:
    """See :mod:`tonari.exact.cuda.partition`; results are NumPy arrays."""
    prepared.read()
    inputs.check_flags(prepared.flags, prepared.points, "points", first=place.first_point)
    search = _Search(queries, prepared, plan, place, bar)
    everything = np.arange(len(queries))
    left = search.screen(everything, plan.width, sampled=True)
    inputs.check_flags(search.flags, queries, "points" if place.self_join else "queries", first=place.first_query)
    if len(left):
        left = search.screen(left, wider(plan.d) * plan.width, sampled=False)
    if len(left):
        search.compare(left)
    return search.found, search.report


@dataclass
class _Batch:
    """A batch of queries whose screen on the device is launched.

    Attributes
    ----------
    numbers : int64 array (rows,)
        The numbers of the queries in the search.
    rows : array (rows, d)
        The queries, in host memory.
    members : int32 array (rows, columns)
        Members of the chosen groups, ascending in each row and padded with NO_MEMBER. Valid after the event `sent`.
    sent : torch.cuda.Event or None
        None on the CPU, where `members` are valid already.
    shift, following : tensors
        Input of the certificate.
    """

    numbers: npt.NDArray[np.int64]
    rows: npt.NDArray[Any]
    members: npt.NDArray[np.int32]
    sent: Any
    shift: Any
    following: Any


class _Search:
    """The state that all batches of one search share."""

    def __init__(self, queries: Any, prepared: ScreenedPoints, plan: CudaPlan, place: Place, bar: Counter) -> None:
        self.queries, self.prepared, self.plan, self.place, self.bar = queries, prepared, plan, place, bar
        m, n = len(queries), len(prepared.points)
        self.device = torch.device(plan.devices[0])
        self.flags = new_flags(self.device)
        self.chooser = Chooser(prepared, plan)
        self.workers = Workers(default_threads())
        double = "float64" in (inputs.name_of_dtype(queries), prepared.points.dtype.name)
        self.descending = get_metric(plan.metric).descending
        self.found = Neighbors(
            np.full((m, plan.k), -np.inf if self.descending else np.inf, np.float64 if double else np.float32),
            np.full((m, plan.k), -1, index_dtype(n)),
        )
        self.report = Report(rows=m)

    def screen(self, numbers: npt.NDArray[np.int64], width: int, *, sampled: bool) -> npt.NDArray[np.int64]:
        """Search some queries, write the results, and return the numbers of the queries that are not proved."""
        verdicts: list[Any] = []
        ahead: list[_Batch] = []

        def work(some: slice) -> None:
            batch = self._launch(numbers[some], width, sampled)
            if ahead:
                verdicts.append(self._finish(ahead[0], counted=sampled))
            ahead[:] = [batch]

        members = width * max(self.plan.group, 2 * LEAST_GROUP)  # most members of a row, sampled or not
        most = max(1, SCRATCH_BYTES // (MEMBER_BYTES * members))
        in_batches(len(numbers), min(most, self.plan.query_batch), work, planned=self.plan.total_bytes)
        verdicts.append(self._finish(ahead.pop(), counted=sampled))
        proved = torch.cat(verdicts).cpu().numpy() > 0
        self.report.certify(self.plan.precisions[0], int(np.count_nonzero(proved)))
        left: npt.NDArray[np.int64] = numbers[~proved]
        return left

    def compare(self, numbers: npt.NDArray[np.int64]) -> None:
        """Answer some queries by exact search on the CPU, which packs points slice by slice and keeps none."""
        points, plan = self.prepared.points, self.plan
        rows = self._on_host(self.queries, numbers)
        n, d = points.shape
        problem = make_problem(n, len(rows), d, plan.k, dtype=points.dtype, query_dtype=rows.dtype, metric=plan.metric)
        on_cpu = plan_on_cpu(problem, resident=False)
        prepared = PreparedPoints(points, on_cpu, False)
        part, report = search_prepared(rows, prepared, on_cpu, self_ids=self._own(numbers), progress=False)
        self.found.distances[numbers], self.found.indices[numbers] = part
        self.report.refined += report.refined
        self.report.certify(plan.precisions[-1], len(numbers))

    def _launch(self, numbers: npt.NDArray[np.int64], width: int, sampled: bool) -> _Batch:
        """Launch the screen of a batch; this waits for the device only if the queries are there."""
        plan, precision = self.plan, self.plan.precisions[0]
        rows = self._on_host(self.queries, numbers)
        sample = self.chooser.sample(width) if sampled else None
        packed = pack_queries(self._there(rows), self.prepared.form, precision, self.flags, first=int(numbers[0]))
        chosen, following = self.chooser.choose(packed, precision, width, sample)
        group = plan.group if sample is None else LEAST_GROUP
        own = self._own(numbers)
        ids = None if own is None else self._there(own)
        members = list_members(chosen, len(self.prepared.points), group, ids, chosen.shape[1] * group)
        if self.device.type == "cpu":
            return _Batch(numbers, rows, members.numpy(), None, packed.shift, following)
        pinned = torch.empty(members.shape, dtype=members.dtype, pin_memory=True)
        pinned.copy_(members, non_blocking=True)
        sent = torch.cuda.Event()
        sent.record()
        return _Batch(numbers, rows, pinned.numpy(), sent, packed.shift, following)

    def _finish(self, batch: _Batch, *, counted: bool) -> Any:
        """Refine a batch, write the results, and launch its certificate, a tensor with 1 for each proved row."""
        if batch.sent is not None:
            batch.sent.synchronize()
        count, columns = batch.members.shape
        slices = cut(count, max(1, MEMBERS // columns))
        self.report.refined += sum(self.workers.map(lambda some: self._refine(batch, some), slices))
        if batch.following is None:
            proved = torch.ones(count, dtype=torch.uint8, device=self.device)
        else:
            proved = torch.empty(count, dtype=torch.uint8, device=self.device)
            worst = self._there(np.ascontiguousarray(self.found.distances[batch.numbers, -1]))
            double = worst.dtype == torch.float64
            certify(self.prepared.form, batch.shift, worst, batch.following, proved, double=double)
        if counted:
            self.bar.add(count * len(self.prepared.points))
        return proved

    def _refine(self, batch: _Batch, some: slice) -> int:
        """Write the k best members of some rows by exact values; return the number of members compared."""
        self.workers.check()
        ids = batch.members[some].astype(np.int64)
        missing = ids == NO_MEMBER
        ids[missing] = 0
        values = np.empty(ids.shape)
        exact_values(self.plan.metric, batch.rows[some], self.prepared.points, ids, values)
        rounded = returned(-values if self.descending else values, self.found.distances.dtype)
        rounded[missing] = np.inf
        ids[missing] = -1
        # Of equal values the first column is kept, which has the smaller id.
        best = select_k(rounded, min(self.plan.k, ids.shape[1]), nan="last", threads=1)
        rows, columns = batch.numbers[some], slice(0, best.values.shape[1])
        self.found.distances[rows, columns] = 0 - best.values if self.descending else best.values
        self.found.indices[rows, columns] = np.take_along_axis(ids, best.indices, axis=1)
        return int(missing.size - np.count_nonzero(missing))

    def _own(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64] | None:
        """Return the number of each query among the points; None without a self-join."""
        return numbers + (self.place.first_query - self.place.first_point) if self.place.self_join else None

    def _there(self, rows: npt.NDArray[Any]) -> Any:
        """Copy rows to the device without waiting for it."""
        here = over(rows)
        return here.pin_memory().to(self.device, non_blocking=True) if self.device.type == "cuda" else here

    @staticmethod
    def _on_host(queries: Any, numbers: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """Return some queries as a new array in host memory."""
        if isinstance(queries, np.ndarray):
            return np.ascontiguousarray(queries[numbers])
        return inputs.held(queries[torch.from_numpy(numbers).to(queries.device)].cpu())
