"""From checked rows to an answer: take the caller's plan or choose one, then run its method."""

from __future__ import annotations

from typing import Any

import numpy as np

from tonari import inputs
from tonari.core.neighbors import Neighbors
from tonari.core.plan import Plan
from tonari.core.problem import Problem
from tonari.core.progress import ProgressLike
from tonari.exact.cuda.replay import cache as cuda_graph_cache
from tonari.methods.auto import choose
from tonari.methods.decision import Decision, by_plan
from tonari.methods.place import Place
from tonari.methods.registry import is_search, method_for
from tonari.methods.value_range import check_range


def on_side_of(queries: Any, found: Neighbors) -> Neighbors:
    """Return the answer in the kind of array that the queries are, on the same device."""
    if type(queries) is np.ndarray and isinstance(found.indices, np.ndarray):
        return found
    side = inputs.side_of(queries, "queries")
    return Neighbors(*(inputs.hand_back(part, side) for part in found))


def check_plan(plan: Any, *, graph: bool) -> None:
    """Raise if `plan` is not a plan, or if it is for graphs only and this is a search."""
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
    place: Place, problem: Problem, points: Any, queries: Any, method: str, plan: Any, progress: ProgressLike = None
) -> Decision:
    """Decide by the caller's plan, which must have been made for this problem, or else make a new plan."""
    if plan is None:
        if method == "auto":
            return choose(problem, points, queries, progress=progress)
        made = method_for(method, place.device)
        return by_plan(made, made.plan(problem))
    if problem.threads is not None or problem.memory is not None:
        raise ValueError("a plan has its own threads and memory: pass them to tonari.plan, not together with plan=")
    if method not in ("auto", plan.method):
        raise ValueError(f"the plan's method is {plan.method!r}, but this search has method={method!r}")
    place.check_plan(plan)
    return by_plan(method_for(plan.method, place.device), plan.for_problem(problem))


def replay(key: Any, given: tuple[Any, ...], points: Any, metric: str, progress: ProgressLike) -> Neighbors | None:
    """Replay a search on CUDA that was captured, for queries, and points, that are `given`; None if there is none."""
    found = cuda_graph_cache.replayed(key, given, progress)
    if found is not None:
        check_range(found.distances, found.indices, None, given[0], points, metric)
    return found


def answer(
    queries: Any, points: Any, decision: Decision, progress: ProgressLike = None, *, self_join: bool = False
) -> Neighbors:
    """Run a decision: search the prepared points if it has them, else prepare the points for this search alone."""
    method, plan, prepared = decision.method, decision.plan, decision.prepared
    search, held = (method.search_once, points) if prepared is None else (method.search, prepared)
    found: Neighbors = search(queries, held, plan, self_join=self_join, progress=progress)
    check_range(found.distances, found.indices, None, queries, points, plan.metric)
    return found
