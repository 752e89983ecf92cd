"""A segment of an Index: points that are prepared once and never change."""

from __future__ import annotations

import dataclasses
import threading
import warnings
from collections.abc import Hashable
from typing import Any, ClassVar

from tonari import inputs
from tonari.api.index.coded import CodedRows
from tonari.core._native import environment
from tonari.core.method import Preparation, SearchMethod
from tonari.core.plan import Plan
from tonari.core.problem import Problem
from tonari.core.process.callers import callers_level
from tonari.core.process.progress import ProgressLike
from tonari.core.results.neighbors import Neighbors
from tonari.core.trail import decided
from tonari.exact.cuda.replay import cache as cuda_graph_cache
from tonari.methods import tuning
from tonari.methods.answer import PLAN_VARIABLES, checked, keep_decision, kept_decision
from tonari.methods.auto import choose
from tonari.methods.call import Call
from tonari.methods.decision import Decision, by_plan
from tonari.methods.places.place import Place
from tonari.methods.places.points import DecidedPoints, Points
from tonari.methods.registry import by_force, search_method


class Segment:
    """Checked rows, packed for a kernel or stored in a tree, which several threads may search at once.

    Parameters
    ----------
    points : checked rows of shape (n, d)
    call : Call
        The call of the Index. Its method "auto" assumes that the number of queries equals the number of points. All
        segments of the Index share its memory.
    taken : int
        The bytes of the shared memory that other segments use.
    chosen : (str, int), optional
        The method to use and the k of the plan by which points are packed, if they were chosen earlier.
    given : checked rows of shape (n, any), optional
        The rows before their transformation; default: `points`, which were then not transformed.
    source : array, optional
        The caller's array that contains the rows of `given`.
    overrides : dict, optional
        Fields to set in every plan; the method is then not "auto".
    coded : CodedRows, optional
        For an Index with codes: the object that makes the codes and detects changes of the rows.
    copied : int
        The bytes of `points`, if they are a copy, which other segments have to count; the memory of `call` excludes it.
    """

    def __init__(
        self,
        points: Any,
        call: Call,
        *,
        taken: int = 0,
        chosen: tuple[str, int] | None = None,
        given: Any = None,
        source: Any = None,
        overrides: dict[str, Any] | None = None,
        coded: CodedRows | None = None,
        copied: int = 0,
    ) -> None:
        self.points, self.n, self._copied = points, len(points), copied
        self.given = points if given is None else given
        self.unchanged: inputs.Unchanged | CodedRows | None = coded
        if coded is None and inputs.can_change(self.given):
            self.unchanged = inputs.Unchanged(self.given, source)
        self.call, self._overrides = call.with_progress(False), overrides or {}
        if call.place.may_take_fewer:
            self.call = dataclasses.replace(self.call, place=self._some_devices())
        budget = self.budget(taken)
        first = self._first_choice(call.progress, budget) if chosen is None else self._chosen(*chosen, budget)
        if first.prepared is None:
            prepare = first.method.prepare if coded is None else coded.prepare
            first = first._replace(prepared=prepare(points, first.plan, call.progress))
        self.first = first
        self.ready: dict[tuple[str, str], Decision] = {self._kind(first.method, self._problem(points[:1], 1)): first}
        self.planned: dict[Hashable, Decision] = {}
        self._preparing = threading.Lock()  # held while a search prepares further data
        self._call_with: Call | None = None
        self._warned = False
        self._searched = 0  # approximate number of queries so far, because threads update it without a lock

    @property
    def memory(self) -> int | None:
        """The budget in bytes that all segments share; None without a limit."""
        return self.call.memory

    @property
    def method(self) -> str:
        """The method that searches the points."""
        method: str = self.first.plan.method
        return method

    @property
    def chosen(self) -> tuple[str, int]:
        """The name of the method, and the k of the plan that packed the points."""
        return self.method, self.first.plan.k

    @property
    def held_bytes(self) -> int:
        """The bytes of the prepared points and of a copy of the points; on CUDA, on each device."""
        return self._copied + self.prepared_bytes

    @property
    def prepared_bytes(self) -> int:
        """The bytes of the prepared points."""
        # each prepared object counts once, since several kinds of searches may share it
        held = {id(made.prepared): made for made in tuple(self.ready.values())}
        return sum(made.method.held_bytes(made.prepared, made.plan) for made in held.values())

    def budget(self, taken: int) -> int | None:
        """Return the bytes of the budget that remain when other segments take `taken` bytes; None without a limit."""
        return None if self.memory is None else max(1, self.memory - taken)

    def release(self) -> None:
        """Free prepared data, which the next search can make again."""
        for made in tuple(self.ready.values()):
            made.method.release(made.prepared)

    def __copy__(self) -> Segment:
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__, ready=dict(self.ready), planned={}, _preparing=threading.Lock())
        return made

    def replayed(self, queries: Any, k: Any, progress: ProgressLike) -> Neighbors | None:
        """Replay the CUDA graph of an equal search; return None if no such search was captured."""
        if not self.first.plan.replayable:
            return None
        key = cuda_graph_cache.key_on(self.first.prepared, queries, k)
        found = cuda_graph_cache.replayed(key, (queries,), progress)
        return None if found is None else checked(found, queries, self.points, self.call.metric)

    def call_with(self, threads: int) -> Call:
        """Return the call with another number of threads.

        The last such call is cached, since making it takes 2 µs.
        """
        last = self._call_with  # read only once, because another thread may replace the attribute
        if last is None or last.threads != threads:
            last = self._call_with = dataclasses.replace(self.call, threads=threads)
        return last

    def those(self, threads: int | None, *, taken: int = 0) -> SegmentPoints:
        """Return the points of the segment for a search with this number of threads.

        `taken` is the number of bytes that other segments use and the search cannot.
        """
        return SegmentPoints(self, threads, taken)

    def _problem(self, queries: Any, k: Any, threads: int | None = None, memory: int | None = None) -> Problem:
        """Return the problem of a search for the k nearest points of these queries."""
        call = self.call
        if threads != call.threads or memory != call.memory:
            call = dataclasses.replace(call, threads=threads, memory=memory)
        return call.problem(self.points, queries, k)

    def _some_devices(self) -> Place:
        """Return the devices that hold the points.

        These are the devices that a search would use if it had as many queries as there are points.
        """
        place, metric = self.call.place, self.call.metric.name
        problem = dataclasses.replace(self._problem(self.points[:1], min(tuning.USUAL_K, self.n)), m=self.n)
        plan = search_method(by_force(metric), place.device).plan(problem)
        if plan.devices_chosen:
            decided("devices", plan.devices_chosen)
        return place.on(plan.devices)

    def _chosen(self, name: str, k: int, memory: int | None) -> Decision:
        method = search_method(name, self.call.place.device)
        threads = self.call.place.threads_to_prepare(self.call.threads, self.n)
        problem = self._problem(self.points[:1], min(k, self.n), threads, memory)
        return by_plan(method, method.plan(problem, **self._overrides))

    def _kind(self, method: SearchMethod, problem: Problem, searched: int = 0) -> tuple[str, str]:
        """Return the key of cached data of a search: the method, and the kind of data unless the plan has overrides."""
        return method.name, "" if self._overrides else method.kind(problem, searched)

    def _first_choice(self, progress: ProgressLike, memory: int | None) -> Decision:
        """Choose, before the first search, the method and the plan that prepare the points."""
        if self.call.method != "auto":
            return self._chosen(self.call.method, 1, memory)
        points, one = self.points, self.points[:1]
        threads = self.call.place.threads_to_prepare(self.call.threads, self.n)
        problem = self._problem(one, min(tuning.USUAL_K, self.n), threads, memory)
        decision = kept_decision(problem, self.call.method, "index")  # planning takes longer than packing a few points
        if decision is None:
            decision = choose(problem, points, one, as_if=points, once=False, progress=progress)
            keep_decision(decision, problem, self.call.method, "index")
        return decision

    def decided(
        self,
        rows: Any,
        k: Any,
        threads: int | None,
        progress: ProgressLike,
        memory: int | None,
        *,
        around: bool = False,
    ) -> Decision:
        """Decide how to search checked rows, or reuse the decision of an equal search; planning may take longer.

        Decisions on the CPU are cached if they do not depend on the number of free processors. `around` says that the
        caller has added the number of removed points to k, and drops these points from the answer. If the method does
        not support this larger k, brute force is used.
        """
        if self.call.place.devices or type(k) is not int:
            return self._decide(self._problem(rows, k, threads, memory), progress, around)
        key = self._key(rows, k, threads, memory)
        known = self.planned.get(key)
        if known is None:
            known = self._decide(self._problem(rows, k, threads, memory), progress, around)
            if threads is not None or known.plan.threads == 1:
                if len(self.planned) >= tuning.KEPT_PLANS:
                    self.planned.clear()
                self.planned[key] = known
        return known

    @staticmethod
    def _key(rows: Any, k: int, threads: int | None, memory: int | None) -> Hashable:
        """Return the values that determine the plan of a search on the CPU."""
        return len(rows), k, rows.dtype, threads, memory, environment(*PLAN_VARIABLES)

    def _decide(self, problem: Problem, progress: ProgressLike, around: bool) -> Decision:
        """Plan a search, and prepare the points for it if this is the first search of its kind."""
        method = self.first.method
        # A tree may not support this k, on CUDA only: on the CPU, where plans are cached, a tree supports every k.
        if (self.call.method == "auto" or around) and method.refuses(problem) is not None:
            method = search_method("exact", self.call.place.device)
        searched, self._searched = self._searched, self._searched + problem.m
        kind = self._kind(method, problem, searched)
        ready = self.ready.get(kind)
        if ready is None:
            with self._preparing:
                ready = self.ready.get(kind)  # another thread may have prepared it by now
                if ready is None:
                    ready = self._prepare_kind(method, problem, searched, progress)
                    self.ready[kind] = ready
        overrides = self._overrides if method is self.first.method else {}
        plan = method.plan(problem, prepared_by=ready.plan, **overrides)
        self._warn_of_packing(plan, problem.memory)
        return by_plan(method, plan, ready.prepared)

    def _prepare_kind(self, method: SearchMethod, problem: Problem, searched: int, progress: ProgressLike) -> Decision:
        first = self.first
        before = Preparation(first.plan, first.prepared) if first.method is method else None
        made = method.prepare_kind(self.points, problem, searched, before, progress)
        return by_plan(method, made.plan, made.points)

    def _warn_of_packing(self, plan: Any, memory: int | None) -> None:
        """Warn once if memory is too small to keep all points packed, and name the memory that would suffice."""
        if self._warned or not plan.packs_anew:
            return
        self._warned = True
        taken = 0 if self.memory is None or memory is None else self.memory - memory
        less = f", less {taken} of other segments," if taken else ""
        warnings.warn(f"memory={self.memory} bytes{less} hold {plan.packs_anew}", stacklevel=callers_level())


class SegmentPoints(Points):
    """The points of a segment, for the searches of one call."""

    prepared: ClassVar[bool] = True

    def __init__(self, segment: Segment, threads: int | None, taken: int) -> None:
        call = segment.call
        if taken:
            call = dataclasses.replace(call, memory=segment.budget(taken), threads=threads or call.threads)
        elif threads is not None and threads != call.threads:
            call = segment.call_with(threads)
        # not by super().__init__, because this runs in every call, and a call may take only 10 µs
        self.rows, self.call, self._segment = segment.points, call, segment

    @property
    def held_bytes(self) -> int:
        return 0 if self._segment.memory is None else self._segment.prepared_bytes

    def method_for(self, problem: Problem) -> str:
        method = self._segment.method
        refused = search_method(method, problem.device).refuses(problem) is not None
        return by_force(problem.metric) if refused else method

    def replayed(self, queries: Any, k: Any, progress: ProgressLike, *, self_join: bool = False) -> Neighbors | None:
        return None if self.call.threads is not None else self._segment.replayed(queries, k, progress)

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
        call = self.call
        return self._segment.decided(queries, k, call.threads, progress, call.memory, around=around)

    def decided_within(self, queries: Any, limits: Any, progress: ProgressLike) -> DecidedPoints:
        return DecidedPoints(self.rows, self.call, self.decided(queries, 1, progress))

    def ready(self, queries: Any, limits: Any) -> Points:
        return self  # nothing to prepare, because each block gets a plan of its own
