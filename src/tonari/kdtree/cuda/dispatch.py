"""Execute a k-d tree plan on CUDA; the counterpart of :mod:`tonari.exact.cuda.dispatch` for brute force.

Several devices share the queries, and each holds the whole tree. If a tree of all points does not fit, the slabs of the
points get a tree one after another, and their lists are merged. A tree cannot compare magnitudes above 2**60: queries
with such values are answered by brute force, and so are all queries if a point has one.
"""

from __future__ import annotations

import dataclasses
import logging
import time
from typing import Any

import numpy as np
import torch

from tonari import inputs
from tonari.core.neighbors import Neighbors, index_dtype
from tonari.core.progress import Progress, ProgressLike
from tonari.core.slices import cut
from tonari.core.workers import Workers
from tonari.costs.formulas import MeanVisits
from tonari.cuda.device_threads import a_thread_each, side_by_side
from tonari.cuda.devices import on, over, to_device
from tonari.cuda.self_neighbors import without_own
from tonari.cuda.streams import synchronize
from tonari.exact.cuda import dispatch as brute
from tonari.exact.cuda.plan import plan_on_cuda
from tonari.kdtree.cuda.buffered import search_by_rounds
from tonari.kdtree.cuda.prepared import PreparedTrees, build_all, prepare
from tonari.kdtree.cuda.search import beyond, order_of, walk, walk_in_steps
from tonari.kdtree.cuda.tree import DeviceTree
from tonari.kdtree.plan import TreePlan
from tonari.kdtree.rounds import Rounds
from tonari.metrics.problem import make_problem
from tonari.select.cuda.merge import merge_into, no_lists

logger = logging.getLogger("tonari")


def search(
    queries: Any,
    prepared: PreparedTrees,
    plan: TreePlan,
    *,
    self_join: bool = False,
    progress: ProgressLike = None,
    rounds: Rounds | None = None,
) -> Neighbors:
    """Answer queries against prepared points; `rounds` gets what the buffered traversal counts.

    Returns
    -------
    Neighbors of shape (m, k)
        NumPy arrays for queries in host memory, else tensors on the device of the queries.
    """
    started = time.perf_counter()
    return _search(queries, prepared, plan, started, self_join=self_join, progress=progress, rounds=rounds)


def search_once(
    queries: Any, points: Any, plan: TreePlan, *, self_join: bool = False, progress: ProgressLike = None
) -> Neighbors:
    """Build the tree and answer queries: :func:`prepare`, then :func:`search`."""
    started = time.perf_counter()
    prepared = prepare(points, plan, progress)
    return _search(queries, prepared, plan, started, self_join=self_join, progress=progress)


def _search(
    queries: Any,
    prepared: PreparedTrees,
    plan: TreePlan,
    started: float,
    *,
    self_join: bool,
    progress: ProgressLike,
    rounds: Rounds | None = None,
) -> Neighbors:
    """Search, and log the time from `started` until the devices have finished."""
    m, n = len(queries), plan.n
    slabs = cut(n, plan.point_slab)
    with Progress(progress, total=m * len(slabs), seconds=plan.seconds, label="neighbours", unit="query") as bar:
        if len(slabs) == 1:
            found = _search_slab(queries, prepared, plan, 0, self_join, bar, rounds)
        else:
            found = _search_slabs(queries, prepared.points, plan, slabs, self_join, bar, rounds)
    if logger.isEnabledFor(logging.INFO):
        synchronize(plan.devices)
        logger.info("%d rows in %.3g s by k-d trees on %s", m, time.perf_counter() - started, ", ".join(plan.devices))
    return found


def _search_slabs(
    queries: Any,
    points: Any,
    plan: TreePlan,
    slabs: list[slice],
    self_join: bool,
    bar: Progress,
    rounds: Rounds | None,
) -> Neighbors:
    host = isinstance(queries, np.ndarray)
    double = plan.held == "float64"
    where = "cpu" if host else queries.device
    best = no_lists(len(queries), plan.k, plan.n, plan.metric, double=double, device=where)
    for slab in slabs:
        part = points[slab]
        size = len(part)
        made = dataclasses.replace(plan, n=size, k=min(plan.k, size), point_slab=size)
        prepared = build_all(part, made, slab.start)
        lists = _search_slab(queries, prepared, made, slab.start, self_join, bar, rounds)
        tensors = Neighbors(*(torch.as_tensor(array) for array in lists))
        merge_into(best, tensors, slab.start, plan.metric, torch.device(plan.devices[0]))
    return Neighbors(*(part.numpy() for part in best)) if host else best


def _search_slab(
    queries: Any,
    prepared: PreparedTrees,
    plan: TreePlan,
    first_point: int,
    self_join: bool,
    bar: Progress,
    rounds: Rounds | None,
) -> Neighbors:
    """Find neighbours among the points of one slab; in a self-join its first point is query `first_point`."""
    trees = prepared.trees
    m, host = len(queries), isinstance(queries, np.ndarray)
    own = first_point if self_join else None
    if trees is None:
        return _by_brute_force(queries, prepared.points, plan, own if own is None else np.arange(m) - own, bar)
    found, views = _results(plan, m, None if host else queries.device)
    bounds = cut(m, -(-m // len(trees)))
    workers = a_thread_each(plan.devices)

    def answer(at: int) -> list[Any]:
        top = bounds[at]
        blocks = [block.start for block in cut(top.stop - top.start, plan.query_block)]
        ends = [*blocks[1:], top.stop - top.start]
        here = [slice(top.start + begin, top.start + end) for begin, end in zip(blocks, ends, strict=True)]
        return [_answer(queries, rows, trees[at], plan, own, views, workers, bar, rounds) for rows in here]

    parts = side_by_side(workers, plan.devices, len(bounds), answer)
    rest = np.concatenate([part for of_device in parts for part in of_device])
    if len(rest):
        rows = queries[rest] if host else queries[torch.from_numpy(rest).to(queries.device)]
        lists = _by_brute_force(rows, prepared.points, plan, own if own is None else rest - own, None)
        at = torch.from_numpy(rest).to(views.distances.device)
        for view, values in zip(views, lists, strict=True):
            view[at] = torch.as_tensor(values)
    return found


def probe(prepared: PreparedTrees, queries: Any, plan: TreePlan) -> MeanVisits:
    """Return the mean number of leaves, nodes and points that a query visits; all points if there is no tree."""
    if prepared.trees is None:
        return MeanVisits(float(plan.n), 0.0, float(plan.n))
    tree = prepared.trees[0]
    with on(plan.devices[0]):
        tree.written.read()
        rows = to_device(queries, plan.devices[0]).to(tree.rows.dtype).contiguous()
        found = _lists(plan, len(rows), rows.device)
        visits = torch.zeros((len(rows), 2), dtype=torch.int32, device=rows.device)
        order = order_of(rows, tree, plan.metric)
        walk(rows, tree, order, plan.k, plan.metric, found, visits=visits)
        leaves, nodes = (total / len(rows) for total in visits.sum(0).tolist())
    return MeanVisits(leaves, nodes, leaves * tree.leaf)


def _answer(
    queries: Any,
    here: slice,
    tree: DeviceTree,
    plan: TreePlan,
    own: int | None,
    views: Neighbors,
    workers: Workers,
    bar: Progress,
    rounds: Rounds | None,
) -> Any:
    """Answer a block of queries, and return the numbers of those that are left to brute force.

    In a self-join query `own` is the first point of the tree.
    """
    tree.written.read()
    device = tree.rows.device
    given = to_device(queries[here], device)
    left = beyond(given)
    rows = given.to(tree.rows.dtype).contiguous()
    m = len(rows)
    left_out = None if own is None else torch.arange(here.start - own, here.stop - own, device=device)
    order = order_of(rows, tree, plan.metric) if plan.sort else torch.arange(m, device=device)
    direct = views.distances.device == device
    found = Neighbors(*(part[here] for part in views)) if direct else _lists(plan, m, device)
    given_to_both: dict[str, Any] = {"own": left_out, "check": workers.check, "bar": bar}
    if plan.traversal == "buffered":
        search_by_rounds(
            rows, tree, order, plan.k, plan.metric, found, buffer=plan.buffer, rounds=rounds, **given_to_both
        )
    else:
        walk_in_steps(rows, tree, order, plan.k, plan.metric, found, **given_to_both)
    if not direct:
        views.distances[here], views.indices[here] = found
    numbers: Any = torch.nonzero(left).view(-1).cpu().numpy() + here.start
    if len(numbers):
        inputs.check_values(queries[here], "queries", first=here.start, nonnegative=False)
    return numbers


def _lists(plan: TreePlan, m: int, device: Any) -> Neighbors:
    double = plan.held == "float64"
    return Neighbors(
        torch.empty((m, plan.k), dtype=torch.float64 if double else torch.float32, device=device),
        torch.empty((m, plan.k), dtype=torch.int32, device=device),
    )


def _results(plan: TreePlan, m: int, device: Any) -> tuple[Neighbors, Neighbors]:
    """Allocate the results, and tensors that share their memory."""
    if device is not None:
        found = _lists(plan, m, device)
        return found, found
    arrays_ = Neighbors(
        np.empty((m, plan.k), np.float64 if plan.held == "float64" else np.float32),
        np.empty((m, plan.k), index_dtype(plan.n)),
    )
    return arrays_, Neighbors(*(over(part) for part in arrays_))


def _by_brute_force(queries: Any, points: Any, plan: TreePlan, own: Any, bar: Progress | None) -> Neighbors:
    """Answer without a tree; `own` is the number of the point that each query is, which is left out of its list."""
    k = min(plan.k + (own is not None), plan.n)
    problem = make_problem(
        plan.n,
        len(queries),
        plan.d,
        k,
        dtype=inputs.name_of_dtype(points),
        query_dtype=inputs.name_of_dtype(queries),
        metric=plan.metric,
        devices=plan.devices,
        host_points=isinstance(points, np.ndarray),
        host_queries=isinstance(queries, np.ndarray),
    )
    made = plan_on_cuda(problem)
    found = brute.search_once(queries, points, made, progress=False)
    if bar is not None:
        bar.add(len(queries))
    return found if own is None else without_own(found, own, plan.k)
