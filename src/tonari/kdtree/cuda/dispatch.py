"""Execute a k-d tree plan on CUDA; the counterpart of :mod:`tonari.exact.cuda.dispatch` for brute force.

Several devices share the queries, and each has the whole tree. If a tree of all points does not fit, each slab of the
points has its own tree. The slabs are searched one after another (prepared.py), and their lists are merged. A tree
cannot compare values of magnitudes above 2**60. Queries with such a value are answered by brute force. A slab of points
with such a value has no tree, and all queries search it by brute force.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import time
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from tonari import inputs
from tonari.core.process.progress import Progress, ProgressLike
from tonari.core.results.neighbors import Neighbors
from tonari.core.rows.slices import cut
from tonari.core.trail import current, decided, part
from tonari.costs.formulas import MeanVisits
from tonari.cuda.compiling.ahead import expecting
from tonari.cuda.compiling.rehearsal import numbers_from, to_visit
from tonari.cuda.device_threads import a_thread_each, side_by_side
from tonari.cuda.devices import on, to_device
from tonari.cuda.self_neighbors import without_own
from tonari.cuda.streams import synchronize
from tonari.exact.cuda import dispatch as brute
from tonari.exact.cuda.planning import plan_on_cuda
from tonari.kdtree import tuning
from tonari.kdtree.cuda.blocks import Asked, answer_blocks, new_lists, tensors_of
from tonari.kdtree.cuda.build import build_on_device
from tonari.kdtree.cuda.prepared import PreparedTrees, prepare, unprepared
from tonari.kdtree.cuda.search import TreeSearch, order_of, walk
from tonari.kdtree.cuda.steps import Steps
from tonari.kdtree.cuda.tree import DeviceTree, leaf_of
from tonari.kdtree.papers.cuda.buffered import rehearse_rounds
from tonari.kdtree.papers.rounds import Rounds
from tonari.kdtree.plan import TreePlan
from tonari.metrics.problem import make_problem
from tonari.select.cuda.ordering.merge import merge_into, no_lists

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
    """Find the k nearest prepared points of each query; `rounds` receives the counters of the buffered traversal.

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
    """Build the tree and answer queries, as :func:`prepare` and :func:`search` do; trees of slabs are not kept."""
    started = time.perf_counter()
    dtype = inputs.name_of_dtype(points)
    with expecting(lambda: rehearse_tree(plan, dtype, self_join=self_join), progress):
        prepared = prepare(points, plan, progress) if plan.point_slab == plan.n else unprepared(points, plan)
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
    """Search as :func:`search` does; record and log the time from `started` until the devices have finished."""
    m, slabs = len(queries), cut(plan.n, plan.point_slab)
    with Progress(progress, total=m * len(slabs), seconds=plan.seconds, label="neighbours", unit="query") as bar:
        found = _answer(queries, prepared, plan, slabs, self_join, bar, rounds)
    record, logs = current.get(), logger.isEnabledFor(logging.INFO)
    waits = logs or (record is not None and record.timed)
    if waits:
        synchronize(plan.devices)
    seconds = time.perf_counter() - started
    if record is not None:
        record.tried(f"k-d trees on {', '.join(plan.devices)}", m, m, seconds if waits else None)
    if logs:
        logger.info("%d rows in %.3g s by k-d trees on %s", m, seconds, ", ".join(plan.devices))
    return found


def _answer(
    queries: Any,
    prepared: PreparedTrees,
    plan: TreePlan,
    slabs: list[slice],
    self_join: bool,
    bar: Progress,
    rounds: Rounds | None,
) -> Neighbors:
    """Search slab by slab on all devices, then search by brute force for the queries that trees cannot answer."""
    m, points = len(queries), prepared.points
    found = _new_results(queries, plan, merging=len(slabs) > 1)
    bounds = cut(m, -(-m // len(plan.devices)))
    workers = a_thread_each(plan.devices)
    left: npt.NDArray[np.int64] = np.empty(0, np.int64)
    with contextlib.ExitStack() as stack:
        trees = [stack.enter_context(contextlib.closing(prepared.arriving(plan, at))) for at in range(len(bounds))]
        requests = [
            Asked(plan, self_join, workers.check, bar, Steps(device), rounds) for device in plan.devices[: len(bounds)]
        ]

        def answer(at: int) -> npt.NDArray[np.int64] | None:
            tree = next(trees[at])
            if tree is None:
                return None
            return answer_blocks(queries, bounds[at], tree, slab.start, found, requests[at])

        for slab in slabs:
            parts = [part for part in side_by_side(workers, plan.devices, len(bounds), answer) if part is not None]
            if parts:
                left = np.concatenate(parts)  # these queries are the same for every slab
                continue
            size = slab.stop - slab.start
            part_plan = dataclasses.replace(plan, n=size, k=min(plan.k, size))
            own = np.arange(m) - slab.start if self_join else None
            lists = _by_brute_force(queries, points[slab], part_plan, own, bar)
            if len(slabs) == 1:
                return lists
            merge_into(tensors_of(found), tensors_of(lists), slab.start, plan.metric, torch.device(plan.devices[0]))
    if len(left):
        at = torch.from_numpy(left)
        rows = queries[left] if isinstance(queries, np.ndarray) else queries[at.to(queries.device)]
        lists = _by_brute_force(rows, points, plan, left if self_join else None, None)
        for view, values in zip(tensors_of(found), tensors_of(lists), strict=True):
            view[at.to(view.device)] = values
    return found


def probe(prepared: PreparedTrees, queries: Any, plan: TreePlan) -> MeanVisits:
    """Search a sample of queries, and return the mean visits of a query: the counts of leaves, of nodes, and of points.

    A slab without a tree counts as one whose points are all visited.
    """
    leaves = nodes = points = 0.0
    with on(plan.devices[0]), contextlib.closing(prepared.arriving(plan, 0)) as trees:
        for slab, tree in zip(cut(plan.n, plan.point_slab), trees, strict=True):
            if tree is None:
                leaves, points = leaves + slab.stop - slab.start, points + slab.stop - slab.start
                continue
            tree.written.read()
            rows = to_device(queries, plan.devices[0]).to(tree.rows.dtype).contiguous()
            k = min(plan.k, tree.n)
            found = new_lists(plan, len(rows), k, rows.device)
            visits = torch.zeros((len(rows), 2), dtype=torch.int32, device=rows.device)
            order = torch.arange(len(rows), device=rows.device)  # too few queries for sorting to pay off
            given_up = torch.empty(len(rows), dtype=torch.bool, device=rows.device)
            search = TreeSearch(rows, tree, k, plan.metric, found)
            walk(search, order, visits=visits, most_visits=plan.most_visits, given_up=given_up)
            of_tree = [total / len(rows) for total in visits.sum(0).tolist()]
            leaves, nodes, points = leaves + of_tree[0], nodes + of_tree[1], points + of_tree[0] * tree.leaf
    return MeanVisits(leaves, nodes, points)


def _new_results(queries: Any, plan: TreePlan, *, merging: bool) -> Neighbors:
    """Allocate the result where the queries are; if lists are merged into it, all neighbours are missing at first."""
    m, host = len(queries), isinstance(queries, np.ndarray)
    if merging:
        device = "cpu" if host else queries.device
        lists = no_lists(m, plan.k, plan.n, plan.metric, double=plan.held == "float64", device=device)
        return Neighbors(*(part.numpy() for part in lists)) if host else lists
    if not host:
        return new_lists(plan, m, plan.k, queries.device)
    return Neighbors.empty(m, plan.k, plan.n, plan.held)


def _by_brute_force(queries: Any, points: Any, plan: TreePlan, own: Any, bar: Progress | None) -> Neighbors:
    """Answer queries by brute force; `own` has the row number of each query's own point, which is left out."""
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
    brute_plan = plan_on_cuda(problem)
    decided("method", "brute force for queries that trees leave: points without a tree, or too many visits")
    with part("brute force for queries that trees leave", len(queries)):
        found = brute.search_once(queries, points, brute_plan, progress=False)
    if bar is not None:
        bar.add(len(queries))
    return found if own is None else without_own(found, own, plan.k)


def rehearse_tree(plan: TreePlan, dtype: str, *, self_join: bool) -> None:
    """Build a tree without data for every size of slab in the plan, and search it with every size of query block.

    Parameters
    ----------
    dtype : str
        The dtype of the points.
    """
    m = -(-plan.m // len(plan.devices))
    for n in dict.fromkeys(slab.stop - slab.start for slab in cut(plan.n, plan.point_slab)):
        points = torch.empty((n, plan.d), dtype=getattr(torch, dtype), device="meta")
        tree = build_on_device(points, leaf=leaf_of(n, plan.leaf), double=plan.held == "float64")
        for rows in dict.fromkeys(here.stop - here.start for here in cut(m, plan.query_block)):
            _rehearse_search(tree, rows, plan, self_join)


def _rehearse_search(tree: DeviceTree, m: int, plan: TreePlan, self_join: bool) -> None:
    """Launch the search of a block of queries, in steps, as `blocks.py` does."""
    k = min(plan.k, tree.n)
    queries = torch.empty((m, plan.d), dtype=tree.rows.dtype, device="meta")
    points = self_join and m == tree.n == plan.n
    order = order_of(queries, tree, plan.metric) if plan.sort and not points else numbers_from(0, m, "meta")
    own = numbers_from(0, m, "meta") if self_join else None
    lists: Neighbors = new_lists(plan, m, k, queries.device)
    search = TreeSearch(queries, tree, k, plan.metric, lists, own)
    if plan.traversal == "buffered":
        rehearse_rounds(search, order, buffer=plan.buffer)
        return
    given_up: Any = torch.empty(m, dtype=torch.bool, device="meta")
    for step in to_visit(cut(m, tuning.FIRST_STEP), queries.device):
        walk(search, order[step], most_visits=plan.most_visits, given_up=given_up)
