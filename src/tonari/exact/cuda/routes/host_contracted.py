"""The route for points in host memory with contracted rows on the GPU: a few coordinates instead of the whole row.

    GPU   look     (screens/contracted.py)   -> points that are near in p coordinates
    CPU   exact values of these points      -> the k-th value
    GPU   within                            -> all points that may be as near, and a mark for complete lists
    CPU   exact values, order               -> the k best

Three batches are in progress at once. While the device runs `look` for the third batch, the CPU computes the k-th
values of the second batch and then the exact values of the first. The device then runs `within` for the second batch.
Between its two steps, a batch keeps only the groups with the smallest minima in memory.
"""

from __future__ import annotations

import contextlib
import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from tonari.core.errors import Unsupported
from tonari.core.process.progress import Counter
from tonari.core.results.neighbors import Neighbors
from tonari.core.rows.slices import cut
from tonari.cuda.copying.prefetch import slabs
from tonari.cuda.devices import to_device
from tonari.cuda.streams import Written
from tonari.exact.cuda import tuning
from tonari.exact.cuda.attempts.in_batches import in_batches
from tonari.exact.cuda.memory import LISTED_BYTES
from tonari.exact.cuda.plan import CudaPlan
from tonari.exact.cuda.routes.host_search import HostSearch, Sent, ascending
from tonari.exact.cuda.rows.contraction import contract, contracted_room, contraction_of, sample_rows
from tonari.exact.cuda.rows.form import make_form
from tonari.exact.cuda.rows.pack import LARGEST_FLOAT16, new_flags
from tonari.exact.cuda.rows.part import Place
from tonari.exact.cuda.rows.prepared import PackedCopies
from tonari.exact.cuda.screens.contracted import ContractedScreen, Look, retried_at_once, retries
from tonari.exact.cuda.screens.sampling import Sample
from tonari.exact.cuda.screens.widths import Fitted
from tonari.exact.report import Report
from tonari.inputs.arrays.values import NO_ROW


class HostContractedPoints:
    """Points in host memory with contracted rows on a device; see :class:`tonari.exact.cuda.rows.prepared.Contracted`.

    Parameters
    ----------
    points : C-contiguous array of shape (n, d)
    plan : CudaPlan
        Points are copied to the device and contracted in slabs of ``point_slab`` rows.

    Attributes
    ----------
    fitted : dict of int to Fitted
        For each k, the number of groups per row that an earlier search fitted to its first rows.
    """

    def __init__(self, points: npt.NDArray[Any], plan: CudaPlan) -> None:
        n, d = points.shape
        device = torch.device(plan.devices[0])
        self.points = points
        self.flags = new_flags(device)
        sample = to_device(np.ascontiguousarray(points[:: -(-n // sample_rows(d))]), device)
        self.form = make_form(sample, plan.metric)
        self.by = contraction_of(sample, self.form, int(plan.form_dim))
        del sample
        self.rows = contracted_room(n, self.by.p, device)
        self._beyond = torch.full((1,), NO_ROW, dtype=torch.int64, device=device)
        bounds = cut(n, plan.point_slab)
        with contextlib.closing(slabs(points, bounds, device)) as arriving:
            for here, rows in zip(bounds, arriving, strict=True):
                contracted = contract(rows, self.by, self.flags, first=here.start, room=self.rows.part(here))
                largest = torch.maximum(contracted.values.amax(1), -contracted.values.amin(1))
                numbers = torch.arange(here.start, here.stop, device=device)
                first = torch.where(largest > LARGEST_FLOAT16, numbers, NO_ROW).amin()
                self._beyond = torch.minimum(self._beyond, first)
        self.farthest = self.rows.errors.amax()[None]
        self.fitted: dict[int, Fitted] = {}
        self.copies = PackedCopies(self.rows.values, self.by.screened, new_flags(device))
        self.copies.packed(plan.precisions[0])
        tensors = (self.by.directions, self.by.origin, self.by.stretch, self.farthest, self.flags, self._beyond)
        self.written = Written(self.form.centre, self.form.scale, *tensors, self.rows.values, self.rows.errors)

    def check_range(self, first: int) -> None:
        """Raise an error if a contracted point cannot be packed; `first` is the row number of the first one."""
        row = int(self._beyond)
        if row < NO_ROW:
            raise Unsupported(
                f"points: row {first + row} is too large, compared with the others, to be screened in "
                f"form_dim={self.by.p} coordinates; drop such rows, or leave form_dim out"
            )


def search_contracted(
    queries: Any, prepared: HostContractedPoints, plan: CudaPlan, place: Place, bar: Counter
) -> tuple[Neighbors, Report]:
    """Search points whose values have been checked; see :mod:`tonari.exact.cuda.routes.partition`."""
    prepared.check_range(place.first_point)
    return _Search(queries, prepared, plan, place, bar).answer()


@dataclass
class _Looked:
    """A batch after the first step: its nearest points in p coordinates are being copied to host memory.

    Attributes
    ----------
    some : slice
        The positions of the batch's queries among the queries of this pass.
    rows : array (rows, d)
        The queries, in host memory.
    own : int64 tensor (rows,), or None
    look : Look
    sent : Sent
        The nearest points, int32 (rows, columns), ascending and padded with NO_MEMBER.
    """

    some: slice
    rows: npt.NDArray[Any]
    own: Any
    look: Look
    sent: Sent


@dataclass
class _Listed:
    """A batch after the second step: all points that may be in its answers are being copied to host memory.

    Attributes
    ----------
    some, rows
        See :class:`_Looked`.
    sent : Sent
        The points, int32 (rows, columns), ascending and padded with NO_MEMBER; an unproved row has no points. In
        addition, a mark for each proved row, bool (rows,).
    """

    some: slice
    rows: npt.NDArray[Any]
    sent: Sent


class _Search(HostSearch):
    def __init__(
        self, queries: Any, prepared: HostContractedPoints, plan: CudaPlan, place: Place, bar: Counter
    ) -> None:
        super().__init__(queries, prepared, plan, place, bar)
        self.prepared = prepared
        self.contracted = ContractedScreen(prepared, plan, self.flags, double=self.double)

    def run(self) -> None:
        first, last = self.plan.precisions[0], self.plan.precisions[-2]
        left = np.arange(len(self.queries))
        with self.workers:
            width, unproved = self.fitted(self.prepared.fitted, functools.partial(self._pass, first, sampled=True))
            worth = unproved <= tuning.HOPELESS
            if worth:
                left = self._left(left, first, width, first_pass=True)
                self.check_queries()
                for precision, times in retries(self.plan, unproved):
                    left = self._left(left, precision, times * width)
        if worth and first != last:
            self.prepared.copies.forget(last)
        if len(left):
            self.rest(left, seen=worth)

    def _left(
        self, numbers: npt.NDArray[np.int64], precision: str, width: int, *, first_pass: bool = False
    ) -> npt.NDArray[np.int64]:
        """Search some queries at a precision, and return the row numbers of the unproved ones."""
        bar = self.bar if first_pass else None
        search = functools.partial(self._pass, precision, sampled=first_pass, bar=bar)
        return self.left_by(numbers, width, self.contracted.level(precision), search, again=not first_pass)

    def _pass(
        self,
        precision: str,
        numbers: npt.NDArray[np.int64],
        width: int,
        *,
        sampled: bool,
        bar: Counter | None = None,
    ) -> npt.NDArray[np.bool_]:
        """Search some queries, write the results, and return a mask of the proved queries."""
        sample = self.contracted.screener.sample(width) if sampled else None
        proved = np.zeros(len(numbers), np.bool_)
        looked: list[_Looked] = []
        listed: list[_Listed] = []

        def finish(batch: _Listed) -> None:
            members, proved[batch.some] = batch.sent.arrive()
            self.write(numbers[batch.some], self.nearest(batch.rows, members))
            if bar is not None:
                bar.add(len(members) * len(self.points))

        def advance(batch: _Looked | None) -> None:
            """Advance every batch by one step, later batches first, to keep the device busy."""
            following = self._list(looked[0], width) if looked else None
            if listed:
                finish(listed[0])
            listed[:] = [] if following is None else [following]
            looked[:] = [] if batch is None else [batch]

        def work(some: slice) -> None:
            advance(self._look(numbers, some, precision, width, sample))

        size = min(self.plan.query_batch, retried_at_once(width, LISTED_BYTES))
        in_batches(len(numbers), size, work, planned=self.plan.total_bytes)
        for _ in range(2):
            advance(None)
        return proved

    def _look(
        self, numbers: npt.NDArray[np.int64], some: slice, precision: str, width: int, sample: Sample | None
    ) -> _Looked:
        """Launch the first step of a batch. This waits for the device only if the queries have to be copied from it."""
        these = numbers[some]
        rows, own = self.on_host(these), self.own_there(these)
        first = int(these[0])
        look = self.contracted.look(self.there(rows), own, precision, width, sample, first=first, keep=True)
        return _Looked(some, rows, own, look, Sent(ascending(look.nearest)))

    def _list(self, batch: _Looked, width: int) -> _Listed:
        """Compute the k-th values of a batch, and launch its second step."""
        (nearest,) = batch.sent.arrive()
        kth = np.ascontiguousarray(self.nearest(batch.rows, nearest).distances[:, -1])
        members, proved = self.contracted.within(batch.look, self.there(kth), batch.own, width)
        listed = ascending(members.numbers.masked_fill(~proved[:, None], -1))
        return _Listed(batch.some, batch.rows, Sent(listed, proved))
