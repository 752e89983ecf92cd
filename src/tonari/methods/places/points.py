"""The points of a call, with the searches of them; every search goes through this module.

A search that was captured as a CUDA graph is replayed. For any other search, a method is chosen and run. A call without
queries needs no plan, preparation or kernel, and its answer is made of NumPy arrays.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.core.errors import Unsupported
from tonari.core.plan import Plan
from tonari.core.problem import Problem
from tonari.core.process.progress import ProgressLike
from tonari.core.results.neighbors import Neighbors, no_neighbors
from tonari.core.results.radius_neighbors import RadiusNeighbors, Within, none_within
from tonari.core.rows.allowed import Allowed
from tonari.exact.cuda.replay import cache as cuda_graph_cache
from tonari.exact.cuda.replay.cache import GraphKey
from tonari.methods.answer import answer, checked, decide
from tonari.methods.call import Call
from tonari.methods.decision import Decision
from tonari.methods.places.value_range import check_counts, check_far
from tonari.methods.radius import decide_within
from tonari.methods.registry import by_force, search_method

if TYPE_CHECKING:
    from typing_extensions import Self


def none_nearest(problem: Problem, method: str) -> Neighbors:
    """Return the result of a search without queries: arrays of shape (0, k).

    Parameters
    ----------
    problem : Problem
        The problem of the same call with a single query.
    method : str
        The method that the caller named; if it cannot solve the problem, Unsupported is raised.
    """
    refuse_unsupported(problem, method)
    return no_neighbors(problem.k, problem.n, problem.value_dtype)


def none_within_radius(problem: Problem, method: str) -> RadiusNeighbors:
    """Return the result of a radius search without queries; see :func:`none_nearest`."""
    refuse_unsupported(problem, method)
    return none_within(problem.n, problem.value_dtype)


def none_counted(problem: Problem, method: str) -> npt.NDArray[np.int64]:
    """Return the result of a radius count without queries; see :func:`none_nearest`."""
    refuse_unsupported(problem, method)
    return np.zeros(0, np.int64)


def refuse_unsupported(problem: Problem, method: str) -> None:
    """Raise Unsupported if the method that the caller named cannot solve a problem."""
    why_not = None if method == "auto" else search_method(method, problem.device).refuses(problem)
    if why_not is not None:
        raise Unsupported(why_not)


class Points:
    """The points of a call, with methods that search them.

    Here the points are prepared for each search; subclasses prepare them once for all searches.

    Parameters
    ----------
    rows : checked rows of shape (n, d)
        The points.
    call : Call
        The checked arguments of the call; its memory limits each search.

    Attributes
    ----------
    prepared : bool
        Whether the points have been prepared already.
    held_bytes : int
        The bytes of the prepared points, which are part of the memory of the call.
    """

    prepared: ClassVar[bool] = False

    def __init__(self, rows: Any, call: Call) -> None:
        self.rows, self.call = rows, call

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def held_bytes(self) -> int:
        return 0

    def within_memory(self, memory: int | None) -> Self:
        """Return the same points with another limit on the memory of searches."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__, call=dataclasses.replace(self.call, memory=memory))
        return made

    def problem(self, queries: Any, k: Any, *, self_join: bool = False) -> Problem:
        """Return the Problem of a search for the k nearest points of each query."""
        return self.call.problem(self.rows, queries, k, self_join=self_join)

    def refuse_unsupported(self, queries: Any, k: Any = 1) -> None:
        """Raise Unsupported if the method that the caller named cannot find k neighbours of these queries."""
        refuse_unsupported(self.problem(queries, k), self.call.method)

    def method_for(self, problem: Problem) -> str:
        """Return the name of the call's method, or of brute force if that method cannot solve the problem."""
        method = self.call.method
        if method == "auto" or search_method(method, problem.device).refuses(problem) is None:
            return method
        return by_force(problem.metric)

    def nearest(
        self, queries: Any, k: Any, progress: ProgressLike, *, self_join: bool = False, around: bool = False
    ) -> Neighbors:
        """Find the k nearest points of checked queries; the result is on the device of the queries.

        With `around`, brute force is used if the method that the caller named does not support this k, which is larger
        than the caller's k.
        """
        found = self.replayed(queries, k, progress, self_join=self_join)
        if found is not None:
            return found
        return self.searched(queries, k, progress, self_join=self_join, around=around)

    def replayed(self, queries: Any, k: Any, progress: ProgressLike, *, self_join: bool = False) -> Neighbors | None:
        """Replay the CUDA graph that was captured for an equal search; return None without such a graph."""
        # arrays that may differ from those of the captured search
        differing = (self.rows,) if self_join else (queries, self.rows)
        found = cuda_graph_cache.replayed(self._graph_key(queries, k, self_join), differing, progress)
        return None if found is None else checked(found, queries, self.rows, self.call.metric)

    def searched(
        self, queries: Any, k: Any, progress: ProgressLike, *, self_join: bool = False, around: bool = False
    ) -> Neighbors:
        """Search as :meth:`nearest` does, but without replaying a CUDA graph: choose a method and run it."""
        decision = self.decided(queries, k, progress, self_join=self_join, around=around)
        return answer(queries, self.rows, decision, self.call.metric, progress, self_join=self_join)

    def decided(
        self,
        queries: Any,
        k: Any,
        progress: ProgressLike,
        *,
        self_join: bool = False,
        around: bool = False,
        plan: Plan | None = None,
    ) -> Decision:
        """Return the decision for :meth:`nearest`: the caller's plan if it is set, else a method and its plan."""
        problem = self.problem(queries, k, self_join=self_join)
        call = dataclasses.replace(self.call, method=self.method_for(problem)) if around else self.call
        return decide(call, problem, self.rows, queries, plan, progress)

    def ready(self, queries: Any, limits: npt.NDArray[Any]) -> Points:
        """Return these points, prepared for radius searches of the queries or of blocks of them."""
        return self.decided_within(queries, limits, False)

    def decided_within(self, queries: Any, limits: npt.NDArray[Any], progress: ProgressLike) -> DecidedPoints:
        """Choose the method of a radius search of these queries, and return the points prepared for this method."""
        problem = self.problem(queries, 1)
        made = decide_within(problem, self.rows, queries, limits, self.call.method, progress=progress)
        return DecidedPoints(self.rows, self.call, made)

    def within(
        self,
        queries: Any,
        limits: npt.NDArray[Any],
        progress: ProgressLike,
        *,
        self_join: bool = False,
        allowed: Allowed | None = None,
    ) -> RadiusNeighbors:
        """Find all points within the limit of each checked query; the result is on the device of the queries.

        With `allowed`, only points that it allows are found; the method must support this (`filters`).
        """
        points = self.decided_within(queries, limits, progress)
        return points.within(queries, limits, progress, self_join=self_join, allowed=allowed)

    def count(
        self, queries: Any, limits: npt.NDArray[Any], progress: ProgressLike, allowed: Allowed | None = None
    ) -> Any:
        """Count the points that :meth:`within` finds; the result is on the device of the queries."""
        return self.decided_within(queries, limits, progress).count(queries, limits, progress, allowed)

    def _graph_key(self, queries: Any, k: Any, self_join: bool) -> GraphKey | None:
        call = self.call
        if call.memory is not None or call.threads is not None or call.method not in cuda_graph_cache.CAPTURED:
            return None
        if len(call.place.devices) != 1:
            return None
        device = call.place.devices[0]
        return cuda_graph_cache.key_of(queries, self.rows, k, call.metric.name, device, self_join=self_join)


class DecidedPoints(Points):
    """Points that a decision has prepared for radius searches."""

    prepared: ClassVar[bool] = True

    def __init__(self, rows: Any, call: Call, decision: Decision) -> None:
        super().__init__(rows, call)
        self.decision = decision

    def decided_within(self, queries: Any, limits: npt.NDArray[Any], progress: ProgressLike) -> DecidedPoints:
        return self

    def ready(self, queries: Any, limits: npt.NDArray[Any]) -> Points:
        return self

    def within(
        self,
        queries: Any,
        limits: npt.NDArray[Any],
        progress: ProgressLike,
        *,
        self_join: bool = False,
        allowed: Allowed | None = None,
    ) -> RadiusNeighbors:
        request = Within(queries, limits, range(len(queries)) if self_join else None, allowed=allowed)
        return self._found(request, progress)

    def count(
        self, queries: Any, limits: npt.NDArray[Any], progress: ProgressLike, allowed: Allowed | None = None
    ) -> Any:
        counts = self.decision.count_within(Within(queries, limits, allowed=allowed), progress)

        def found(rows: npt.NDArray[np.int64]) -> RadiusNeighbors:
            return self.decision.find_within(_part(queries, limits[rows], allowed, rows), False)

        count, filtered = self._counting(queries, allowed), allowed is not None
        check_counts(counts, limits, queries, self.rows, self.call.metric, count, found, filtered=filtered)
        return counts

    def pairs(self, rows: slice, limits: npt.NDArray[Any], progress: ProgressLike) -> RadiusNeighbors:
        """Find, for each point in a slice, the points with larger row numbers that are within its limit."""
        own = range(rows.start, rows.stop)
        queries = self.rows if len(own) == len(self.rows) else self.rows[rows]
        return self._found(Within(queries, limits[rows], own, later=True), progress, names=own)

    def _found(self, request: Within, progress: ProgressLike, *, names: range | None = None) -> RadiusNeighbors:
        """Find the points of a request.

        Raise ValueError if values have overflowed, even of points beyond the limits.
        """
        queries, limits, allowed, record = request.queries, request.limits, request.allowed, self.call.metric
        found = checked(self.decision.find_within(request, progress), queries, self.rows, record, names=names)
        count, filtered = self._counting(queries, allowed), allowed is not None
        check_far(limits, queries, self.rows, record, count, filtered=filtered, listed=True, names=names)
        return found

    def _counting(
        self, queries: Any, allowed: Allowed | None
    ) -> Callable[[npt.NDArray[np.int64], npt.NDArray[Any]], Any]:
        """Return, for :func:`check_far`, a function that counts the points of given queries within given limits."""
        return lambda rows, limits: self.decision.count_within(_part(queries, limits, allowed, rows), False)


def _part(queries: Any, limits: npt.NDArray[Any], allowed: Allowed | None, rows: npt.NDArray[np.int64]) -> Within:
    """Return the request for the queries `rows`, whose limits are `limits`."""
    return Within(inputs.rows_at(queries, rows), limits, allowed=None if allowed is None else allowed.of(rows))
