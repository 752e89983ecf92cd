"""`tonari.knn_graph`: the graph of a set of points, exact or to a given recall."""

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
    """Build the k-nearest-neighbour graph of a set of points: exactly, or by NN-Descent to a given recall.

    Parameters that are not listed are those of :func:`search`.

    Parameters
    ----------
    metric : str or Triton function
        As for :func:`search`; for "nn-descent" on CUDA also a function of yours, decorated with ``triton.jit``, of two
        float64 tensors q and x that is applied to the elements of two points and summed: f(q, x) >= 0, and 0 if they
        are equal. The name of the graph's metric is then "triton:" and the function's name.
    k : int
        Neighbours per point, 1 to n - 1. A point is never its own neighbour: it is excluded by row identity, so its
        duplicates are found.
    method : str
        As for :func:`search`, or "nn-descent": approximate, for many points in more than a few dimensions, on the CPU
        or on one CUDA device. Its distances are those of exact search, and it finds nearly all true neighbours; the
        same seed gives the same graph for any number of threads. "auto" takes it if `recall` is given and it is
        expected to be clearly faster, and returns the exact graph if NN-Descent does not reach the recall.
    recall : float, optional
        Share of the true neighbours to find, below 1: NN-Descent continues until a random sample of rows, compared
        with the exact answer, shows with 97.5 % confidence that the graph has it, and warns if it cannot reach it. For
        "nn-descent", where the default is 0.99, and for "auto", which is exact without it.
    seed : int, optional
        Seed of the random choices of NN-Descent. Default: 0.
    start : "clusters", "random" or KNNGraph, optional
        What NN-Descent starts from: members of near clusters (default), random neighbours, or the neighbours in a
        graph of the same points, of any metric or k.
    include_self : bool
        Put the point itself into column 0 (at distance 0; at <x, x> for "inner_product"), as one of the k columns;
        k is then from 1 to n.

    Returns
    -------
    KNNGraph
        Its arrays are of the same library and on the same device as the points, as those of :func:`search` are as the
        queries. The `report` of an approximate graph has the measured recall.

    Warns
    -----
    UserWarning
        ``method="nn-descent"`` did not reach the recall.

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
