"""The answer to a search of checked rows: choose a plan, unless the caller passes one, and run its method."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tonari import inputs
from tonari.core._native import environment
from tonari.core.method import GraphLists
from tonari.core.plan import Plan
from tonari.core.problem import Problem
from tonari.core.process.caches import emptied_by
from tonari.core.process.progress import ProgressLike
from tonari.core.process.workers import default_threads
from tonari.core.results.neighbors import Neighbors
from tonari.core.results.radius_neighbors import RadiusNeighbors
from tonari.core.trail import decided
from tonari.methods import tuning
from tonari.methods.auto import choose
from tonari.methods.decision import Decision, by_plan
from tonari.methods.places.value_range import check_range
from tonari.methods.registry import is_search, method_for
from tonari.metrics import Metric

if TYPE_CHECKING:
    from tonari.methods.call import Call

Found = TypeVar("Found", Neighbors, RadiusNeighbors)

PLAN_VARIABLES = "TONARI_ISA", "TONARI_NUM_THREADS"  # environment variables that change plans
# Cached decisions, each with the number of free processors that it requires, or None if any number is valid.
_kept: dict[Hashable, tuple[Decision, int | None]] = {}
emptied_by(_kept.clear)


def on_side_of(queries: Any, found: Found, name: str = "queries") -> Found:
    """Convert an answer to the array library and the device of the caller's rows."""
    if type(queries) is np.ndarray and isinstance(found.indices, np.ndarray):
        return found
    side = inputs.side_of(queries, name)
    return type(found)(*(inputs.hand_back(part, side) for part in found))


def check_plan(plan: Any, *, graph: bool) -> None:
    """Raise an error if the argument `plan` is not a plan, or is a plan for graphs in a call that requests a search."""
    if plan is None:
        return
    if not isinstance(plan, Plan):
        raise TypeError(f"plan: expected the result of tonari.plan(...), got {type(plan).__name__}")
    if not graph and not is_search(plan.method):
        raise ValueError(
            f"plan: its method is {plan.method!r}, which builds graphs; use tonari.knn_graph, or make it with "
            "tonari.plan(..., method='exact') or 'kdtree'"
        )


def decide(
    call: Call, problem: Problem, points: Any, queries: Any, plan: Plan | None = None, progress: ProgressLike = None
) -> Decision:
    """Choose the method and the plan of a search, or use the caller's plan, which must fit the problem.

    On the CPU, a decision that depends only on sizes is cached, since planning takes longer than a small search.
    """
    method = call.method
    if plan is None:
        decision = kept_decision(problem, method)
        if decision is None:
            if method == "auto":
                decision = choose(problem, points, queries, progress=progress)
            else:
                named = method_for(method, problem.device)
                decision = by_plan(named, named.plan(problem))
            keep_decision(decision, problem, method)
        return decision
    if problem.threads is not None or problem.memory is not None:
        raise ValueError("a plan has its own threads and memory: pass them to tonari.plan, not together with plan=")
    if method not in ("auto", plan.method):
        raise ValueError(f"the plan's method is {plan.method!r}, but this search has method={method!r}")
    call.place.check_plan(plan)
    return by_plan(method_for(plan.method, call.place.device), plan.for_problem(problem))


def kept_decision(problem: Problem, method: str, purpose: str = "nearest") -> Decision | None:
    """Return the cached decision for an equal problem on the CPU, or None."""
    known = None if problem.devices else _kept.get((problem, method, purpose, environment(*PLAN_VARIABLES)))
    if known is None:
        return None
    decision, processors = known
    return decision if processors is None or processors == default_threads() else None


def keep_decision(made: Decision, problem: Problem, method: str, purpose: str = "nearest") -> None:
    """Cache a decision if it is for the CPU and depends only on sizes."""
    if problem.devices or made.by_data or made.prepared is not None:
        return
    if len(_kept) >= tuning.KEPT_DECISIONS:
        _kept.clear()
    processors = None if problem.threads is not None else processors_of(made)
    _kept[problem, method, purpose, environment(*PLAN_VARIABLES)] = made, processors


def processors_of(decision: Decision) -> int | None:
    """Return the number of free processors if the decision depends on it; None if the work is too small to share."""
    processors = default_threads()
    return None if decision.plan.threads == 1 < processors else processors


def answer(
    queries: Any, points: Any, decision: Decision, metric: Metric, progress: ProgressLike, *, self_join: bool = False
) -> Neighbors:
    """Run the search of a decision, and raise ValueError if a value has overflowed or underflowed."""
    found = decision.search(queries, points, progress, self_join=self_join)
    check_range(found.distances, found.indices, None, queries, points, metric)
    return found


def build_graph(
    rows: Any, decision: Decision, metric: Metric, progress: ProgressLike, *, start: Any = None
) -> tuple[GraphLists, str]:
    """Build the graph that a decision chooses, or its fallback if the recall is not reached.

    `start` has initial neighbours, for methods that improve lists. Return the graph, and the name of the method that
    built it.
    """
    lists = decision.build_graph(rows, start, progress)
    checked(lists.found, rows, rows, metric)
    if decision.instead is None or lists.report.reached:
        return lists, decision.method.name
    decided("method", f"auto gives up {decision.method.name}: {lists.report}")
    del lists  # frees memory before the fallback builds lists of its own
    return build_graph(rows, decision.instead, metric, progress)


def checked(found: Found, queries: Any, points: Any, metric: Metric, *, names: Sequence[int] | None = None) -> Found:
    """Return an answer unchanged, or raise ValueError if :func:`check_range` refuses its values."""
    indptr = found.indptr if isinstance(found, RadiusNeighbors) else None
    check_range(found.distances, found.indices, indptr, queries, points, metric, names=names)
    return found
