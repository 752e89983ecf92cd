"""Radius searches in the tree on the CPU: the order of the queries, and their distribution among threads.

As in a search for the nearest, queries are sorted by the leaf that contains them and cut into blocks, and a block is
one thread's. Lists stay with their blocks until all lengths are known, and are then written to the result.
"""

from __future__ import annotations

import logging
import time
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.core.progress import Progress, ProgressLike
from tonari.core.radius_neighbors import RadiusNeighbors
from tonari.core.slices import cut
from tonari.core.trail import current
from tonari.core.workers import Workers
from tonari.kdtree import tuning
from tonari.kdtree.cpu.prepared import PreparedTree
from tonari.kdtree.cpu.search import Visits, order_of
from tonari.kdtree.plan import TreePlan

logger = logging.getLogger("tonari")


def find_in_tree(
    queries: npt.NDArray[Any],
    prepared: PreparedTree,
    plan: TreePlan,
    limits: npt.NDArray[Any],
    *,
    self_ids: npt.NDArray[np.int64] | None = None,
    later: bool = False,
    progress: ProgressLike = None,
) -> RadiusNeighbors:
    """Find all points within the limits; see :meth:`tonari.core.method.SearchMethod.find_within`.

    Parameters
    ----------
    self_ids : int64 array of shape (m,), optional
        For each query, the row number of a point that it must not find.
    later : bool
        Whether a query finds only points after its own.
    """
    counts = np.empty(len(queries), np.int64)
    workers = Workers(plan.threads)
    search = _search(queries, prepared, plan, limits, self_ids, counts, workers, later=later)
    blocks = _run(search, len(queries), prepared, plan, workers, progress)
    indptr = np.concatenate([np.zeros(1, np.int64), counts]).cumsum()
    distances = np.empty(indptr[-1], limits.dtype)
    indices = np.empty(indptr[-1], prepared.tree.ids.dtype)

    def write(at: int) -> None:
        workers.check()
        blocks.pop(at).write(indptr, distances, indices)

    workers.map(write, list(blocks))
    return RadiusNeighbors(indptr, indices, distances)


def count_in_tree(
    queries: npt.NDArray[Any],
    prepared: PreparedTree,
    plan: TreePlan,
    limits: npt.NDArray[Any],
    *,
    self_ids: npt.NDArray[np.int64] | None = None,
    progress: ProgressLike = None,
) -> npt.NDArray[np.int64]:
    """Count what :func:`find_in_tree` finds for each query."""
    counts = np.empty(len(queries), np.int64)
    workers = Workers(plan.threads)
    search = _search(queries, prepared, plan, limits, self_ids, counts, workers, lists=False)
    _run(search, len(queries), prepared, plan, workers, progress, keeps=False)
    return counts


def _search(
    queries: npt.NDArray[Any],
    prepared: PreparedTree,
    plan: TreePlan,
    limits: npt.NDArray[Any],
    self_ids: npt.NDArray[np.int64] | None,
    counts: npt.NDArray[np.int64],
    workers: Workers,
    *,
    later: bool = False,
    lists: bool = True,
) -> _native.TreeRadius:
    double, tree = limits.dtype == np.float64, prepared.tree
    if double and tree.rows.dtype != np.float64:
        raise ValueError("a tree of float32 cannot answer in float64: build it with double=True")
    order = order_of(queries, tree, workers) if plan.sort and len(queries) > 1 else None
    farthest = np.ascontiguousarray(limits, np.float64)
    return _native.TreeRadius(
        *(tree.native, plan.isa, plan.metric, queries, order, farthest, self_ids),
        *(later, lists, double, counts),
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
    """Search all blocks, and return them by their number if their lists are wanted."""
    started = time.perf_counter()
    seconds = plan.seconds - plan.build_seconds
    blocks: dict[int, _native.TreeRadiusBlock] = {}
    with Progress(progress, total=m, seconds=seconds, label="neighbours", unit="query") as bar:

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

        total = Visits()
        # On one thread, blocks only bound the memory of lists until they are written.
        size = m if plan.threads == 1 and m * prepared.tree.n <= tuning.ONE_BLOCK_PAIRS else plan.query_block
        for seen in workers.map(walk, list(enumerate(cut(m, size)))):
            total.add(seen.leaves, seen.nodes, seen.points)
    taken, record = time.perf_counter() - started, current.get()
    leaves, nodes = total.leaves / m, total.nodes / m
    if record is not None:
        note = f"{leaves:.1f} leaves and {nodes:.1f} nodes visited per row"
        record.tried(f"k-d tree of height {prepared.tree.height}", m, m, taken, note)
    logger.info(
        "%d rows in %.3g s by a k-d tree of height %d: %.1f leaves and %.1f nodes visited per row",
        *(m, taken, prepared.tree.height, leaves, nodes),
    )
    return blocks
