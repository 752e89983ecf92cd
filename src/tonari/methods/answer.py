"""From checked rows to an answer: the caller's plan or a decision, then the method that it names."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from tonari import inputs
from tonari.core.neighbors import Neighbors
from tonari.core.plan import Plan
from tonari.core.progress import ProgressLike
from tonari.kdtree.plan import check_tree_metric, held_as
from tonari.methods.auto import Decision, choose
from tonari.methods.engines import Engine
from tonari.methods.plan import check_method
from tonari.metrics import get_metric

if TYPE_CHECKING:
    from tonari.exact.cuda.cuda_graph_cache import Call


def on_side_of(queries: Any, found: Neighbors) -> Neighbors:
    """The answer as the kind of array that the queries are."""
    side = inputs.side_of(queries, "queries")
    return Neighbors(*(inputs.hand_back(part, side) for part in found))


def check_asked(method: str, metric: Any) -> str:
    """The name of the metric."""
    check_method(method)
    name = get_metric(metric).name
    if method == "kdtree":
        check_tree_metric(name)
    return name


def check_plan(plan: Any, *, graph: bool) -> None:
    """Refuse what is no plan, and for a search a plan that builds graphs."""
    if plan is None:
        return
    if not isinstance(plan, Plan):
        raise TypeError(f"plan: expected what tonari.plan(...) returns, got {type(plan).__name__}")
    if plan.method == "nn-descent" and not graph:
        raise ValueError(
            "plan: its method is 'nn-descent', which builds graphs; use tonari.knn_graph, or make it with "
            "tonari.plan(..., method='exact') or 'kdtree'"
        )


def decide(
    engine: Engine,
    points: Any,
    queries: Any,
    k: int,
    metric: str,
    method: str,
    *,
    threads: int | None,
    memory: int | str | None,
    plan: Any,
    self_join: bool = False,
    progress: ProgressLike = None,
) -> Decision:
    """The caller's plan if there is one, refused where it was made for another problem; else a new one."""
    if plan is None:
        given: dict[str, Any] = {"threads": threads, "memory": memory, "self_join": self_join}
        if method == "auto":
            return choose(engine, points, queries, k, metric, progress=progress, **given)
        return Decision(engine.plan(points, queries, k, metric, method=method, **given))
    if threads is not None or memory is not None:
        raise ValueError("a plan has its own threads and memory: give them to tonari.plan, not beside plan=")
    if method not in ("auto", plan.method):
        raise ValueError(f"the plan's method is {plan.method!r}, but this search has method={method!r}")
    engine.check_plan(plan, points)
    n, d = points.shape
    facts = {"n": n, "m": len(queries), "d": d, "k": k, "metric": metric, "dtype": inputs.name_of_dtype(points)}
    for name, value in facts.items():
        if getattr(plan, name) != value:
            raise ValueError(
                f"the plan was made for {name}={getattr(plan, name)!r}, but this search has {name}={value!r}"
            )
    if plan.method == "kdtree":  # tonari.plan is not told the dtype of the queries
        plan = dataclasses.replace(plan, held=held_as(plan.dtype, inputs.name_of_dtype(queries)))
    return Decision(plan)


def answer(
    engine: Engine,
    queries: Any,
    points: Any,
    chosen: Decision,
    *,
    self_join: bool = False,
    progress: ProgressLike = None,
    call: Call | None = None,
) -> Neighbors:
    """What was chosen, done: with the points as they are prepared already, else prepared for this search alone."""
    given: dict[str, Any] = {"self_join": self_join, "progress": progress, "call": call}
    if chosen.prepared is None:
        return engine.search_once(queries, points, chosen.plan, **given)
    return engine.search(queries, chosen.prepared, chosen.plan, **given)
