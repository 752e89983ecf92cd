"""`tonari.knn_graph`: the graph of a set of points, exact or up to a recall."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tonari import inputs
from tonari.core.floats import in_default_floats
from tonari.core.neighbors import Neighbors
from tonari.core.plan import Plan
from tonari.core.progress import ProgressLike
from tonari.exact.cuda import cuda_graph_cache
from tonari.graph.approximate import choose_or_plan, descended, kind_of_start, may_miss
from tonari.graph.knn_graph import KNNGraph
from tonari.methods.answer import answer, check_asked, check_plan, decide, on_side_of
from tonari.methods.auto import Decision
from tonari.methods.engines import Engine, engine_for
from tonari.metrics import TritonFunction

if TYPE_CHECKING:
    from tonari.exact.cuda.cuda_graph_cache import Call
    from tonari.nn_descent.report import DescentReport

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
    name = check_asked(method, metric)
    include_self, progress = inputs.check_flag(include_self, "include_self"), inputs.check_progress(progress)
    check_plan(plan, graph=True)
    approximate = may_miss(method, recall, seed, start, plan)
    engine = engine_for(device, points=points)
    rows = engine.rows(points, "points", name)
    n = len(rows)
    k = inputs.check_k(k, n if include_self else n - 1, without_self=not include_self)
    others = k - include_self
    given: dict[str, Any] = {"threads": threads, "memory": memory, "progress": progress}
    plain = threads is None and memory is None and plan is None and method not in ("kdtree", "nn-descent")
    call = (
        cuda_graph_cache.call_of(rows, rows, others, name, device, self_join=True)
        if plain and not approximate
        else None
    )
    found = engine.no_others(rows, name) if others == 0 else cuda_graph_cache.replayed(call, (rows,), progress)
    made_by, drawn, report = "exact" if method == "auto" else method, None, None
    if found is None:
        if approximate and plan is None:
            asked = {"recall": recall, "seed": seed, "start": kind_of_start(start)}
            chosen = choose_or_plan(engine, rows, others, name, method, asked, **given)
        else:
            chosen = decide(engine, rows, rows, others, name, method, plan=plan, self_join=True, **given)
        found, made_by, drawn, report = _graph(engine, rows, chosen, start, progress, call)
    if include_self:
        found = engine.with_self(found, rows, name)
    found = on_side_of(points, found)
    if report is not None:
        report = report.taken(started)
    return KNNGraph.of_lists(found, name, made_by, include_self, seed=drawn, report=report)


def _graph(
    engine: Engine, rows: Any, chosen: Decision, start: Any, progress: ProgressLike, call: Call | None
) -> tuple[Neighbors, str, int | None, DescentReport | None]:
    """What was chosen, the method, the seed and the report; where NN-Descent misses its recall, what comes instead."""
    plan = chosen.plan
    if plan.method == "nn-descent":
        found, report = descended(engine, rows, plan, start, progress, chosen.patience)
        if chosen.instead is None or report.reached:
            return found, plan.method, plan.seed, report
        logger.info("auto gives NN-Descent up: %s", report)
        del found  # which would be held beside the next
        chosen = chosen.instead
    found = answer(engine, rows, rows, chosen, self_join=True, progress=progress, call=call)
    return found, chosen.plan.method, None, None
