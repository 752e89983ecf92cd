"""Exact searches without rules: of all points of a call, or of some of them, by the method that is fastest for each."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.core.errors import BudgetExceeded
from tonari.core.isa import chosen_isa
from tonari.core.neighbors import Neighbors
from tonari.core.problem import Problem
from tonari.core.progress import ProgressLike
from tonari.core.radius_neighbors import RadiusNeighbors
from tonari.costs.model import listed_bits_seconds, listed_seconds
from tonari.costs.rates import CARD
from tonari.exact.cuda import cuda_graph_cache
from tonari.filters.rules import Ids, Rules
from tonari.methods.answer import answer, decide, replay
from tonari.methods.place import Place, problem_of
from tonari.methods.radius import count_within, decide_within, find_within
from tonari.methods.registry import by_force, search_method
from tonari.methods.value_range import check_range
from tonari.metrics import get_metric

_ROOM = 1 << 30  # bytes of what rules are checked for at a time, if there is no budget

# Seconds of a byte of rows that are gathered, about: in host memory, and where tensors are.
_COPIED_BYTE, _COPIED_BYTE_THERE = 5e-10, 2 / CARD.read_rows

_SHARE = 4  # of the memory, the part that pairs may take while rules are checked
_SLACK = 4  # the part by which searches for other numbers of neighbours may need more


@dataclass(frozen=True, kw_only=True, eq=False)
class Engine:
    """The points that are searched, and the options of the call.

    Attributes
    ----------
    points : checked rows
    place : Place
    metric, method : str
    threads, memory : int, optional
    unchecked : bool
        The values of the points, in host memory, are checked when some are copied.
    budget : int, optional
        The memory of the whole call, of which `memory` is what its searches without rules may use.
    room : int
        Bytes that pairs may take while rules are checked, and results of searches that are cut by rules.
    held_nearest : callable(queries, k, progress, reserved) -> Neighbors, optional
        Searches the points, which are prepared already. `reserved` are bytes of the budget that it must leave.
    held_within : callable(queries, limits, progress, reserved) -> RadiusNeighbors, optional
    held_count : callable(queries, limits, reserved) -> array, optional
    held_bytes : int
        The memory of points that are prepared already, part of `memory`.
    fixed, row, copied : int
        Bytes of the budget that rules and results take, that one query may take in `room`, and that copies of points
        take.
    """

    points: Any
    place: Place
    metric: str
    method: str = "auto"
    threads: int | None = None
    memory: int | None = None
    unchecked: bool = False
    budget: int | None = None
    room: int = _ROOM
    held_nearest: Callable[[Any, int, ProgressLike, int], Neighbors] | None = None
    held_within: Callable[[Any, Any, ProgressLike, int], RadiusNeighbors] | None = None
    held_count: Callable[[Any, Any, int], Any] | None = None
    held_bytes: int = 0
    fixed: int = 0
    row: int = 0
    copied: int = 0

    @property
    def n(self) -> int:
        """Number of points."""
        return len(self.points)

    def nearest(self, queries: Any, k: int, progress: ProgressLike) -> Neighbors:
        """Find the k nearest of the points, k <= n; the result is where the queries are."""
        given: dict[str, Any] = {"threads": self.threads, "memory": self.memory}
        if self.memory is None and self.held_nearest is None and self.method in cuda_graph_cache.CAPTURED:
            key = cuda_graph_cache.key_of(queries, self.points, k, self.metric)
            again = replay(key, (queries, self.points), self.points, self.metric, progress)
            if again is not None:
                return again
        problem = problem_of(self.place, self.points, queries, k, self.metric, **given)
        method = self._method(problem)
        with self.refusals():
            if self.held_nearest is not None and method == self.method:
                return self.held_nearest(queries, k, progress, self.reserved)
            decision = decide(self.place, problem, self.points, queries, method, None, progress)
        return answer(queries, self.points, decision, progress)

    def within(self, queries: Any, limits: npt.NDArray[Any], progress: ProgressLike) -> RadiusNeighbors:
        """Find all points within the limits; the result is where the queries are."""
        ready = self.ready(queries, limits)
        assert ready.held_within is not None
        with self.refusals():
            return ready.held_within(queries, limits, progress, self.reserved)

    def count(self, queries: Any, limits: npt.NDArray[Any]) -> Ids:
        """Count all points within the limits; in host memory."""
        ready = self.ready(queries, limits)
        assert ready.held_count is not None
        with self.refusals():
            return np.asarray(inputs.to_host(ready.held_count(queries, limits, self.reserved)))

    def ready(self, queries: Any, limits: npt.NDArray[Any]) -> Engine:
        """Return an engine of prepared points, for blocks of queries with limits."""
        if self.held_within is not None:
            return self
        given: dict[str, Any] = {"threads": self.threads, "memory": self.memory}
        problem = problem_of(self.place, self.points, queries, 1, self.metric, **given)
        with self.refusals():
            decision = decide_within(problem, self.points, queries, limits, self.method, progress=False)

        def within(some: Any, limits: Any, progress: ProgressLike, _reserved: int) -> RadiusNeighbors:
            return find_within(some, self.points, decision, limits, progress=progress)

        def count(some: Any, limits: Any, _reserved: int) -> Any:
            return count_within(some, self.points, decision, limits, progress=False)

        return dataclasses.replace(self, held_within=within, held_count=count)

    @property
    def reserved(self) -> int:
        """The bytes of the budget that searches without rules must leave."""
        return 0 if self.budget is None or self.memory is None else self.budget - self.memory

    def with_room(self, rules: Rules, *, pair: int, results: int, k: int = 1, m: int = 1) -> Engine:
        """Return the engine of a call with rules, which take a part of its memory.

        Parameters
        ----------
        rules : Rules
        pair : int
            The bytes that are needed for each point that one query may have to be checked with.
        results : int
            The bytes that all results take, as far as they are part of the memory.
        k, m : int
            What a search without rules is asked for; what it needs is part of what a refusal names.
        """
        if self.memory is None:
            return dataclasses.replace(self, room=_ROOM)
        row = pair * rules.longest() + 8 * self.row_bytes
        fixed = rules.held_bytes() + results
        spare = self.memory - fixed
        room = max(row, min(spare // _SHARE, (spare - self.held_bytes) // 2))
        made = dataclasses.replace(self, memory=spare - room, budget=self.memory, room=room, fixed=fixed, row=row)
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
        """Return the memory that a search of all points needs, for k neighbours of m queries."""
        problem = problem_of(self.place, self.points, self.points[:1], min(max(k, 1), self.n), self.metric, memory=1)
        problem = dataclasses.replace(problem, m=max(m, 1), threads=self.threads)
        method = self._method(problem)
        try:
            search_method(by_force(self.metric) if method == "auto" else method, self.place.device).plan(problem)
        except BudgetExceeded as error:
            return error.least or 0
        return 0

    def enough(self, needed: int) -> int:
        """Return a budget of the call of which so many bytes are left for searches without rules, and for copies."""
        needed += needed // _SLACK + 1
        return self.fixed + max(self.row + needed, needed * _SHARE // (_SHARE - 1) + _SHARE)

    @contextlib.contextmanager
    def refusals(self) -> Iterator[None]:
        """Refuse with what the whole call needs, where a search without rules needs more than is left for it."""
        try:
            yield
        except BudgetExceeded as error:
            if self.budget is None or error.least is None:
                raise
            assert self.memory is not None
            # The room for rules grows with the budget.
            least = self.enough(self.copied + error.least)
            raise BudgetExceeded(
                f"a memory budget of {self.budget} bytes cannot hold this search by rules: results, rules and copies "
                f"of points take {self.reserved}; allow at least {least}",
                least=least,
            ) from error

    def can_copy(self, m: int, k: int, n: int) -> bool:
        """Whether the memory holds a copy of n points, and a search of it."""
        if self.memory is None:
            return True
        memory = self.memory - self.row_bytes * n
        if memory < 1:
            return False
        problem = problem_of(self.place, self.points, self.points[:1], 1, self.metric, memory=memory)
        problem = dataclasses.replace(problem, n=n, m=m, k=min(k, n), threads=self.threads)
        method = self._method(problem)
        try:
            search_method(by_force(self.metric) if method == "auto" else method, self.place.device).plan(problem)
        except BudgetExceeded:
            return False
        return True

    def among(self, ids: Any, k: int = 1, m: int = 1) -> Engine:
        """Return the engine of a copy of some of the points, which counts as memory of the call.

        A refusal names what the copy and a search for k neighbours of m queries need.
        """
        memory, copied = self.memory, 0
        if memory is not None:
            copied = len(ids) * self.row_bytes
            memory -= copied
            if memory < 1:
                budget = self.memory if self.budget is None else self.budget
                least = self.enough(self.copied + copied + self.least(k, m))
                raise BudgetExceeded(
                    f"memory={budget} bytes: {len(ids)} allowed points, copied, take {copied}; allow at least {least}",
                    least=least,
                )
        points = rows_at(self.points, ids)
        if self.unchecked:
            self._check(points)
        plain: dict[str, Any] = {"held_nearest": None, "held_within": None, "held_count": None, "held_bytes": 0}
        budget = self.memory if self.budget is None else self.budget
        return dataclasses.replace(
            self, points=points, memory=memory, budget=budget, unchecked=False, copied=self.copied + copied, **plain
        )

    @property
    def copied_at_once(self) -> int:
        """The bytes that a copy of points may take, where they can be copied a part after the other."""
        copied = self.row_bytes * self.n
        return copied if self.memory is None else min(copied, self.memory // 2)

    @property
    def row_bytes(self) -> int:
        """The bytes of a point."""
        return int(self.points.shape[1] * inputs.dtype_of(inputs.name_of_dtype(self.points)).itemsize)

    def _check(self, copied: npt.NDArray[Any]) -> None:
        """Refuse copied rows with values that no row may have, naming one by its number among all."""
        try:
            self.place.rows(copied, "points", self.metric, self.threads)
        except ValueError:
            self.place.rows(self.points, "points", self.metric, self.threads)
            raise

    def seconds(self, m: int, k: int, *, n: int | None = None) -> float:
        """Estimate a search of all points, or of n that have to be copied first; inf if memory does not hold it."""
        held = self.held_nearest is not None and n is None
        memory = self.memory if n is None or self.memory is None else self.memory - self.row_bytes * n
        if memory is not None and memory < 1:
            return math.inf
        problem = problem_of(self.place, self.points, self.points[:1], min(k, n or self.n), self.metric)
        problem = dataclasses.replace(problem, n=n or self.n, m=max(m, 1), threads=self.threads, memory=memory)
        method = self._method(problem)
        method = by_force(self.metric) if method == "auto" else method
        try:
            seconds, preparing = (_planned_there if problem.devices else _planned)(method, problem)
        except BudgetExceeded:  # an estimate ends no call: the caller compares it with other ways
            return math.inf
        if held:
            return seconds - preparing
        if n is None:
            return seconds
        byte = _COPIED_BYTE if isinstance(self.points, np.ndarray) else _COPIED_BYTE_THERE
        return seconds + byte * self.row_bytes * n

    def _method(self, problem: Problem) -> str:
        """Return the method of the call, or brute force where it does not serve a larger k than was asked for."""
        if self.method == "auto" or search_method(self.method, self.place.device).refuses(problem) is None:
            return self.method
        return by_force(self.metric)

    def listed_seconds(self, m: int, pairs: int) -> float:
        """Estimate the exact values of listed pairs, on one core; on CUDA as if it were one."""
        of_pairs = listed_bits_seconds if get_metric(self.metric).bits else listed_seconds
        return of_pairs(m, pairs, self.points.shape[1], chosen_isa())

    def listed(
        self,
        queries: Any,
        k: int,
        listed: Ids,
        begins: Ids,
        ends: Ids,
        self_ids: Ids | None = None,
        found: Neighbors | None = None,
    ) -> Neighbors:
        """Find the k nearest of the points that are listed for each query; on the host, in `found` if it is given."""
        lists: dict[str, Any] = {"listed": listed, "begins": begins, "ends": ends, "self_ids": self_ids}
        method = search_method(by_force(self.metric), self.place.device)
        if not self.place.devices:
            given: dict[str, Any] = {"threads": self.threads, "found": found}
            here: Neighbors = method.search_listed(queries, self.points, k, self.metric, **lists, **given)
            check_range(here.distances, here.indices, None, queries, self.points, self.metric)
            return here
        there = self.place.there(queries), self.place.there(self.points)
        near = Neighbors(*on_host(method.search_listed(*there, k, self.metric, **lists)))
        check_range(near.distances, near.indices, None, queries, self.points, self.metric)
        if found is None:
            return near
        for mine, new in zip(found, near, strict=True):
            mine[:] = new
        return found


def rows_at(rows: Any, ids: Any) -> Any:
    """Copy some rows of an array or tensor, where it is, by an array or by what :func:`beside` returns."""
    return np.take(rows, ids, axis=0) if isinstance(rows, np.ndarray) else rows[beside(rows, ids)]


def beside(rows: Any, ids: Any) -> Any:
    """Return numbers where the rows are."""
    if isinstance(rows, np.ndarray):
        return ids
    import torch

    return (torch.from_numpy(ids) if isinstance(ids, np.ndarray) else ids).to(rows.device)


def on_host(found: Any) -> Any:
    """Return neighbours as NumPy arrays."""
    return type(found)(*(np.asarray(inputs.to_host(part)) for part in found))


def _planned(method: str, problem: Problem) -> tuple[float, float]:
    """Return the seconds that are expected of a search, and those of them that prepare the points."""
    plan: Any = search_method(method, problem.device).plan(problem)
    return float(plan.seconds), float(getattr(plan, "prepare_seconds", 0.0))


# A plan on CUDA asks for the memory that is free, which takes longer than a small search.
_planned_there = functools.lru_cache(maxsize=256)(_planned)
