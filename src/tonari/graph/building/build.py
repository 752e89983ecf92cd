"""Build the lists of a k-NN graph: exactly, or by NN-Descent up to a recall."""

from __future__ import annotations

import dataclasses
import reprlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tonari import inputs
from tonari.core.errors import Unsupported
from tonari.core.method import GraphLists
from tonari.core.problem import Problem
from tonari.core.process.progress import ProgressLike
from tonari.core.results.neighbors import Neighbors
from tonari.core.trail import recording
from tonari.filters.arguments import Given
from tonari.filters.scope import Scope
from tonari.filters.searches.nearest import nearest_allowed
from tonari.graph.lists import Lists, check_filters
from tonari.methods import repeated
from tonari.methods.answer import build_graph, check_plan, on_side_of
from tonari.methods.auto_graph import choose_graph
from tonari.methods.call import Call
from tonari.methods.decision import Decision, by_plan
from tonari.methods.places.place import Place
from tonari.methods.places.points import Points
from tonari.methods.registry import by_force, check_exact, is_exact, is_search, method_for
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


_NO_OPTIONS = GraphOptions()


def keep_lists(call: Call, decision: Decision, points: Any, finish: Callable[[Lists], Any]) -> None:
    """Cache the decision of this call, so that a later call with equal arguments starts its search at once.

    `finish` turns the neighbour lists of the later call into that call's answer, as in :func:`build_lists`.
    """
    lists = repeated.graph_lists(call, decision)

    def again(points: Any) -> Any:
        found, record = lists(points)
        return finish(Lists(found, call.metric.name, decision.method.name, record=record))

    if decision.prepared is None:
        repeated.keep(decision, (points,), None, again)


def build_lists(
    points: Any,
    k: int,
    call: Call,
    options: GraphOptions = _NO_OPTIONS,
    finish: Callable[[Lists], Any] | None = None,
) -> Lists:
    """Find the neighbours of every point among the other points; see :func:`tonari.knn_graph`.

    If `finish` is passed, a function that turns lists into the graph that the caller receives, the decision for an
    exact graph on the CPU is cached for later calls with equal arguments; see :func:`keep_lists`.
    """
    started, plan = time.perf_counter(), options.plan
    include_self = inputs.check_flag(options.include_self, "include_self")
    check_plan(plan, graph=True)
    approximate = may_miss(call.method, options)
    rows = call.rows(points, "points")
    k = _checked_k(k, len(rows), include_self)
    those, others = Points(rows, call), k - include_self
    made_by = plan.method if plan is not None else _exact_method(call)
    lists: GraphLists | None = None
    with recording("knn_graph", len(rows)) as record:
        if others == 0:
            _refuse_what_a_search_would(those, made_by)
            lists = GraphLists(call.place.no_others(rows, call.metric))
            record.tried("no neighbours but the points themselves", len(rows), len(rows))
        elif plan is None and not approximate:
            again = those.replayed(rows, others, call.progress, self_join=True)
            lists = None if again is None else GraphLists(again)
        if lists is None:
            if approximate and plan is None:
                problem = those.problem(rows, others, self_join=True)
                decision = choose_or_plan(problem, rows, call.method, options, call.progress)
            else:
                decision = those.decided(rows, others, call.progress, self_join=True, plan=plan)
                if finish is not None and not call.place.devices:
                    keep_lists(call, decision, rows, finish)
            start = entries_of_start(call.place, options.start, len(rows))
            lists, made_by = build_graph(rows, decision, call.metric, call.progress, start=start)
    found = _with_self(lists.found, rows, call, include_self)
    report = None if lists.report is None else lists.report.taken(started)
    found = on_side_of(points, found, "points")
    return Lists(found, call.metric.name, made_by, include_self, lists.seed, report, record=record)


def build_allowed(points: Any, k: int, call: Call, given: Given, options: GraphOptions) -> Lists:
    """Build an exact graph whose neighbours are restricted by the filters `given`; see :func:`tonari.knn_graph`.

    All options other than `include_self` are refused.
    """
    refuse_options(call.method, options, "where, batch and exclude_within are")
    include_self = inputs.check_flag(options.include_self, "include_self")
    rows = call.rows(points, "points")
    n = len(rows)
    k = _checked_k(k, n, include_self)
    those, others = Points(rows, call), k - include_self
    those.refuse_unsupported(rows, max(1, others))
    rules = given.rules(n, n, own=True)
    assert rules is not None
    if rules.mask is not None:
        raise ValueError(f"where: expected shape ({n},), one mask for all rows, got {rules.mask.shape}")
    with recording("knn_graph", n) as record:
        if others == 0:
            found = call.place.no_others(rows, call.metric)
            record.tried("no neighbours but the points themselves", n, n)
        else:
            found = nearest_allowed(Scope(points=those), rows, others, rules, call.progress)
            if call.place.devices:
                found = Neighbors(*(call.place.there(part) for part in found))
    found = on_side_of(points, _with_self(found, rows, call, include_self), "points")
    made_by = "exact" if call.method == "auto" else call.method
    return Lists(found, call.metric.name, made_by, include_self, record=record, filters=check_filters(given.names))


def refuse_options(method: str, options: GraphOptions, what: str) -> None:
    """Refuse a plan, or an option of approximate graphs, in a call with arguments that only exact graphs support.

    The message starts with `what`: the names of these arguments, followed by a verb.
    """
    named = [name for name in ("recall", "seed", "start", "update", "plan") if getattr(options, name) is not None]
    if named or not is_search(method):
        named = named or [f"method={method!r}"]
        raise ValueError(f"{', '.join(named)}: {what} for exact graphs alone; leave it out")


def _refuse_what_a_search_would(those: Points, method: str) -> None:
    """Raise Unsupported if the method does not support the problem.

    A search would raise this error itself, but a graph whose lists contain only the points themselves needs no search.
    """
    problem = dataclasses.replace(those.problem(those.rows, 1), self_join=True)
    why_not = method_for(method, problem.device).refuses(problem)
    if why_not is not None:
        raise Unsupported(why_not)


def _checked_k(k: Any, n: int, include_self: bool) -> int:
    return inputs.check_k(k, n if include_self else n - 1, without_self=not include_self)


def _exact_method(call: Call) -> str:
    return by_force(call.metric.name) if call.method == "auto" else call.method


def _with_self(found: Neighbors, rows: Any, call: Call, include_self: bool) -> Neighbors:
    return call.place.with_self(found, rows, call.metric) if include_self else found
