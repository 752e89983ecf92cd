"""Searches by codes, and rehearsals that compile their kernels in advance."""

from __future__ import annotations

import functools
import weakref
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch

from tonari import inputs
from tonari.core.process.progress import Counter, ProgressLike
from tonari.core.results.neighbors import Neighbors
from tonari.core.rows.slices import cut
from tonari.cuda.compiling.ahead import expecting
from tonari.cuda.recorded import check_room
from tonari.exact.cuda import tuning
from tonari.exact.cuda.attempts.in_batches import in_batches
from tonari.exact.cuda.coded_memory import CODED_BYTES
from tonari.exact.cuda.plan import CudaPlan
from tonari.exact.cuda.routes.codes.points import CodedPoints
from tonari.exact.cuda.routes.codes.replays import Graph, captures
from tonari.exact.cuda.routes.codes.steps import Steps
from tonari.exact.cuda.routes.host_search import HostSearch, Sent
from tonari.exact.cuda.routes.partition import search_whole
from tonari.exact.cuda.rows.codes import code_points, codes_for
from tonari.exact.cuda.rows.pack import new_flags
from tonari.exact.cuda.rows.part import Place
from tonari.exact.cuda.screens.contracted import retried_at_once
from tonari.exact.cuda.screens.sampling import Sample
from tonari.exact.cuda.screens.widths import Fitted
from tonari.exact.report import Report
from tonari.inputs.arrays.values import NO_ROW


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
    """Search one part by its codes (:mod:`tonari.exact.cuda.routes.partition`); results are NumPy arrays."""
    prepared.written.read()
    inputs.check_flags(prepared.flags, prepared.points, "points", first=place.first_point)
    return _Search(queries, prepared, plan, place, bar).answer()


@dataclass
class _Batch:
    """A batch of queries whose results are being copied to host memory.

    Attributes
    ----------
    some : slice
        The positions of the batch's queries among the queries of this pass.
    sent : Sent
        Distances, indices, a mark for each proved row, and the number of refined points.
    """

    some: slice
    sent: Sent


class _Search(HostSearch):
    """A search by codes: passes with longer and longer lists, then a search of unproved rows in all dimensions."""

    refined_where: ClassVar[str] = "refined from host memory"

    @property
    def long_seconds(self) -> float:
        return tuning.CODES_LONG_SECONDS

    def __init__(self, queries: Any, prepared: CodedPoints, plan: CudaPlan, place: Place, bar: Counter) -> None:
        super().__init__(queries, prepared, plan, place, bar)
        self.prepared = prepared
        self.steps = Steps(prepared, plan, double=self.double)
        self._first_flags = [NO_ROW] * 3

    def check_queries(self) -> None:
        """Check the queries' flags, which have arrived from the device with all batches; see :class:`HostSearch`."""
        inputs.check_flags(self._first_flags, self.queries, self._name, first=self.place.first_query)

    def run(self) -> None:
        left, k = np.arange(len(self.queries)), self.plan.k
        worth = len(self.prepared.beyond) <= tuning.MOST_BEYOND
        with self.workers:
            if worth:
                width, unproved = self.fitted(self.prepared.fitted, self._pass, widest=tuning.CODED_WIDEST)
                worth = unproved <= tuning.HOPELESS
            if worth:
                left = self._left(left, width, first_pass=True)
                self.check_queries()
                if len(left) and width < tuning.CODED_WIDEST * self.plan.contracted_width:
                    self.prepared.fitted[k] = Fitted(2 * width, 0.0)  # the next search starts with twice the width
                for times in (tuning.WIDER, tuning.ROOMY):
                    left = self._left(left, times * width)
        if len(left):
            self.rest(left, seen=worth)

    def _left(self, numbers: npt.NDArray[np.int64], width: int, *, first_pass: bool = False) -> npt.NDArray[np.int64]:
        """Search some queries by their codes, and return the row numbers of the unproved ones."""

        def search(numbers: npt.NDArray[np.int64], width: int) -> npt.NDArray[np.bool_]:
            rows = numbers if first_pass else np.resize(numbers, filled(len(numbers), self.plan, width))
            return self._pass(rows, width, bar=self.bar if first_pass else None)[: len(numbers)]

        return self.left_by(numbers, width, self.steps.screen.level(""), search, again=not first_pass)

    def _pass(self, numbers: npt.NDArray[np.int64], width: int, bar: Counter | None = None) -> npt.NDArray[np.bool_]:
        """Search some queries, write the results, and return a mask of the proved queries."""
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

        size = _at_once(self.plan, width)
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
        return Sent(*done.tensors, flags)

    def _is_replayed(self, rows: int, width: int) -> bool:
        """Whether to replay a batch as a CUDA graph, because launching its steps may take longer than running them."""
        short = rows * len(self.points) <= tuning.CODED_REPLAYED
        listed = tuning.NEAR_KEPT * width <= tuning.CODED_REPLAYED_LIST  # longer lists are sorted by other methods
        return short and listed and not self.place.self_join and captures(self.device) and self.prepared.host.is_mapped

    def _graph_of(self, rows: npt.NDArray[Any], width: int, sample: Sample | None) -> Graph | None:
        key = rows.shape, rows.dtype, self.plan.k, width, sample, self.double, self.plan.group

        def make() -> Graph:
            check_room(self.device, self.plan.working_bytes)
            # The graph is freed together with the points, so it must not keep them alive.
            steps = Steps(weakref.proxy(self.prepared), self.plan, double=self.double)
            return Graph(
                self.there(rows),
                lambda rows, flags: steps.launch(rows, None, width, sample, 0, flags).tensors,
            )

        return self.prepared.replays.graph(key, make)


def _at_once(plan: CudaPlan, width: int) -> int:
    """Return the maximum number of queries in a batch with `width` near points per row."""
    if width <= tuning.CODED_WIDEST * plan.contracted_width:
        return plan.query_batch  # the plan assumes the longest lists of a first pass
    return min(plan.query_batch, retried_at_once(width, CODED_BYTES))


def filled(rows: int, plan: CudaPlan, width: int) -> int:
    """Return the size of the batch that retries `rows` rows; some rows are repeated, so that few sizes occur.

    For retries of these sizes, kernels are compiled with those of the first pass, and CUDA graphs are replayed. No rows
    are repeated if each of them reads very many points.
    """
    sizes = _left_sizes(plan, width) if width <= tuning.WIDER * tuning.CODED_WIDEST * plan.contracted_width else []
    return next((size for size in sizes if size >= rows), rows)


def _left_sizes(plan: CudaPlan, width: int) -> list[int]:
    return [min(rows, _at_once(plan, width)) for rows in tuning.CODED_LEFT]


def rehearse_coding(plan: CudaPlan) -> None:
    """Launch the kernels that make codes by a plan on tensors without data; see attempts/rehearse.py."""
    prepared = CodedPoints.without_data(plan)
    slab = prepared.points[: plan.point_slab]
    code_points(slab, prepared.coding, prepared.flags, first=0, room=codes_for(len(slab), prepared.by.p, slab.device))


def rehearse_codes(plan: CudaPlan, query_dtype: str, *, self_join: bool) -> None:
    """Launch the kernels of the first pass of a search on tensors without data; see attempts/rehearse.py."""
    sizes = {some.stop - some.start for some in cut(plan.m, plan.query_batch)}
    _rehearse_pass(plan, query_dtype, sizes, plan.contracted_width, self_join=self_join)
    # Many searches leave a few rows unproved, and would otherwise have to wait for the kernels of their retries.
    width = tuning.WIDER * plan.contracted_width
    _rehearse_pass(plan, query_dtype, {*_left_sizes(plan, width)}, width, self_join=self_join)


def _rehearse_pass(plan: CudaPlan, query_dtype: str, sizes: set[int], width: int, *, self_join: bool) -> None:
    prepared = CodedPoints.without_data(plan)
    steps = Steps(prepared, plan, double="float64" in (query_dtype, plan.dtype))
    for rows in sizes:
        queries = torch.empty((rows, plan.d), dtype=getattr(torch, query_dtype), device="meta")
        own = torch.empty(rows, dtype=torch.int64, device="meta") if self_join else None
        steps.launch(queries, own, width, steps.screen.sample(width), 0, prepared.flags)
