"""Build the lists of a k-NN graph: exactly, or by NN-Descent up to a recall."""

from __future__ import annotations

import dataclasses
import logging
import time
from typing import Any

from tonari import inputs
from tonari.core.errors import Unsupported
from tonari.core.method import GraphLists
from tonari.core.plan import Plan
from tonari.core.progress import ProgressLike
from tonari.exact.cuda.replay.cache import CAPTURED, key_of
from tonari.graph.approximate import choose_or_plan, entries_of_start, may_miss
from tonari.graph.lists import Lists
from tonari.methods.answer import check_plan, decide, on_side_of, replay
from tonari.methods.decision import Decision
from tonari.methods.place import Place, problem_of
from tonari.methods.registry import by_force, check_method, method_for
from tonari.methods.value_range import check_range
from tonari.methods.where import place_for
from tonari.metrics import get_metric

logger = logging.getLogger("tonari")


def build_lists(
    points: Any,
    k: int,
    *,
    metric: Any = "euclidean",
    method: str = "auto",
    recall: float | None = None,
    seed: int | None = None,
    start: str | Lists | None = None,
    update: str | None = None,
    include_self: bool = False,
    device: Any = "auto",
    threads: int | None = None,
    memory: int | str | None = None,
    progress: ProgressLike = None,
    plan: Plan | None = None,
) -> Lists:
    """Find the neighbours of every point among the others; see :func:`tonari.knn_graph`."""
    started = time.perf_counter()
    check_method(method)
    name = get_metric(metric).name
    include_self, progress = inputs.check_flag(include_self, "include_self"), inputs.check_progress(progress)
    check_plan(plan, graph=True)
    approximate = may_miss(method, recall, seed, start, update, plan)
    place = place_for(device, points=points)
    rows = place.rows(points, "points", name, threads)
    n = len(rows)
    k = inputs.check_k(k, n if include_self else n - 1, without_self=not include_self)
    others = k - include_self
    made_by = plan.method if plan is not None else by_force(name) if method == "auto" else method
    lists: GraphLists | None = None
    if others == 0:
        _refuse_what_a_search_would(place, rows, name, made_by)
        lists = GraphLists(place.no_others(rows, name))
    elif threads is None and memory is None and plan is None and not approximate and method in CAPTURED:
        key = key_of(rows, rows, others, name, device, self_join=True)
        again = replay(key, (rows,), rows, name, progress)
        lists = None if again is None else GraphLists(again)
    if lists is None:
        problem = problem_of(place, rows, rows, others, name, self_join=True, threads=threads, memory=memory)
        if approximate and plan is None:
            decision = choose_or_plan(problem, rows, method, recall, seed, start, update, progress)
        else:
            decision = decide(place, problem, rows, rows, method, plan, progress)
        lists, made_by = _build(rows, decision, entries_of_start(place, start, n), progress)
    found = place.with_self(lists.found, rows, name) if include_self else lists.found
    found = on_side_of(points, found)
    report = None if lists.report is None else lists.report.taken(started)
    return Lists(found, name, made_by, include_self, lists.seed, report)


def _refuse_what_a_search_would(place: Place, rows: Any, metric: str, method: str) -> None:
    """Raise Unsupported for a method that does not support the problem, in the case where no search would be run."""
    problem = dataclasses.replace(problem_of(place, rows, rows, 1, metric), self_join=True)
    why_not = method_for(method, place.device).refuses(problem)
    if why_not is not None:
        raise Unsupported(why_not)


def _build(rows: Any, decision: Decision, start: Any, progress: ProgressLike) -> tuple[GraphLists, str]:
    """Build the lists as decided, or by the fallback if the recall is not reached; also return the method's name."""
    given: dict[str, Any] = {"prepared": decision.prepared, "start": start, "patience": decision.patience}
    lists: GraphLists = decision.method.build_graph(rows, decision.plan, progress=progress, **given)
    found = lists.found
    check_range(found.distances, found.indices, None, rows, rows, decision.plan.metric)
    if decision.instead is None or lists.report.reached:
        return lists, decision.method.name
    logger.info("auto gives %s up: %s", decision.method.name, lists.report)
    del lists  # free them before the fallback builds its own
    return _build(rows, decision.instead, None, progress)
