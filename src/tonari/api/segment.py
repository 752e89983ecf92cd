"""Points that are prepared once and never change: what an Index consists of."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import numpy.typing as npt

from tonari import inputs
from tonari.core.callers import callers_level
from tonari.core.method import Preparation, SearchMethod
from tonari.core.neighbors import Neighbors
from tonari.core.problem import Problem
from tonari.core.progress import ProgressLike
from tonari.core.radius_neighbors import RadiusNeighbors
from tonari.exact.cuda.replay import cache as cuda_graph_cache
from tonari.filters.engine import Engine
from tonari.filters.rules import Rules
from tonari.filters.within import within_allowed
from tonari.methods.answer import answer, on_side_of, replay
from tonari.methods.auto import USUAL_K, choose
from tonari.methods.decision import Decision, by_plan
from tonari.methods.no_queries import none_nearest
from tonari.methods.place import Place, problem_of
from tonari.methods.radius import find_within, is_searched, search_within
from tonari.methods.registry import search_method
from tonari.methods.repeated import plan_variables

KEPT_PLANS = 64


class Segment:
    """Checked rows, packed for a kernel or put into a tree. Several threads may search it at a time.

    Parameters
    ----------
    place : Place
    points : checked rows of shape (n, d)
    metric, asked : str
        The metric and the method, by their own names; "auto" chooses as if as many queries as there are points were
        to come.
    threads : int or None
    memory : int or None
        What all segments of the Index may use together.
    taken : int
        What of this others hold.
    progress : None, bool or callable(done, total)
    chosen : (str, int), optional
        The method that an earlier choice took, and the k of its plan: the points are packed by that.
    given : checked rows of shape (n, any), optional
        What `points` were made from; the points themselves if nothing else.
    source : array, optional
        The caller's array that `given` was made from.
    overrides : dict, optional
        Fields to set in every plan of the method, which is then not "auto".
    """

    def __init__(
        self,
        place: Place,
        points: Any,
        metric: str,
        asked: str,
        *,
        threads: int | None,
        memory: int | None,
        taken: int = 0,
        progress: ProgressLike = False,
        chosen: tuple[str, int] | None = None,
        given: Any = None,
        source: Any = None,
        overrides: dict[str, Any] | None = None,
    ) -> None:
        self.points, self.n = points, len(points)
        self.given = points if given is None else given
        self.unchanged = inputs.Unchanged(self.given, source) if inputs.can_change(self.given) else None
        self._place, self._metric, self._asked = place, metric, asked
        self._threads, self.memory, self._overrides = threads, memory, overrides or {}
        budget = self.budget(taken)
        first = self._first_choice(progress, budget) if chosen is None else self._chosen(*chosen, budget)
        if first.prepared is None:
            first = first._replace(prepared=first.method.prepare(points, first.plan, progress))
        self.first = first
        self.ready: dict[tuple[str, str], Decision] = {self._kind(first.method, self._problem(points[:1], 1)): first}
        self.planned: dict[Any, Decision] = {}
        self._preparing = threading.Lock()  # of the one search that adds to what is ready
        self._warned = False
        self._searched = 0  # queries so far; threads may lose some

    @property
    def method(self) -> str:
        """The method that searches the points."""
        method: str = self.first.plan.method
        return method

    @property
    def chosen(self) -> tuple[str, int]:
        """The method, and the k of its plan."""
        return self.method, self.first.plan.k

    @property
    def held_bytes(self) -> int:
        """What is prepared takes so much memory; on CUDA, of each device."""
        held = {id(made.prepared): made for made in tuple(self.ready.values())}  # kinds may share what is prepared
        return sum(made.method.held_bytes(made.prepared, made.plan) for made in held.values())

    def budget(self, taken: int) -> int | None:
        """The memory that is left if others take so much of it."""
        return None if self.memory is None else max(1, self.memory - taken)

    def release(self) -> None:
        """Give up what a search can prepare again."""
        for made in tuple(self.ready.values()):
            made.method.release(made.prepared)

    def __copy__(self) -> Segment:
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__, ready=dict(self.ready), planned={}, _preparing=threading.Lock())
        return made

    def search(
        self, queries: Any, k: int, threads: int | None, progress: ProgressLike, *, taken: int = 0, around: bool = False
    ) -> Neighbors:
        """Find the k nearest points; with `around`, a method that cannot serve this k leaves it to "exact"."""
        if threads is None and self.first.plan.replayable:
            key = cuda_graph_cache.key_on(self.first.prepared, queries, k)
            again = replay(key, (queries,), self.points, self._metric, progress)
            if again is not None:
                return again
        threads = inputs.check_threads(threads) or self._threads
        rows = self._place.rows(queries, "queries", self._metric, threads)
        inputs.same_width(rows, self.points)
        if not len(rows):
            return on_side_of(queries, none_nearest(self._problem(rows, k, threads), "auto" if around else self._asked))
        decision = self._decide_once(rows, k, threads, progress, taken, around)
        return on_side_of(queries, answer(rows, self.points, decision, progress))

    def within(
        self,
        rows: Any,
        limits: npt.NDArray[Any],
        most: int | None,
        threads: int | None,
        progress: ProgressLike,
        *,
        taken: int = 0,
        around: bool = False,
    ) -> RadiusNeighbors:
        """Find all points within the limits of checked rows, or the `most` nearest of them."""
        threads = threads or self._threads
        if is_searched(most):
            decision = self._decide_once(rows, min(most or 1, self.n), threads, progress, taken, around)
            return search_within(answer(rows, self.points, decision, progress), limits, self._metric)
        if most is not None:
            anyone = Rules(m=len(rows), n=self.n)
            engine = self.engine(threads, taken=taken, around=around)
            return within_allowed(engine, rows, limits, anyone, most, progress)
        decision = self._decide_once(rows, 1, threads, progress, taken)
        return find_within(rows, self.points, decision, limits, progress=progress)

    def count(
        self, rows: Any, limits: npt.NDArray[Any], threads: int | None, progress: ProgressLike, *, taken: int = 0
    ) -> Any:
        """Count the points within the limits of checked rows."""
        decision = self._decide_once(rows, 1, threads or self._threads, progress, taken)
        return decision.method.count_within(rows, decision.prepared, decision.plan, limits, progress=progress)

    def engine(self, threads: int | None, *, taken: int = 0, around: bool = False) -> Engine:
        """Searches of the points, or of a copy of some, for calls with rules of what may be found."""
        threads = threads or self._threads

        def nearest(rows: Any, k: int, progress: ProgressLike, reserved: int) -> Neighbors:
            decision = self._decide_once(rows, k, threads, progress, taken + reserved, around)
            return answer(rows, self.points, decision, progress)

        def within(rows: Any, limits: Any, progress: ProgressLike, reserved: int) -> RadiusNeighbors:
            decision = self._decide_once(rows, 1, threads, progress, taken + reserved)
            return find_within(rows, self.points, decision, limits, progress=progress)

        def count(rows: Any, limits: Any, reserved: int) -> Any:
            return self.count(rows, limits, threads, False, taken=taken + reserved)

        options: dict[str, Any] = {"method": self.method, "threads": threads, "memory": self.budget(taken)}
        held: dict[str, Any] = {"held_nearest": nearest, "held_within": within, "held_count": count}
        held["held_bytes"] = 0 if self.memory is None else self.held_bytes
        return Engine(points=self.points, place=self._place, metric=self._metric, **options, **held)

    def _problem(self, queries: Any, k: int, threads: int | None = None, memory: int | None = None) -> Problem:
        """What is asked of a search for these queries."""
        given: dict[str, Any] = {"threads": threads, "memory": memory}
        return problem_of(self._place, self.points, queries, k, self._metric, **given)

    def _chosen(self, name: str, k: int, memory: int | None) -> Decision:
        method = search_method(name, self._place.device)
        threads = self._place.threads_to_prepare(self._threads, self.n)
        problem = self._problem(self.points[:1], min(k, self.n), threads, memory)
        return by_plan(method, method.plan(problem, **self._overrides))

    def _kind(self, method: SearchMethod, problem: Problem, searched: int = 0) -> tuple[str, str]:
        """The method and the kind of preparation that a search needs: the first one if the caller has set its plan."""
        return method.name, "" if self._overrides else method.kind(problem, searched)

    def _first_choice(self, progress: ProgressLike, memory: int | None) -> Decision:
        """The method, and a plan to prepare the points by: what is prepared does not depend on the searches to come."""
        if self._asked != "auto":
            return self._chosen(self._asked, 1, memory)
        points, one, threads = self.points, self.points[:1], self._place.threads_to_prepare(self._threads, self.n)
        problem = self._problem(one, min(USUAL_K, self.n), threads, memory)
        return choose(problem, points, one, as_if=points, once=False, progress=progress)

    def _decide_once(
        self, rows: Any, k: int, threads: int | None, progress: ProgressLike, taken: int = 0, around: bool = False
    ) -> Decision:
        """Decide how to search, or as was decided for a search like this: planning may take longer than searching.

        Kept are plans on the CPU that do not depend on how many processors are free to use.
        """
        if self._place.devices or type(k) is not int:
            return self._decide(self._problem(rows, k, threads, self.budget(taken)), progress, taken, around)
        key = len(rows), k, rows.dtype, threads, taken, plan_variables()
        known = self.planned.get(key)
        if known is None:
            known = self._decide(self._problem(rows, k, threads, self.budget(taken)), progress, taken, around)
            if threads is not None or known.plan.threads == 1:
                if len(self.planned) >= KEPT_PLANS:
                    self.planned.clear()
                self.planned[key] = known
        return known

    def _decide(self, problem: Problem, progress: ProgressLike, taken: int, around: bool) -> Decision:
        """The plan of a search, and the points as it needs them: prepared once for each kind of search that comes."""
        method = self.first.method
        # A tree that cannot serve this k. On the CPU, where plans are kept, a tree serves every k.
        if (self._asked == "auto" or around) and method.refuses(problem) is not None:
            method = search_method("exact", self._place.device)
        searched, self._searched = self._searched, self._searched + problem.m
        kind = self._kind(method, problem, searched)
        ready = self.ready.get(kind)
        if ready is None:
            with self._preparing:
                ready = self.ready.get(kind)  # by another search meanwhile
                if ready is None:
                    ready = self._prepare_kind(method, problem, searched, progress)
                    self.ready[kind] = ready
        overrides = self._overrides if method is self.first.method else {}
        plan = method.plan(problem, prepared_by=ready.plan, **overrides)
        self._warn_of_packing(plan, taken)
        return by_plan(method, plan, ready.prepared)

    def _prepare_kind(self, method: SearchMethod, problem: Problem, searched: int, progress: ProgressLike) -> Decision:
        first = self.first
        before = Preparation(first.plan, first.prepared) if first.method is method else None
        made = method.prepare_kind(self.points, problem, searched, before, progress)
        return by_plan(method, made.plan, made.points)

    def _warn_of_packing(self, plan: Any, taken: int) -> None:
        """Say once that memory is too small to hold all points packed, and what would be enough."""
        if self._warned or not plan.packs_anew:
            return
        self._warned = True
        less = f", less {taken} of other segments," if taken else ""
        warnings.warn(f"memory={self.memory} bytes{less} hold {plan.packs_anew}", stacklevel=callers_level())
