"""The common part of searches with points in host memory: copying results to host memory, and searching unproved rows.

Rows that no screen proves are searched in all dimensions on the CPU or, if that is expected to be faster, on the
device, to which all points are copied once, slab by slab (routes/streamed.py).
"""

from __future__ import annotations

import abc
import time
from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from tonari import inputs
from tonari.core import _native
from tonari.core.errors import BudgetExceeded
from tonari.core.process.isa import chosen_isa
from tonari.core.process.progress import Counter
from tonari.core.process.workers import Workers, default_threads
from tonari.core.results.neighbors import Neighbors, index_dtype
from tonari.core.rows.slices import cut
from tonari.core.trail import current, decided
from tonari.costs.rates import CARD
from tonari.cuda import tuning as cuda_tuning
from tonari.cuda.devices import over
from tonari.exact.cpu.rows.prepared import PreparedPoints
from tonari.exact.cpu.search import search_prepared
from tonari.exact.cuda import tuning
from tonari.exact.cuda.plan import CudaPlan
from tonari.exact.cuda.planning import plan_on_cuda
from tonari.exact.cuda.refine.groups import NO_MEMBER
from tonari.exact.cuda.routes import streamed
from tonari.exact.cuda.rows.pack import new_flags
from tonari.exact.cuda.rows.part import Place
from tonari.exact.cuda.rows.prepared import Prepared
from tonari.exact.cuda.screens.widths import Fitted, fitted_width
from tonari.exact.planning.planner import plan_on_cpu
from tonari.exact.report import Report
from tonari.metrics import get_metric
from tonari.metrics.problem import make_problem

Search: TypeAlias = Callable[[npt.NDArray[np.int64], int], npt.NDArray[np.bool_]]


class Sent:
    """Copies of tensors to host memory, in progress; they begin after the work that computes the tensors."""

    def __init__(self, *tensors: Any) -> None:
        self._copies, self._event = list(tensors), None
        if tensors[0].device.type == "cpu":
            return
        self._copies = [torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True) for tensor in tensors]
        for copy, tensor in zip(self._copies, tensors, strict=True):
            copy.copy_(tensor, non_blocking=True)
        self._event = torch.cuda.Event()
        self._event.record()

    def arrive(self) -> list[npt.NDArray[Any]]:
        """Wait for the copies, and return them as arrays."""
        if self._event is not None:
            self._event.synchronize()
        return [copy.numpy() for copy in self._copies]


class HostSearch(abc.ABC):
    """The state that the batches of a search of points in host memory share, and the steps common to all routes.

    Parameters
    ----------
    queries : array or tensor of shape (m, d)
    prepared : Prepared
        The prepared points, with rows in a NumPy array.
    plan : CudaPlan
    place : Place
    bar : Counter

    Attributes
    ----------
    found : Neighbors of arrays of shape (m, k)
    report : Report
    flags : int64 tensor of shape (3,)
        Flags of the queries; see ``inputs.check_flags``.
    double : bool
        Whether values are returned as float64.
    workers : Workers
        The threads of :meth:`nearest`; inside this context manager, batches share them.
    refined_where : str
        Words for records that say where rows are refined.
    """

    refined_where: ClassVar[str] = "refined on the CPU"

    @property
    def long_seconds(self) -> float:
        """Minimum seconds of CPU work for which the device is used instead, where kernels may have to be compiled."""
        return tuning.HOST_LONG_SECONDS

    def __init__(self, queries: Any, prepared: Prepared, plan: CudaPlan, place: Place, bar: Counter) -> None:
        self.queries, self.points, self.plan, self.place, self.bar = queries, prepared.points, plan, place, bar
        self._prepared = prepared
        m, n = len(queries), len(prepared.points)
        self.device = torch.device(plan.devices[0])
        self.flags = new_flags(self.device)
        self.double = "float64" in (inputs.name_of_dtype(queries), prepared.points.dtype.name)
        self.found = self._lists(m, index_dtype(n))
        self.report = Report(rows=m)
        self.workers = Workers(default_threads())

    @abc.abstractmethod
    def run(self) -> None:
        """Answer all queries."""

    def answer(self) -> tuple[Neighbors, Report]:
        """Answer all queries, and return the neighbours and the report."""
        self.run()
        return self.found, self.report

    def check_queries(self) -> None:
        """Raise ValueError if a query has a value that searches refuse; waits for the device."""
        inputs.check_flags(self.flags, self.queries, self._name, first=self.place.first_query)

    def nearest(self, rows: npt.NDArray[Any], members: npt.NDArray[np.int32]) -> Neighbors:
        """Return the k best of each row's members, computing their exact values.

        Parameters
        ----------
        rows : array of shape (rows, d)
        members : int32 array of shape (rows, at least 1)
            Row numbers of points, ascending in each row and padded with NO_MEMBER.
        """
        there = members != NO_MEMBER
        listed, counts = members[there].astype(np.int64), np.where(there[:, -1], members.shape[1], there.argmin(1))
        ends = np.cumsum(counts)
        begins = ends - counts
        best = self._lists(len(rows), index_dtype(len(self.points)))
        total = len(listed)
        threads = default_threads(total * (CARD.cpu_member + CARD.cpu_value * self.plan.d))
        each = -(-total // (threads * tuning.HOST_MEMBERS))  # number of slices per thread
        slices = min(threads * each, total // tuning.HOST_LEAST_MEMBERS)
        isa = chosen_isa()

        def compare(some: slice) -> None:
            self.workers.check()
            part = best.distances[some], best.indices[some]
            given = rows[some], self.points, self.plan.k, None, listed, begins[some], ends[some]
            _native.search_listed(self.plan.metric, isa, *given, *part)

        self.workers.map(compare, cut(len(rows), -(-len(rows) // max(1, slices))))
        self.report.refined += total
        return best

    def fitted(self, fitted: dict[int, Fitted], search: Search, *, widest: int | None = None) -> Fitted:
        """Return the width of the first pass, and the share of rows that it is expected to leave unproved.

        The width is the plan's or, if there are many queries, is fitted to the first of them.

        Parameters
        ----------
        fitted : dict
            The widths that earlier searches fitted, by k; a new one is added.
        search : callable(numbers, width)
            Searches queries; returns a mark for each proved one.
        widest : int, optional
            See :func:`tonari.exact.cuda.screens.widths.fitted_width`.
        """
        plan = self.plan
        if plan.k not in fitted and plan.m >= tuning.FITTED_ROWS:
            rows = np.arange(min(tuning.PILOT_ROWS, plan.query_batch, len(self.queries)))

            def unproved_at(width: int) -> float:
                proved = search(rows, width)
                self.check_queries()
                return float(np.count_nonzero(~proved)) / len(rows)

            fitted[plan.k] = fitted_width(plan.contracted_width, unproved_at, widest=widest)
        return fitted.get(plan.k, Fitted(plan.contracted_width, 0.0))

    def left_by(
        self, numbers: npt.NDArray[np.int64], width: int, level: str, search: Search, *, again: bool
    ) -> npt.NDArray[np.int64]:
        """Search some queries, record the number of proved ones, and return the row numbers of the unproved ones.

        `search` is as for :meth:`fitted`; `again` is True unless it is the first pass.
        """
        if not len(numbers):
            return numbers
        started = time.perf_counter()
        proved = search(numbers, width)
        seconds, count, record = time.perf_counter() - started, int(np.count_nonzero(proved)), current.get()
        self.report.certify(level, count, seconds)
        if record is not None:
            record.tried(f"{level}{' again' if again else ''}, {self.refined_where}", len(numbers), count, seconds)
        left: npt.NDArray[np.int64] = numbers[~proved]
        return left

    def write(self, numbers: npt.NDArray[np.int64], best: Neighbors) -> None:
        """Write the results of the queries with these row numbers."""
        self.found.distances[numbers], self.found.indices[numbers] = best

    def rest(self, numbers: npt.NDArray[np.int64], *, seen: bool = True) -> None:
        """Answer some queries in all dimensions, on the CPU or on the device, whichever is expected to be faster.

        `seen` is True if these queries have been counted by the progress bar and their values have been checked. If it
        is False, they must be all queries of the search.
        """
        points, plan, rows = self.points, self.plan, self.on_host(numbers)
        if not seen:
            inputs.check_held_values(rows, self._name, first=self.place.first_query, nonnegative=False)
        n, d = points.shape
        sizes: dict[str, Any] = {"dtype": points.dtype, "query_dtype": rows.dtype, "metric": plan.metric}
        problem = make_problem(n, len(rows), d, plan.k, **sizes)
        on_cpu, on_device = plan_on_cpu(problem, resident=False), self._streamed_plan(len(rows), sizes)
        own = self.own(numbers)
        if on_device is not None and max(on_device.seconds, self.long_seconds) < on_cpu.seconds:
            decided("rows left", "all points are streamed through the device, which takes less time than the CPU")
            self._prepared.copies.forget_samples()
            # These queries are not consecutive, so `Place` gets the row number of each in the whole search.
            place = Place(self.place.first_point, 0, self.place.self_join, numbers + self.place.first_query)
            bar = _Uncounted(self.bar) if seen else self.bar
            part, report = streamed.search_part(rows, points, on_device, place, bar)
            self.report.include(report)
            best = Neighbors(*(torch.as_tensor(array).cpu().numpy() for array in part))
        else:
            decided("rows left", "searched on the CPU in all columns")
            # The search packs points slice by slice and keeps no packed copy.
            prepared = PreparedPoints(points, on_cpu, False)
            best, done = search_prepared(rows, prepared, on_cpu, self_ids=own, progress=False)
            self.report.refined += done.refined
            self.report.certify(plan.precisions[-1], len(numbers))
            self.bar.add(0 if seen else len(numbers) * n)
        self.write(numbers, best)

    def own(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64] | None:
        """Return the row number of each query among the points; None without a self-join."""
        return numbers + (self.place.first_query - self.place.first_point) if self.place.self_join else None

    def own_there(self, numbers: npt.NDArray[np.int64]) -> Any:
        """Return the row number of each query among the points as a tensor on the device; None without a self-join."""
        own = self.own(numbers)
        return None if own is None else self.there(own)

    def there(self, rows: npt.NDArray[Any]) -> Any:
        """Copy rows to the device without waiting for it."""
        here = over(rows)
        return here.pin_memory().to(self.device, non_blocking=True) if self.device.type == "cuda" else here

    def on_host(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """Copy the queries with these row numbers to a new array in host memory."""
        queries = self.queries
        if isinstance(queries, np.ndarray):
            return np.ascontiguousarray(queries[numbers])
        return inputs.held(queries[torch.from_numpy(numbers).to(queries.device)].cpu())

    @property
    def _name(self) -> str:
        """The name for the queries in messages."""
        return "points" if self.place.self_join else "queries"

    def _lists(self, rows: int, ids: Any) -> Neighbors:
        """Allocate lists of k neighbours in which all entries are missing."""
        missing = -np.inf if get_metric(self.plan.metric).descending else np.inf
        shape = rows, self.plan.k
        return Neighbors(np.full(shape, missing, np.float64 if self.double else np.float32), np.full(shape, -1, ids))

    def _streamed_plan(self, m: int, sizes: dict[str, Any]) -> CudaPlan | None:
        """Return a plan that streams all points in the memory that the finished batches took; None if no plan fits."""
        plan, n = self.plan, len(self.points)
        room = plan.working_bytes - 8 * m * self.place.self_join  # without the row numbers of the queries' own points
        if room <= 0:
            return None
        problem = make_problem(n, m, plan.d, plan.k, devices=plan.devices, memory=room, **sizes)
        try:
            return plan_on_cuda(problem, free_bytes=room + cuda_tuning.RESERVE, route="streamed")
        except BudgetExceeded:
            return None


def ascending(members: Any) -> Any:
    """Return the points of each row in ascending order, int32 (rows, any), with NO_MEMBER in place of -1."""
    return members.masked_fill(members < 0, NO_MEMBER).sort(dim=1).values


class _Uncounted:
    """Progress for rows that the bar has already counted: it adds nothing, but stops a search when the bar does."""

    def __init__(self, bar: Counter) -> None:
        self._bar = bar

    def add(self, amount: int) -> None:
        self._bar.add(0)
