"""Approximate graphs: their arguments, the choice of the method, and the initial lists."""

from __future__ import annotations

import reprlib
from dataclasses import dataclass
from typing import Any

from tonari.core.problem import Problem
from tonari.core.process.progress import ProgressLike
from tonari.graph.lists import Lists
from tonari.methods.auto_graph import choose_graph
from tonari.methods.decision import Decision, by_plan
from tonari.methods.registry import check_exact, is_exact, method_for
from tonari.methods.rows.place import Place
from tonari.nn_descent.plan import check_recall, check_seed
from tonari.nn_descent.updates import check_name


@dataclass(frozen=True, kw_only=True)
class GraphOptions:
    """The arguments of :func:`tonari.knn_graph` that :func:`tonari.search` does not have, before they are checked."""

    recall: Any = None
    seed: Any = None
    start: Any = None
    update: Any = None
    plan: Any = None
    include_self: bool = False


def may_miss(method: str, options: GraphOptions) -> bool:
    """Return whether the call may build an approximate graph.

    Raise ValueError for arguments that its method refuses.
    """
    recall, seed, start, update = options.recall, options.seed, options.start, options.update
    plan = options.plan
    if plan is not None:
        for name, value in (("recall", recall), ("seed", seed), ("update", update)):
            if value is not None:
                raise ValueError(f"{name}={value!r}: a plan has its own {name}; pass it to tonari.plan, not with plan=")
        method = plan.method
    approximate = not is_exact(method) or (method == "auto" and recall is not None)
    if not approximate:
        check_exact(method, recall=recall, seed=seed, start=start)
    if is_exact(method):  # also refused for "auto", which chooses the update itself
        check_exact(method, update=update)
    check_name(update)
    if recall is not None:
        check_recall(recall)
    if seed is not None:
        check_seed(seed)
    kind = kind_of_start(start)
    if plan is not None and approximate and kind != plan.start and (start is not None or plan.start == "graph"):
        raise ValueError(f"the plan has start={plan.start!r}, this call start={kind!r}: they must agree")
    return approximate


def kind_of_start(start: Any) -> str:
    """Return the name of the initial lists in a plan: "clusters" (the default), "random" or "graph"."""
    if isinstance(start, Lists):
        return "graph"
    if start is None:
        return "clusters"
    if not isinstance(start, str) or start not in ("clusters", "random"):
        raise ValueError(f'start={reprlib.repr(start)}: expected "clusters", "random" or a KNNGraph of the same points')
    return start


def choose_or_plan(problem: Problem, rows: Any, method: str, options: GraphOptions, progress: ProgressLike) -> Decision:
    """Plan the approximate method that the caller named; for "auto" with a recall, choose the fastest method."""
    recall, seed, start, update = options.recall, options.seed, options.start, options.update
    if method == "auto" and recall is not None:
        return choose_graph(problem, rows, recall=recall, seed=seed, start=kind_of_start(start), progress=progress)
    named: dict[str, Any] = {} if start is None else {"start": kind_of_start(start)}
    if update is not None:
        named["update"] = update
    descent = method_for(method, problem.device)
    return by_plan(descent, descent.plan(problem, recall=recall, seed=seed, **named))


def entries_of_start(place: Place, start: Any, n: int) -> Any:
    """Return the indices in the neighbour lists of the graph `start`, on the search's device.

    None if `start` is not a graph.
    """
    if not isinstance(start, Lists):
        return None
    if start.n != n:
        raise ValueError(f"start is a graph of {start.n} points, but there are {n}: pass a graph of the same points")
    return place.there(start.found.indices[:, int(start.include_self) :])
