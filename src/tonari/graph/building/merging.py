"""Merge two graphs (GGM, wang2021 section 5): the list of each point also takes near points of the other graph.

A graph and its points are called a side. If one side is small, every point is compared with all points of the other
side, exactly. Otherwise each list is filled up with points of the other side, and rounds of NN-Descent compare only
points of different sides.
"""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import numpy as np

from tonari import inputs
from tonari.core.errors import BudgetExceeded
from tonari.core.plan import Plan
from tonari.core.process.floats import in_default_floats
from tonari.core.process.host_memory import free_host_memory
from tonari.core.results.neighbors import Neighbors
from tonari.core.trail import Record, decided, recording
from tonari.graph import tuning
from tonari.graph.building.build import GraphOptions, build_lists
from tonari.graph.building.sides import OF_ADD, OF_MERGE, Sides, one_after_the_other, refuse_filters, refuse_incomplete
from tonari.graph.lists import Lists
from tonari.methods.call import Call
from tonari.methods.registry import search_method
from tonari.nn_descent.driver import Measure, Measuring, build, report_of
from tonari.nn_descent.method import beside_rows
from tonari.nn_descent.plan import DescentPlan, check_recall, check_seed
from tonari.nn_descent.planning.planner import RECALL
from tonari.nn_descent.report import DescentReport
from tonari.nn_descent.updates import check_name
from tonari.select.merge import merge_neighbors


def merge_lists(
    a: tuple[Lists, Any],
    b: tuple[Lists, Any],
    call: Call,
    *,
    recall: float | None,
    seed: int,
    update: str | None = None,
    measure: Measuring | None = None,
    checked: bool = False,
) -> Lists:
    """Merge two graphs, each passed with its points; see :func:`tonari.merge`.

    `call` describes the points of both graphs.

    If `recall` is None, both graphs must be exact, and the merged graph is exact too. `measure` returns the recall that
    ends the rounds; see :func:`tonari.nn_descent.driver.build`. If `checked` is True, the caller knows that the lists
    belong to these points, and the check is skipped.
    """
    recall, seed = None if recall is None else check_recall(recall), check_seed(seed)
    check_name(update)
    for name in ("metric", "k", "include_self"):
        ours, theirs = getattr(a[0], name), getattr(b[0], name)
        if ours != theirs:
            raise ValueError(f"graph_a has {name}={ours!r}, graph_b {name}={theirs!r}: they must agree")
    for name, (lists, _) in zip(("graph_a", "graph_b"), (a, b), strict=True):
        refuse_filters(lists, name)
    sides = Sides(a[0], a[1], b[1], call, OF_MERGE)
    own = sides.own(a[0], 0, checked=checked), sides.own(b[0], 1, checked=checked)
    if not checked:
        refuse_incomplete(a[0], "graph_a")
        refuse_incomplete(b[0], "graph_b")
    with recording("merge", sides.n) as record:
        if sides.k == 0:
            return _without_others(sides, record)
        crossing = _Crossing(sides)
        if recall is None:
            decided("sides", "every point is compared with all points of the other side: the graph stays exact")
            return sides.joined(*crossing.run(own, None), record=record)
        plan = sides.plan(recall, seed, update)
        why = f"{crossing.seconds:.3g} s expected, {plan.seconds:.3g} s by rounds of NN-Descent"
        if crossing.seconds > tuning.MERGE_SHARE * plan.seconds:
            record.planned(plan.method, f"to compare every point with all of the other side takes long: {why}", plan)
            return sides.joined(*_descended(sides, own, plan, measure), record=record)
        decided("sides", f"every point is compared with all points of the other side: {why}")
        return sides.joined(*crossing.run(own, None if a[0].exact and b[0].exact else plan), record=record)


@in_default_floats
def add_points(
    lists: Lists,
    points: Any,
    new_points: Any,
    call: Call,
    *,
    recall: float | None,
    seed: int,
    update: str | None = None,
) -> Lists:
    """Add points to a graph; see :meth:`tonari.KNNGraph.add`. `call` is for the old and the new points together."""
    if recall is not None or not lists.exact:
        recall = check_recall(RECALL if recall is None else recall)
    seed = check_seed(seed)
    check_name(update)
    if recall is None and update is not None:
        raise ValueError(
            f"update={update!r}: is for graphs that may miss neighbours, but this one is exact and stays so; leave it "
            "out, or set recall as well"
        )
    refuse_filters(lists, "the graph")
    sides = Sides(lists, points, new_points, call, OF_ADD)
    sides.check(lists, 0)  # fail before the graph of the new points is built
    refuse_incomplete(lists, "the graph")
    _check_room(lists, sides)
    with recording("add", sides.n) as record:
        if sides.k == 0:
            return _without_others(sides, record)
        if len(sides.b) > lists.k:
            decided("new points", f"{len(sides.b):,}, more than {lists.k} columns: their graph is built and merged")
            if lists.exact:
                by, options = dataclasses.replace(call, method="exact"), GraphOptions(include_self=lists.include_self)
            else:
                by = call if update is None else dataclasses.replace(call, method="nn-descent")
                options = GraphOptions(include_self=lists.include_self, recall=recall, seed=seed, update=update)
            new = build_lists(new_points, lists.k, by, options)
            merged = merge_lists((lists, points), (new, new_points), call, recall=recall, seed=seed, update=update)
            report = None if merged.report is None else merged.report.taken(sides.started)
            return dataclasses.replace(merged, report=report, record=record)
        decided("new points", f"{len(sides.b):,}, at most {lists.k} columns: all are compared with the others")
        own = sides.own(lists, 0)
        among = sides.place.no_others(sides.b, sides.measure)
        if len(sides.b) > 1:
            among = sides.own(build_lists(new_points, len(sides.b) - 1, call), 1)
        plan = None if recall is None else sides.plan(recall, seed, update)
        return sides.joined(*_Crossing(sides).run((own, among), None if lists.exact else plan), record=record)


def _without_others(sides: Sides, record: Record) -> Lists:
    """Merge two graphs without neighbours: every list contains only the point itself."""
    record.tried("no neighbours but the points themselves", sides.n, sides.n)
    return sides.joined(sides.place.no_others(sides.both, sides.measure), "exact", record=record)


def _check_room(lists: Lists, sides: Sides) -> None:
    """Raise BudgetExceeded if a mapped graph and its points do not fit into memory together."""
    if not isinstance(lists.found.indices, np.memmap):
        return
    count, old = len(sides.a) + len(sides.b), lists.found
    row = sides.a.shape[1] * inputs.dtype_of(inputs.name_of_dtype(sides.a)).itemsize
    entry = old.indices.itemsize + old.distances.itemsize
    needed, free = count * (row + 2 * lists.k * entry), free_host_memory()  # old and new lists are in memory together
    if needed > free:
        raise BudgetExceeded(
            f"add holds all points and lists in memory, {needed} bytes without the search, but {free} are free; build "
            "the graph of all points, from files, in a new directory: tonari.build_graph([points, new_points], k, out)"
        )


_Made = tuple[Neighbors, str, int | None, DescentReport | None]


class _Crossing:
    """A merge by brute force, which compares every point of one graph with all points of the other graph.

    Parameters
    ----------
    sides : Sides

    Attributes
    ----------
    seconds : float
        Rough estimate of the duration.
    """

    def __init__(self, sides: Sides) -> None:
        self._sides = sides
        self._method = search_method("exact", sides.place.device)

        def plan(queries: Any, points: Any) -> Plan:
            k = min(sides.k, len(points))
            problem = sides.call.problem(points, queries, k)
            made: Plan = self._method.plan(problem)
            return made

        self._plans = plan(sides.a, sides.b), plan(sides.b, sides.a)
        self.seconds = sum(made.seconds for made in self._plans)

    def run(self, own: tuple[Neighbors, Neighbors], measured: DescentPlan | None) -> _Made:
        """Return the lists of the merged graph, with their method, seed and report.

        If `measured` is a plan of NN-Descent, the report contains the recall, measured on a sample of the size that the
        plan states. Otherwise the graph is exact.
        """
        started, sides = time.perf_counter(), self._sides
        k, metric, shifts = sides.k, sides.metric, (0, len(sides.a))
        own = sides.beside_points(own[0]), sides.beside_points(own[1])
        from_b = self._method.search_once(sides.a, sides.b, self._plans[0], progress=sides.call.progress)
        from_a = self._method.search_once(sides.b, sides.a, self._plans[1], progress=sides.call.progress)
        of_a = merge_neighbors([own[0], from_b], shifts, k=k, metric=metric)
        of_b = merge_neighbors([from_a, own[1]], shifts, k=k, metric=metric)
        found = Neighbors(*(one_after_the_other(*parts) for parts in zip(of_a, of_b, strict=True)))
        if measured is None:
            return found, "exact", None, None
        there = Neighbors(*(sides.place.there(part) for part in found))
        estimate = Measure(sides.descent.backend(sides.both, measured), measured, len(sides.a))(there)
        report = report_of(measured, estimate, [], time.perf_counter() - started)
        return found, measured.method, measured.seed, report


def _descended(
    sides: Sides,
    own: tuple[Neighbors, Neighbors],
    plan: DescentPlan,
    measure: Measuring | None,
) -> _Made:
    """Merge the lists of two graphs by rounds of NN-Descent that compare only points of different graphs."""
    boundary = len(sides.a)
    backend = sides.descent.backend(sides.both, plan)

    def begin() -> Any:
        of_a, of_b = (sides.place.there(lists.indices) for lists in own)
        kept = backend.entries_of(one_after_the_other(of_a, of_b + (of_b >= 0) * boundary), new=False)
        del of_a, of_b  # frees device memory for the random neighbours
        return backend.joined_entries(kept, backend.seeds(boundary, plan.list_size - sides.k))

    found, report = build(backend, plan, sides.call.progress, begin, boundary, measure=measure)
    return beside_rows(found, sides.both), plan.method, plan.seed, report
