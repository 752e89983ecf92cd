"""Points in host memory with codes on a device."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from tonari.core.rows.slices import cut
from tonari.core.trail import decided
from tonari.cuda.copying.prefetch import slabs
from tonari.cuda.devices import to_device
from tonari.cuda.host_rows import HostRows
from tonari.cuda.streams import Written
from tonari.exact.cuda.plan import CudaPlan
from tonari.exact.cuda.routes.codes.replays import Replays
from tonari.exact.cuda.rows.codes import Coding, FoldedCodes, code_points, codes_for, coding_of
from tonari.exact.cuda.rows.contraction import ContractedRows, sample_rows
from tonari.exact.cuda.rows.pack import new_flags
from tonari.exact.cuda.screens.widths import Fitted


class CodedPoints:
    """Points in host memory with codes on a device; see :class:`tonari.exact.cuda.rows.prepared.Contracted`.

    Parameters
    ----------
    points : C-contiguous array of shape (n, d)
    plan : CudaPlan
        The points are copied to the device and coded in slabs of ``point_slab`` rows.

    Attributes
    ----------
    beyond : int32 tensor
        The row numbers of the points beyond the range of codes.
    host : HostRows
        The original rows, as the device reads them.
    fitted : dict of int to Fitted
        For each k, the number of near points per row that an earlier search fitted to its first rows.
    replays : Replays
        The batches that are replayed as CUDA graphs.
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
        """Return coded points without data, for a rehearsal of their preparation or of a search by this plan."""
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
        """Store the codes of all points, and an event after which other streams may use them."""
        self.rows = ContractedRows(whole.values[: whole.n, : whole.p], None)
        self.fitted: dict[int, Fitted] = {}
        self.replays = Replays()
        self.copies: Any = _Samples(whole)  # codes replace the packed copies of rows
        tensors = (self.by.directions, self.by.origin, self.by.stretch, self.coding.shift, self.farthest, self.flags)
        self.written = Written(self.form.centre, self.form.scale, *tensors, self.beyond, whole.values)


class _Samples:
    """The codes of all points, and of samples of the points."""

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
        """Drop the codes of samples, and keep those of all points."""
        self._made = {1: self._made[1]}
