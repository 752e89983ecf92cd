"""The steps of a batch of queries, from their codes to their nearest points, on the device."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from tonari import inputs
from tonari.core.results.neighbors import Neighbors
from tonari.core.rows.slices import cut
from tonari.cuda.compiling.rehearsal import joined, to_visit
from tonari.exact.cuda import tuning
from tonari.exact.cuda.plan import CudaPlan
from tonari.exact.cuda.refine.groups import NO_MEMBER, refine_groups
from tonari.exact.cuda.routes.codes.points import CodedPoints
from tonari.exact.cuda.routes.host_search import ascending
from tonari.exact.cuda.rows.codes import code_queries
from tonari.exact.cuda.screens.coded import CodedScreen
from tonari.exact.cuda.screens.sampling import Sample
from tonari.select.cuda.ordering.order import merge_lists


class Done(NamedTuple):
    """The result of a batch on the device: neighbours, a mark for each proved row, and the number of refined points."""

    found: Neighbors
    proved: Any
    refined: Any

    @property
    def tensors(self) -> tuple[Any, ...]:
        """Distances, indices, marks of proved rows, and the number of refined points, to copy to host memory."""
        return *self.found, self.proved, self.refined


class Steps:
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

    def launch(self, rows: Any, own: Any, width: int, sample: Sample | None, first: int, flags: Any) -> Done:
        """Launch all steps for some queries.

        `flags`, int64 (3,), is an output: flags of the queries, in which the first query has the row number `first`.
        """
        coded = code_queries(rows, self.prepared.coding, flags, first=first)
        look = self.screen.coded_look(coded, own, width, sample)
        nearest = look.nearest if _has_no_data(rows) else ascending(look.nearest)
        best = self._refine(rows, nearest)
        kth = best.distances[:, -1]
        members, proved = self.screen.within(look, kth, own, width)
        del look  # free the minima of all groups
        listed = members.numbers if _has_no_data(rows) else self._others(members.numbers, proved, nearest, own)
        found = merge_lists(best, self._refine(rows, listed), self.plan.k, metric=self.plan.metric)
        if _has_no_data(rows):
            return Done(Neighbors(*found), proved, None)
        return Done(Neighbors(*found), proved, (nearest != NO_MEMBER).sum() + (listed != NO_MEMBER).sum())

    def _others(self, members: Any, proved: Any, nearest: Any, own: Any) -> Any:
        """For each proved row, return the points that are not yet refined but may be in its answer, ascending.

        Points beyond range may be in every answer.
        """
        numbers = self._with_beyond(members, own).masked_fill(~proved[:, None], -1)
        places = torch.searchsorted(nearest, numbers).clamp_max_(nearest.shape[1] - 1)
        return ascending(numbers.masked_fill(nearest.gather(1, places) == numbers, -1))

    def _with_beyond(self, numbers: Any, own: Any) -> Any:
        """Append the points beyond range to each row's listed points, except the row's own point."""
        beyond = self.prepared.beyond
        if not len(beyond):
            return numbers
        others = beyond.expand(len(numbers), -1)
        others = others if own is None else others.masked_fill(others == own[:, None], -1)
        return torch.cat([numbers, others], 1)

    def _refine(self, queries: Any, listed: Any) -> Neighbors:
        """Return the k best of each row's listed points, computing their exact values; missing neighbours are -1."""
        plan = self.plan
        columns, row = listed.shape[1], plan.d * self.prepared.points.itemsize
        blocks = cut(len(listed), max(1, tuning.REFINE_SCRATCH_BYTES // (columns * row)))
        parts = [self._refine_block(queries[here], listed[here]) for here in to_visit(blocks, listed.device)]
        if len(parts) == 1:
            return Neighbors(*parts[0])
        return Neighbors(*map(joined, zip(*parts, strict=True)))

    def _refine_block(self, queries: Any, listed: Any) -> tuple[Any, Any]:
        """Return, for some rows, the k best of their listed points.

        Points are copied in the order of the lists, which ascend, so that ties go to the smaller row number.
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
    """Whether rows belong to a rehearsal, which skips torch operations between kernels because imports take seconds."""
    return bool(rows.device.type == "meta")
