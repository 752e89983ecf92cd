"""The route for points in host memory: the GPU screens, and the CPU refines (matsumoto2015).

    GPU   screen, select (attempts/first.py)  -> members of the chosen groups    of one batch of queries, while
    CPU   exact values, order          -> the k best                      of the previous batch are computed
    GPU   certify                      -> proved or not

The original rows are in host memory or in a mapped file and need not fit on the device. The device has a packed copy of
these rows; in host_contracted.py, of their contracted rows. Unproved rows, whose answers are not certified as exact,
are screened again with the minima of all groups, and more groups are refined. The remaining rows are searched exactly
on the CPU, or on the device in one pass, which copies all points there (host_search.py).
"""

from __future__ import annotations

import contextlib
import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from tonari import inputs
from tonari.core.process.progress import Counter, ProgressLike
from tonari.core.results.neighbors import Neighbors
from tonari.core.rows.slices import cut
from tonari.cuda.copying.prefetch import slabs
from tonari.cuda.devices import to_device
from tonari.cuda.streams import Written
from tonari.exact.cuda import tuning
from tonari.exact.cuda.attempts.in_batches import in_batches
from tonari.exact.cuda.memory import MEMBER_BYTES
from tonari.exact.cuda.plan import CudaPlan
from tonari.exact.cuda.refine.certify import certify
from tonari.exact.cuda.refine.groups import list_members
from tonari.exact.cuda.routes.host_contracted import HostContractedPoints, search_contracted
from tonari.exact.cuda.routes.host_search import HostSearch, Sent
from tonari.exact.cuda.routes.partition import search_whole
from tonari.exact.cuda.rows.form import make_form
from tonari.exact.cuda.rows.groups import LEAST_GROUP
from tonari.exact.cuda.rows.pack import new_flags, pack_points, pack_queries, room_for
from tonari.exact.cuda.rows.part import Place
from tonari.exact.cuda.rows.prepared import OneCopy
from tonari.exact.cuda.screens.screener import Screener
from tonari.exact.cuda.screens.widths import wider
from tonari.exact.report import Report


class ScreenedPoints:
    """Points in host memory and their packed copy on a device; see :class:`tonari.exact.cuda.rows.prepared.Prepared`.

    Parameters
    ----------
    points : C-contiguous array of shape (n, d)
    plan : CudaPlan
        Points are copied to the device and packed in slabs of ``point_slab`` rows.
    """

    def __init__(self, points: npt.NDArray[Any], plan: CudaPlan) -> None:
        n, d = points.shape
        device = torch.device(plan.devices[0])
        self.points = points
        sample = np.ascontiguousarray(points[:: -(-n // tuning.CENTRE_ROWS)])
        self.form = make_form(to_device(sample, device), plan.metric)
        self.flags = new_flags(device)
        precision = plan.precisions[0]
        whole = room_for(n, d, precision, device)
        bounds = cut(n, plan.point_slab)
        with contextlib.closing(slabs(points, bounds, device)) as arriving:
            for here, rows in zip(bounds, arriving, strict=True):
                room = whole.part(here.start, len(rows))
                pack_points(rows, self.form, precision, self.flags, first=here.start, room=room)
        self.copies = OneCopy(whole)
        self.written = Written(self.form.centre, self.form.scale, self.flags)


def prepare_host_refine(
    points: npt.NDArray[Any], plan: CudaPlan, progress: ProgressLike = None
) -> ScreenedPoints | HostContractedPoints:
    """Pack points on the plan's device, slab by slab, in all dimensions or contracted."""
    return ScreenedPoints(points, plan) if plan.form_dim == "full" else HostContractedPoints(points, plan)


def search_host_refine(
    queries: Any,
    prepared: ScreenedPoints | HostContractedPoints,
    plan: CudaPlan,
    *,
    self_join: bool = False,
    progress: ProgressLike = None,
) -> tuple[Neighbors, Report]:
    """Search points in host memory; see :mod:`tonari.exact.cuda.dispatch`."""
    return search_whole(search_part, queries, prepared, plan, self_join, progress)


def search_part(
    queries: Any, prepared: ScreenedPoints | HostContractedPoints, plan: CudaPlan, place: Place, bar: Counter
) -> tuple[Neighbors, Report]:
    """Search one part (:mod:`tonari.exact.cuda.routes.partition`); results are NumPy arrays."""
    prepared.written.read()
    inputs.check_flags(prepared.flags, prepared.points, "points", first=place.first_point)
    if isinstance(prepared, HostContractedPoints):
        return search_contracted(queries, prepared, plan, place, bar)
    return _Search(queries, prepared, plan, place, bar).answer()


@dataclass
class _Batch:
    """A batch of queries after the launch of its screen.

    Attributes
    ----------
    numbers : int64 array (rows,)
        The row numbers of the batch's queries in the search.
    rows : array (rows, d)
        The queries, in host memory.
    sent : Sent
        Members of the chosen groups, int32 (rows, columns), ascending in each row and padded with NO_MEMBER.
    shift, following : tensors
        Input of the certificate: the query terms of scores, and lower bounds on the scores of points not refined.
    """

    numbers: npt.NDArray[np.int64]
    rows: npt.NDArray[Any]
    sent: Sent
    shift: Any
    following: Any


class _Search(HostSearch):
    def __init__(self, queries: Any, prepared: ScreenedPoints, plan: CudaPlan, place: Place, bar: Counter) -> None:
        super().__init__(queries, prepared, plan, place, bar)
        self.form = prepared.form
        self.screener = Screener(prepared, plan)

    def run(self) -> None:
        level, width = self.plan.precisions[0], self.plan.width
        with self.workers:
            first_pass = functools.partial(self._pass, sampled=True)
            left = self.left_by(np.arange(len(self.queries)), width, level, first_pass, again=False)
            self.check_queries()
            left = self.left_by(left, wider(self.plan.d) * width, level, self._pass, again=True)
        if len(left):
            self.rest(left)

    def _pass(self, numbers: npt.NDArray[np.int64], width: int, *, sampled: bool = False) -> npt.NDArray[np.bool_]:
        """Search some queries, write the results, and return a mask of the proved queries."""
        verdicts: list[Any] = []
        ahead: list[_Batch] = []

        def work(some: slice) -> None:
            batch = self._launch(numbers[some], width, sampled)
            if ahead:
                verdicts.append(self._finish(ahead[0], counted=sampled))
            ahead[:] = [batch]

        # The most members that a row may have, from lists or from minima.
        members = width * max(self.plan.group, 2 * LEAST_GROUP)
        most = max(1, tuning.REFINE_SCRATCH_BYTES // (MEMBER_BYTES * members))
        in_batches(len(numbers), min(most, self.plan.query_batch), work, planned=self.plan.total_bytes)
        verdicts.append(self._finish(ahead.pop(), counted=sampled))
        proved: npt.NDArray[np.bool_] = torch.cat(verdicts).cpu().numpy() > 0
        return proved

    def _launch(self, numbers: npt.NDArray[np.int64], width: int, sampled: bool) -> _Batch:
        """Launch the screen of a batch; waits for the device only to copy queries from it."""
        precision = self.plan.precisions[0]
        rows = self.on_host(numbers)
        sample = self.screener.sample(width) if sampled else None
        packed = pack_queries(self.there(rows), self.form, precision, self.flags, first=int(numbers[0]))
        screened = self.screener.screened(packed, precision, sample)
        chosen, following = screened.lowest(width)
        room = chosen.shape[1] * screened.group
        members = list_members(chosen, len(self.points), screened.group, self.own_there(numbers), room)
        return _Batch(numbers, rows, Sent(members), packed.shift, following)

    def _finish(self, batch: _Batch, *, counted: bool) -> Any:
        """Refine a batch, write its results, and launch its certificate; return a tensor with 1 for each proved row."""
        (members,) = batch.sent.arrive()
        best = self.nearest(batch.rows, members)
        self.write(batch.numbers, best)
        count = len(members)
        if batch.following is None:
            proved = torch.ones(count, dtype=torch.uint8, device=self.device)
        else:
            proved = torch.empty(count, dtype=torch.uint8, device=self.device)
            worst = self.there(np.ascontiguousarray(best.distances[:, -1]))
            certify(self.form, batch.shift, worst, batch.following, proved, double=self.double)
        if counted:
            self.bar.add(count * len(self.points))
        return proved
