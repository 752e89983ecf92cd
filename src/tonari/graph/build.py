"""`tonari.knn_graph`: the graph of a set of points, exact or up to a recall."""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Sequence
from typing import Any

from tonari import inputs
from tonari.core.errors import Unsupported
from tonari.core.floats import in_default_floats
from tonari.core.method import GraphLists
from tonari.core.plan import Plan
from tonari.core.progress import ProgressLike
from tonari.exact.cuda.cuda_graph_cache import CAPTURED, key_of, replayed
from tonari.graph.approximate import choose_or_plan, entries_of_start, kind_of_start, may_miss
from tonari.graph.knn_graph import KNNGraph
from tonari.methods.answer import check_plan, decide, on_side_of
from tonari.methods.decision import Decision
from tonari.methods.place import Place, place_for, problem_of
from tonari.methods.registry import check_method, method_for
from tonari.metrics import TritonFunction, get_metric

logger = logging.getLogger("tonari")


@in_default_floats
def knn_graph(
    points: Any,
    k: int,
    *,
    metric: str | TritonFunction = "euclidean",
    method: str = "auto",
    recall: float | None = None,
    seed: int | None = None,
    start: str | KNNGraph | None = None,
    include_self: bool = False,
    device: str | Sequence[str] = "auto",
    threads: int | None = None,
    memory: int | str | None = None,
    progress: ProgressLike = None,
    plan: Plan | None = None,
) -> KNNGraph:
    """Build the k-nearest-neighbour graph of a set of points: exactly, or by NN-Descent up to a recall.

    Parameters are those of :func:`search`, and

    Parameters
    ----------
    metric : str or Triton function
        As for :func:`search`; for "nn-descent" on CUDA also a function of yours, decorated by ``triton.jit``, of two
        float64 tensors q and x that is applied to the elements of two points and summed: f(q, x) >= 0, and 0 where they
        are equal. The graph's metric is called "triton:" and the function's name.
    k : int
        Neighbours per point, 1 to n - 1. A point is never its own neighbour: it is excluded by row identity, so that
        duplicates of it are found.
    method : str
        As for :func:`search`, or "nn-descent": approximate, for many points in more than a few dimensions, on the CPU
        or on one CUDA device. Its distances are those of exact search, its neighbours nearly all of the true ones;
        the same seed gives the same graph, whatever the threads. "auto" takes it where `recall` is given and it is
        expected to be clearly sooner, and gives the exact graph where NN-Descent then misses the recall.
    recall : float, optional
        Share of the true neighbours that is to be reached, below 1: NN-Descent goes on until a random sample of rows,
        compared with the exact answer, says so with 97.5 % confidence, and warns where that is out of its reach. For
        "nn-descent", where the default is 0.99, and for "auto", which is exact without it.
    seed : int, optional
        Of what NN-Descent draws. Default: 0.
    start : "clusters", "random" or KNNGraph, optional
        Where NN-Descent begins: with members of near clusters (default), with random neighbours, or with those in a
        graph of the same points, of any metric or k.
    include_self : bool
        Put the point itself into column 0 (at distance 0; at <x, x> for "inner_product"), as one of the k columns;
        then k goes from 1 to n.

    Returns
    -------
    KNNGraph
        Its arrays are of the kind and in the place of the points, as those of :func:`search` are of the queries. Of an
        approximate graph `report` has the recall that was measured.

    Warns
    -----
    UserWarning
        NN-Descent did not reach the recall, and was asked for by name.

    Examples
    --------
    >>> import numpy as np, tonari
    >>> line = np.array([[0.0], [1.0], [3.0]], dtype=np.float32)
    >>> tonari.knn_graph(line, k=1).indices.ravel().tolist()
    [1, 0, 1]
    """
    started = time.perf_counter()
    check_method(method)
    name = get_metric(metric).name
    include_self, progress = inputs.check_flag(include_self, "include_self"), inputs.check_progress(progress)
    check_plan(plan, graph=True)
    approximate = may_miss(method, recall, seed, start, plan)
    place = place_for(device, points=points)
    rows = place.rows(points, "points", name)
    n = len(rows)
    k = inputs.check_k(k, n if include_self else n - 1, without_self=not include_self)
    others = k - include_self
    made_by = plan.method if plan is not None else "exact" if method == "auto" else method
    lists: GraphLists | None = None
    if others == 0:
        _refuse_what_a_search_would(place, rows, name, made_by)
        lists = GraphLists(place.no_others(rows, name))
    elif threads is None and memory is None and plan is None and not approximate and method in CAPTURED:
        key = key_of(rows, rows, others, name, device, self_join=True)
        again = replayed(key, (rows,), progress)
        lists = None if again is None else GraphLists(again)
    if lists is None:
        problem = problem_of(place, rows, rows, others, name, self_join=True, threads=threads, memory=memory)
        if approximate and plan is None:
            decision = choose_or_plan(problem, rows, method, recall, seed, kind_of_start(start), progress)
        else:
            decision = decide(place, problem, rows, rows, method, plan, progress)
        lists, made_by = _build(rows, decision, entries_of_start(place, start, n), progress)
    found = place.with_self(lists.found, rows, name) if include_self else lists.found
    found = on_side_of(points, found)
    report = None if lists.report is None else lists.report.taken(started)
    return KNNGraph.of_lists(found, name, made_by, include_self, seed=lists.seed, report=report)


def _refuse_what_a_search_would(place: Place, rows: Any, metric: str, method: str) -> None:
    """Refuse a method that could not build the graph, where there is nothing to be built."""
    problem = dataclasses.replace(problem_of(place, rows, rows, 1, metric), self_join=True)
    why_not = method_for(method, place.device).refuses(problem)
    if why_not is not None:
        raise Unsupported(why_not)


def _build(rows: Any, decision: Decision, start: Any, progress: ProgressLike) -> tuple[GraphLists, str]:
    """What was decided, and the method; where its recall is out of reach, what comes instead."""
    given: dict[str, Any] = {"prepared": decision.prepared, "start": start, "patience": decision.patience}
    lists: GraphLists = decision.method.build_graph(rows, decision.plan, progress=progress, **given)
    if decision.instead is None or lists.report.reached:
        return lists, decision.method.name
    logger.info("auto gives %s up: %s", decision.method.name, lists.report)
    del lists  # which would be held beside the next
    return _build(rows, decision.instead, None, progress)
