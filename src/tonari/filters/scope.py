"""The scope of a search with rules: its points, its memory, and searches of these points that ignore the rules."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.core.errors import BudgetExceeded
from tonari.core.problem import Problem
from tonari.core.process.caches import cached
from tonari.core.process.isa import chosen_isa
from tonari.core.process.progress import ProgressLike
from tonari.core.process.workers import default_threads
from tonari.core.results.neighbors import Neighbors
from tonari.core.results.radius_neighbors import RadiusNeighbors
from tonari.core.rows.allowed import COPIED_POINT, Allowed
from tonari.core.rows.listed import Listed
from tonari.costs.model import listed_bits_seconds, listed_seconds
from tonari.costs.rates import CARD
from tonari.filters import tuning
from tonari.filters.rules import Ids, Rules
from tonari.methods.answer import checked
from tonari.methods.places.points import Points
from tonari.methods.places.value_range import is_plain
from tonari.methods.registry import by_force, search_method
from tonari.metrics import Metric


@dataclass(frozen=True, kw_only=True, eq=False)
class Scope:
    """The points of a search with rules, the memory for it, and searches of these points without the rules.

    The points are all points of the call, or a copy of some of them. A search with rules consists of searches that
    ignore the rules, and of work that applies the rules to their results.

    Attributes
    ----------
    points : Points
        The points. Their memory limit is what the budget leaves for searches that ignore the rules.
    unchecked : bool
        Whether the values of points in host memory have not been checked yet; they are checked when they are copied.
    budget : int, optional
        The memory of the whole call in bytes; None if nothing has been reserved for rules and copies.
    room : int
        The bytes reserved for pairs while rules are checked, and for results that still include forbidden points.
    fixed, row, copied : int
        Other bytes of the budget: `fixed` for rules and results, `row` for a single query within `room`, `copied` for
        copies of points.
    """

    points: Points
    unchecked: bool = False
    budget: int | None = None
    room: int = dataclasses.field(default_factory=lambda: tuning.ROOM_BYTES)
    fixed: int = 0
    row: int = 0
    copied: int = 0

    @property
    def n(self) -> int:
        """The number of points."""
        return len(self.points)

    @property
    def rows(self) -> Any:
        """The points, as checked rows."""
        return self.points.rows

    @property
    def metric(self) -> Metric:
        return self.points.call.metric

    @property
    def threads(self) -> int | None:
        return self.points.call.threads

    @property
    def memory(self) -> int | None:
        """The memory limit of searches that ignore the rules, in bytes."""
        return self.points.call.memory

    @property
    def prepared(self) -> bool:
        """Whether the points have been prepared for searches."""
        return self.points.prepared

    def nearest(self, queries: Any, k: int, progress: ProgressLike) -> Neighbors:
        """Find the k nearest points of each query, k <= n, ignoring the rules; results are on the queries' device."""
        with self.refusals():
            return self.points.nearest(queries, k, progress, around=True)

    def within(
        self, queries: Any, limits: npt.NDArray[Any], progress: ProgressLike, allowed: Allowed | None = None
    ) -> RadiusNeighbors:
        """Find all points within the radius of each query, or only the allowed ones.

        Results are on the queries' device.
        """
        with self.refusals():
            return self.points.within(queries, limits, progress, allowed=allowed)

    def count(self, queries: Any, limits: npt.NDArray[Any], allowed: Allowed | None = None) -> Ids:
        """Count the points within the radius of each query, or only allowed ones; the result is in host memory."""
        with self.refusals():
            return np.asarray(inputs.to_host(self.points.count(queries, limits, False, allowed)))

    def allowed_by(self, rules: Rules) -> Allowed | None:
        """Return the rules as the argument `allowed` of :meth:`within` and :meth:`count`.

        Return None if the method does not support it.
        """
        device = self.points.call.place.device
        if not search_method(by_force(self.metric.name), device).filters:
            return None
        threads = self.threads or default_threads()
        return rules.as_allowed(copies=COPIED_POINT * rules.n * threads <= self.room)

    def ready(self, queries: Any, limits: npt.NDArray[Any]) -> Scope:
        """Return this scope with points prepared for radius searches of these queries, block by block."""
        with self.refusals():
            return dataclasses.replace(self, points=self.points.ready(queries, limits))

    @property
    def reserved(self) -> int:
        """The bytes of the budget that are reserved for rules, results and copies of points."""
        return 0 if self.budget is None or self.memory is None else self.budget - self.memory

    def with_room(self, rules: Rules, *, pair: int, results: int, k: int = 1, m: int = 1) -> Scope:
        """Return this scope with memory reserved for the rules, so that searches use only the remaining memory.

        Parameters
        ----------
        rules : Rules
        pair : int
            The bytes for each pair of a query and a point while rules are checked.
        results : int
            The bytes of results that count towards the budget.
        k, m : int
            The numbers of neighbours and queries of a later search. If memory is too small, the error names a budget
            that suffices for this search too.
        """
        if self.memory is None:
            return dataclasses.replace(self, room=tuning.ROOM_BYTES)
        row = pair * rules.longest() + 8 * self.row_bytes
        fixed = rules.held_bytes() + results
        spare = self.memory - fixed
        room = max(row, min(spare // tuning.ROOM_SHARE, (spare - self.points.held_bytes) // 2))
        points = self.points.within_memory(spare - room)
        made = dataclasses.replace(self, points=points, budget=self.memory, room=room, fixed=fixed, row=row)
        if room >= spare:
            copied = self.n * self.row_bytes * (rules.shared is not None or rules.query_groups is not None)
            least = made.enough(copied + self.least(k, m))
            raise BudgetExceeded(
                f"a memory budget of {self.memory} bytes cannot hold this search by rules: results and rules take "
                f"{fixed} and the points of one query {row}; allow at least {least}",
                least=least,
            )
        return made

    def least(self, k: int, m: int = 1) -> int:
        """Return the smallest memory, in bytes, for a search of all points for k neighbours of m queries."""
        problem = self.points.problem(self.rows[:1], min(max(k, 1), self.n))
        problem = dataclasses.replace(problem, m=max(m, 1), memory=1)
        method = self.points.method_for(problem)
        method = by_force(self.metric.name) if method == "auto" else method
        try:
            search_method(method, problem.device).plan(problem)
        except BudgetExceeded as error:
            return error.least or 0
        return 0

    def enough(self, needed: int) -> int:
        """Return a budget for the whole call that leaves `needed` bytes for copies of points and for searches."""
        needed += needed // tuning.SLACK + 1
        share = tuning.ROOM_SHARE
        return self.fixed + max(self.row + needed, needed * share // (share - 1) + share)

    @contextlib.contextmanager
    def refusals(self) -> Iterator[None]:
        """Restate a search's BudgetExceeded, which is about the search's share, for the budget of the whole call."""
        try:
            yield
        except BudgetExceeded as error:
            if self.budget is None or error.least is None:
                raise
            assert self.memory is not None
            # The memory reserved for rules grows with the budget, which `enough` takes into account.
            least = self.enough(self.copied + error.least)
            raise BudgetExceeded(
                f"a memory budget of {self.budget} bytes cannot hold this search by rules: results, rules and copies "
                f"of points take {self.reserved}; allow at least {least}",
                least=least,
            ) from error

    def can_copy(self, m: int, k: int, n: int) -> bool:
        """Return whether a copy of n points and a search of this copy fit into the memory."""
        return self.memory is None or self.seconds(m, min(k, n), n=n) < math.inf

    def among(self, ids: Any, k: int = 1, m: int = 1) -> Scope:
        """Return a scope for a copy of the points `ids`, which counts towards the memory of the call.

        If the budget is too small, the error names one that suffices for the copy and for a search of k neighbours of m
        queries in it.
        """
        memory, copied = self.memory, 0
        budget = memory if self.budget is None else self.budget
        if memory is not None:
            copied = len(ids) * self.row_bytes
            memory -= copied
            if memory < 1:
                least = self.enough(self.copied + copied + self.least(k, m))
                raise BudgetExceeded(
                    f"memory={budget} bytes: {len(ids)} allowed points, copied, take {copied}; allow at least {least}",
                    least=least,
                )
        rows = inputs.rows_at(self.rows, ids)
        if self.unchecked:
            self._check(rows)
        call = self.points.call
        points = Points(rows, call if memory is None else dataclasses.replace(call, memory=memory))
        return dataclasses.replace(self, points=points, budget=budget, unchecked=False, copied=self.copied + copied)

    @property
    def copied_at_once(self) -> int:
        """The maximum bytes of one copy, if points are copied and searched in several parts."""
        copied = self.row_bytes * self.n
        return copied if self.memory is None else min(copied, self.memory // 2)

    @property
    def row_bytes(self) -> int:
        """The number of bytes of a point."""
        return int(self.rows.shape[1] * inputs.dtype_of(inputs.name_of_dtype(self.rows)).itemsize)

    def _check(self, copied: npt.NDArray[Any]) -> None:
        """Raise ValueError if copied rows have invalid values; the message has the row number among all points."""
        try:
            self.points.call.rows(copied, "points")
        except ValueError:
            self.points.call.rows(self.rows, "points")
            raise

    def seconds(self, m: int, k: int, *, n: int | None = None) -> float:
        """Estimate the seconds to search all points, or to copy and search n of them; inf if memory is too small."""
        memory = self.memory if n is None or self.memory is None else self.memory - self.row_bytes * n
        if memory is not None and memory < 1:
            return math.inf
        problem = self.points.problem(self.rows[:1], min(k, n or self.n))
        problem = dataclasses.replace(problem, n=n or self.n, m=max(m, 1), memory=memory)
        method = self.points.method_for(problem)
        method = by_force(self.metric.name) if method == "auto" else method
        try:
            seconds, preparing = _planned(method, problem)
        except BudgetExceeded:  # not an error: the caller compares this estimate with others, and inf never wins
            return math.inf
        if n is None:
            return seconds - preparing if self.prepared else seconds
        on_host = isinstance(self.rows, np.ndarray)
        byte = tuning.COPIED_BYTE_SECONDS if on_host else tuning.GATHERED_READS / CARD.read_rows
        return seconds + byte * self.row_bytes * n

    def listed_seconds(self, m: int, pairs: int) -> float:
        """Estimate the seconds for exact values of listed pairs on one CPU core, which also stand for CUDA."""
        of_pairs = listed_bits_seconds if self.metric.bits else listed_seconds
        return of_pairs(m, pairs, self.rows.shape[1], chosen_isa())

    def count_listed(self, queries: Any, limits: npt.NDArray[Any], listed: Listed) -> Ids | None:
        """Count, for each query, the points in its list whose exact value is within its limit.

        Return None if the method does not support this, or if a limit is at an end of the range of values, where values
        that have overflowed or underflowed would be counted.
        """
        call = self.points.call
        method = search_method(by_force(self.metric.name), call.place.device)
        if not method.filters or not is_plain(limits):
            return None
        return method.count_listed(queries, self.rows, limits, self.metric.name, listed, threads=self.threads)

    def listed(self, queries: Any, k: int, listed: Listed, found: Neighbors | None = None) -> Neighbors:
        """Find the k nearest points in each query's list; the result is in host memory, in `found` if it is passed."""
        place, name = self.points.call.place, self.metric.name
        method = search_method(by_force(name), place.device)
        if not place.devices:
            here = method.search_listed(queries, self.rows, k, name, listed, threads=self.threads, found=found)
            return checked(here, queries, self.rows, self.metric)
        near = method.search_listed(place.there(queries), place.there(self.rows), k, name, listed)
        near = checked(Neighbors(*on_host(near)), queries, self.rows, self.metric)
        if found is None:
            return near
        for mine, new in zip(found, near, strict=True):
            mine[:] = new
        return found


def on_host(found: Any) -> Any:
    """Return a result with all of its arrays as NumPy arrays in host memory."""
    return type(found)(*(np.asarray(inputs.to_host(part)) for part in found))


# Cached, because making a plan may take longer than a small search; on CUDA, it queries the free memory.
@cached(maxsize=256)
def _planned(method: str, problem: Problem) -> tuple[float, float]:
    """Return the expected seconds of a search, and which part of them prepares the points."""
    plan: Any = search_method(method, problem.device).plan(problem)
    return float(plan.seconds), float(getattr(plan, "prepare_seconds", 0.0))
