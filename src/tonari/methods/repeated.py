"""Repeated calls on the CPU: the checks and decisions of a call are cached for equal calls.

Two calls are equal here if they differ only in the values and addresses of their rows. For equal calls, all checks of
arguments, except the checks of values, have the same result, and the plan is the same. A call that takes only
microseconds would spend most of its time on checks and planning. Public functions and methods are therefore wrapped by
:func:`repeating`. The wrapped function, when it has answered a call for the first time, caches functions that can
answer equal calls (:func:`keep`); later, the wrapper tries these before anything else. They depend only on sizes and on
the number of free processors. `tonari.exact.cuda.replay.cache` is the counterpart on CUDA.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Hashable, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple, ParamSpec, TypeAlias, TypeVar

import numpy as np

from tonari.core._native import environment, has_default_floats
from tonari.core.process.caches import emptied_by
from tonari.core.process.compiling import not_compiled
from tonari.core.process.floats import in_default_floats
from tonari.core.process.workers import default_threads
from tonari.core.results.neighbors import Neighbors
from tonari.core.results.radius_neighbors import RadiusNeighbors, Within
from tonari.core.trail import Record, current, recording
from tonari.methods import tuning
from tonari.methods.answer import PLAN_VARIABLES, answer, checked, processors_of
from tonari.methods.call import Call
from tonari.methods.decision import Decision
from tonari.methods.places.value_range import are_inside, check_range
from tonari.metrics import Metric

P = ParamSpec("P")
R = TypeVar("R")

Key: TypeAlias = tuple[Hashable, ...]
# a function that takes the arrays of a call and returns its answer, or None if it cannot
Way: TypeAlias = Callable[..., Any]

logger = logging.getLogger("tonari")


class Kept(NamedTuple):
    """The cache entry of a call: functions that answer calls equal to it.

    Attributes
    ----------
    ways : sequence of Way
        The functions to try, the quickest first.
    processors : int, optional
        The number of free processors for which the entry is valid; None if the plan does not depend on it.
    """

    ways: Sequence[Way]
    processors: int | None


class _Asked(NamedTuple):
    """A call that is being answered for the first time: the cache, the key of its entry, and the arrays of the call."""

    kept: dict[Key, Kept]
    key: Key
    arrays: list[Any]


_kept: dict[Key, Kept] = {}  # cache entries of all wrapped functions; each key starts with its function
emptied_by(_kept.clear)
_asked: ContextVar[_Asked | None] = ContextVar("tonari_asked", default=None)
_VALUES = frozenset((int, float, str, bool, type(None)))


def repeating(function: Callable[P, R], kept_of: Callable[[Any], dict[Key, Kept]] | None = None) -> Callable[P, R]:
    """Wrap a public function so that its calls are answered by the cached functions of an earlier, equal call.

    For a method, `kept_of` takes the object and returns its own cache.
    """
    begin = 0 if kept_of is None else 1

    @not_compiled
    @functools.wraps(function)
    def calling(*args: P.args, **kwargs: P.kwargs) -> R:
        kept = _kept if kept_of is None else kept_of(args[0])
        parts: list[Any] = [function, environment(*PLAN_VARIABLES)]
        arrays: list[Any] = []
        if not _read(args[begin:] if begin else args, kwargs, parts, arrays):
            return _first(function, None, args, kwargs)
        key = tuple(parts)
        entry = kept.get(key)
        if entry is not None and (entry.processors is None or entry.processors == default_threads()):
            for way in entry.ways:
                found: R | None = way(*arrays)
                if found is not None:
                    return found
        return _first(function, _Asked(kept, key, arrays), args, kwargs)

    return calling


def repeating_method(kept_of: Callable[[Any], dict[Key, Kept]]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return :func:`repeating` as a decorator for a method; `kept_of` returns the cache of an object."""
    return functools.partial(repeating, kept_of=kept_of)


def _read(args: Any, kwargs: dict[str, Any], key: list[Any], arrays: list[Any]) -> bool:
    """Append the arguments of a call to a key, and its arrays to a list; return False if the call cannot be cached.

    In the key, an array is represented by its shape and dtype, and another value by its type and itself, because
    True == 1 and 5.0 == 5.
    """
    for x in args:
        kind = type(x)
        if kind is np.ndarray:
            flags = x.flags
            if not (flags.c_contiguous and flags.aligned):  # a search would need a converted copy of this array
                return False
            key += (x.shape, x.dtype)
            arrays.append(x)
        elif kind in _VALUES:
            key += (kind, x)
        else:
            return False
    for name, x in kwargs.items():
        kind = type(x)
        key.append(name)
        if kind in _VALUES:
            key += (kind, x)
        elif not ((name == "points" or (name == "queries" and not arrays)) and _read((x,), {}, key, arrays)):
            return False  # a Way needs queries before points
    return True


def _first(function: Callable[..., R], asked: _Asked | None, args: Any, kwargs: Any) -> R:
    """Call the function itself, which may call :func:`keep` to fill the cache."""
    token = _asked.set(asked)
    try:
        return function(*args, **kwargs)
    finally:
        _asked.reset(token)


def keep(
    decision: Decision,
    arrays: Sequence[Any],
    quick: Way | None,
    again: Way | None,
    *,
    kept: dict[Key, Kept] | None = None,
) -> None:
    """Cache functions that answer later calls equal to the current one, if its decision depends on sizes alone.

    Parameters
    ----------
    decision : Decision
    arrays : sequence of arrays
        The rows that were searched. Nothing is cached if they are not the arrays of the call itself, because a cached
        function receives the arrays of a later call.
    quick, again : functions of the rows that return an answer or None, optional
        `quick` is called first, and `again` if `quick` returns None. If both return None, the call is answered as for
        the first time.
    kept : dict, optional
        For a method, the cache of the state that was searched. Nothing is cached if another thread has replaced the
        object's cache in the meantime.
    """
    asked = _asked.get()
    if asked is None or decision.by_data or len(arrays) != len(asked.arrays):
        return
    if kept is not None and kept is not asked.kept:
        return
    if not all(ours is theirs for ours, theirs in zip(arrays, asked.arrays, strict=True)):
        return
    if len(asked.kept) >= tuning.KEPT_SEARCHES:
        asked.kept.clear()
    ways = quick, None if again is None else in_default_floats(again)
    asked.kept[asked.key] = Kept(tuple(way for way in ways if way is not None), processors_of(decision))


def is_unobserved() -> bool:
    """Return whether the current call is neither recorded nor logged."""
    return current.get() is None and not logger.isEnabledFor(logging.INFO)


def _has_no_domain(metric: Metric) -> bool:
    """Return whether a metric accepts all finite rows as they are, without conversion or a check of their signs."""
    return not (metric.bits or metric.missing or metric.nonnegative or metric.own)


def quick_search(call: Call, decision: Decision, queries: Any, points: Any) -> Way | None:
    """Return a function that searches rows of the same sizes and dtypes with the least overhead.

    Return None if that is impossible.

    If the decision has prepared points, the function ignores the points that it receives.
    """
    metric = call.metric
    run = decision.method.quick_search(queries, points, decision.prepared, decision.plan)
    if run is None or not _has_no_domain(metric):
        return None

    def quick(queries: Any, points: Any) -> Neighbors | None:
        made = run(queries, points) if is_unobserved() else None
        if made is None or made[1]:
            return None if made is None else made[0]
        if not has_default_floats():
            return None
        found: Neighbors = made[0]
        check_range(found.distances, found.indices, None, queries, points, metric)
        return found

    return quick


def quick_within(call: Call, decision: Decision, request: Within, points: Any) -> Way | None:
    """Return a function that finds the points within the limits of a request; see :func:`quick_search`."""
    metric = call.metric
    if not _has_no_domain(metric) or not are_inside(request.limits, points, metric):
        return None
    run = decision.method.quick_within(request, points, decision.prepared, decision.plan)
    if run is None:
        return None

    def quick(queries: Any, points: Any) -> RadiusNeighbors | None:
        made = run(queries, points) if is_unobserved() else None
        if made is None or made[1]:
            return None if made is None else made[0]
        if not has_default_floats():
            return None
        found: RadiusNeighbors = made[0]
        check_range(found.distances, found.indices, found.indptr, queries, points, metric)
        return found

    return quick


def quick_count(call: Call, decision: Decision, request: Within, points: Any) -> Way | None:
    """Return a function that counts the points within the limits of a request; see :func:`quick_search`."""
    if not _has_no_domain(call.metric) or not are_inside(request.limits, points, call.metric):
        return None
    run = decision.method.quick_count(request, points, decision.prepared, decision.plan)
    if run is None:
        return None
    return lambda queries, points: run(queries, points) if is_unobserved() else None


def answered(call: Call, decision: Decision) -> Way:
    """Return a function that runs a decision without prepared points, and checks the values of the rows."""

    def again(queries: Any, points: Any) -> Neighbors:
        found = None
        if not (call.metric.nonnegative or call.metric.missing):
            found = decision.search_unchecked(queries, points, call.progress)
        if found is not None:
            return checked(found, queries, points, call.metric)
        return answer(*call.both(queries, points), decision, call.metric, call.progress)

    return again


def graph_lists(call: Call, decision: Decision) -> Callable[[Any], tuple[Neighbors, Record]]:
    """Return a function that takes points, runs the decision, and returns all neighbours and a record of the search."""

    def again(points: Any) -> tuple[Neighbors, Record]:
        rows = call.rows(points, "points")
        with recording("knn_graph", len(rows)) as record:
            found = answer(rows, rows, decision, call.metric, call.progress, self_join=True)
        return found, record

    return again
