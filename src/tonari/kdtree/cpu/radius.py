"""Radius searches in the tree on the CPU: sort the queries by leaf, and distribute blocks of them among threads.

As in a search for the k nearest, queries are sorted by the leaf that contains them, and cut into blocks, each of which
is searched by one thread. The neighbour lists are stored block by block until the lengths of all lists are known, and
are then written to the result.
"""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.core.process.progress import ProgressLike, counting
from tonari.core.process.workers import Workers
from tonari.core.results.radius_neighbors import RadiusNeighbors, Within
from tonari.core.rows.slices import cut
from tonari.kdtree import tuning
from tonari.kdtree.cpu.prepared import PreparedTree
from tonari.kdtree.cpu.search import Visits, order_of
from tonari.kdtree.plan import TreePlan


def find_in_tree(
    request: Within, prepared: PreparedTree, plan: TreePlan, progress: ProgressLike = None
) -> RadiusNeighbors:
    """Find all points within the radius of each query; see :meth:`tonari.core.method.SearchMethod.find_within`."""
    counts = np.empty(len(request.queries), np.int64)
    workers = Workers(plan.threads)
    search = _search(request, prepared, plan, counts, workers)
    blocks = _run(search, len(counts), prepared, plan, workers, progress)
    indptr = np.zeros(len(counts) + 1, np.int64)
    if len(counts) == 1:  # a single query: faster without cumsum
        indptr[1] = counts[0]
    else:
        counts.cumsum(out=indptr[1:])
    distances = np.empty(indptr[-1], request.limits.dtype)
    indices = np.empty(indptr[-1], prepared.tree.ids.dtype)

    def write(at: int) -> None:
        workers.check()
        blocks.pop(at).write(indptr, distances, indices)

    if len(blocks) == 1:
        write(0)
    else:
        workers.map(write, list(blocks))
    return RadiusNeighbors(indptr, indices, distances)


def count_in_tree(
    request: Within, prepared: PreparedTree, plan: TreePlan, progress: ProgressLike = None
) -> npt.NDArray[np.int64]:
    """Count, for each query, the points within its radius, which :func:`find_in_tree` would find."""
    counts = np.empty(len(request.queries), np.int64)
    workers = Workers(plan.threads)
    search = _search(request, prepared, plan, counts, workers, lists=False)
    _run(search, len(counts), prepared, plan, workers, progress, keeps=False)
    return counts


def _search(
    request: Within,
    prepared: PreparedTree,
    plan: TreePlan,
    counts: npt.NDArray[np.int64],
    workers: Workers,
    *,
    lists: bool = True,
) -> _native.TreeRadius:
    queries, limits, _, later, allowed = request
    double, tree = limits.dtype == np.float64, prepared.tree
    if double and tree.rows.dtype != np.float64:
        raise ValueError("a tree of float32 cannot answer in float64: build it with double=True")
    order = order_of(queries, tree, workers) if plan.sort and len(queries) > 1 else None
    farthest = np.ascontiguousarray(limits, np.float64)
    return _native.TreeRadius(
        *(tree.native, plan.isa, plan.metric, queries, order, farthest, request.self_ids),
        *(later, lists, double, counts, None if allowed is None else allowed.native),
    )


def _run(
    search: _native.TreeRadius,
    m: int,
    prepared: PreparedTree,
    plan: TreePlan,
    workers: Workers,
    progress: ProgressLike,
    *,
    keeps: bool = True,
) -> dict[int, _native.TreeRadiusBlock]:
    """Search all blocks of queries; if lists are requested, return the results of the blocks in order."""
    started = time.perf_counter()
    seconds = plan.seconds - plan.build_seconds
    blocks: dict[int, _native.TreeRadiusBlock] = {}
    with counting(progress, total=m, seconds=seconds, label="neighbours", unit="query") as bar:

        def walk(numbered: tuple[int, slice]) -> Visits:
            at, part = numbered
            seen, block = Visits(), _native.TreeRadiusBlock(search, part.start, part.stop)
            while not block.finished:
                workers.check()
                finished, *counts = block.run(tuning.SLICE_VALUES)
                seen.add(*counts)
                bar.add(finished)
            if keeps:
                blocks[at] = block
            return seen

        # On one thread, blocks would only limit the memory of the lists that are not yet written.
        size = m if plan.threads == 1 and m * prepared.tree.n <= tuning.ONE_BLOCK_PAIRS else plan.query_block
        if m <= size:
            total = walk((0, slice(0, m)))
        else:
            total = Visits()
            for seen in workers.map(walk, list(enumerate(cut(m, size)))):
                total.add(seen.leaves, seen.nodes, seen.points)
    prepared.report(m, total, time.perf_counter() - started)
    return blocks
