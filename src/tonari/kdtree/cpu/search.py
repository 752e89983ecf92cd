"""Search the tree on the CPU: sort the queries by leaf, and distribute blocks of them among threads.

Queries are sorted by the leaf that contains them, and cut into blocks. Within a block, the walk finishes each query
before it begins the next. Consecutive queries need nearly the same leaves, which are therefore still in the cache. In
the buffered traversal of gieseke2014, queries wait in buffers until many need the same leaf, which is then read once
for all of them. A thread processes a whole block, with queues and buffers of its own, so threads never wait for each
other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.core.process.progress import Counter
from tonari.core.process.workers import Workers
from tonari.core.results.neighbors import Neighbors, value_dtype
from tonari.core.rows.slices import cut
from tonari.kdtree import tuning
from tonari.kdtree.cpu.tree import Tree
from tonari.kdtree.papers.rounds import Rounds
from tonari.kdtree.plan import TreePlan


@dataclass
class Visits:
    """Totals over all queries of a search: visited leaves, entered nodes, and points in the visited leaves."""

    leaves: int = 0
    nodes: int = 0
    points: int = 0

    def add(self, leaves: int, nodes: int, points: int) -> None:
        """Add the visits of more queries to the totals; any thread may call this method."""
        self.leaves += leaves
        self.nodes += nodes
        self.points += points


def search_tree(
    queries: npt.NDArray[Any],
    points: npt.NDArray[Any],
    tree: Tree,
    plan: TreePlan,
    *,
    self_ids: npt.NDArray[np.int64] | None = None,
    bar: Counter,
    rounds: Rounds | None = None,
) -> tuple[Neighbors, Visits]:
    """Find the k nearest points of every query with the tree of the points; the arguments are not checked again.

    Parameters
    ----------
    queries : array of shape (m, d), checked
    points : array of shape (n, d), checked
        The points from which the tree was built. Distances are float64 if points or queries are float64; the tree must
        then contain float64.
    plan : TreePlan
        Its fields k, metric, isa, threads, traversal, buffer, sort and query_block are used.
    self_ids : int64 array of shape (m,), optional
        For each query, the row number of its own point, which is left out.
    bar : Counter
        Counts queries.
    rounds : Rounds, optional
        Output: the counters of the buffered traversal.

    Returns
    -------
    Neighbors of shape (m, k)
        Equal bit by bit to the result of :func:`tonari.metrics.reference.brute`.
    Visits
        Totals over all queries, which are the same for both traversals.
    """
    m = len(queries)
    values = np.empty((m, plan.k), value_dtype(queries.dtype, points.dtype))
    if values.itemsize > tree.rows.itemsize:
        raise ValueError("a tree of float32 cannot answer in float64: build it with double=True")
    found = Neighbors(values, np.empty((m, plan.k), tree.ids.dtype))
    workers = Workers(plan.threads)
    order = order_of(queries, tree, workers) if plan.sort and m > 1 else None
    search = _native.TreeSearch(
        tree.native, plan.isa, plan.metric, plan.k, queries, order, self_ids, found.distances, found.indices
    )

    def walk(begin: int, end: int) -> Visits:
        seen = Visits()
        while begin < end:
            workers.check()
            stopped, *counts = search.run(begin, end, tuning.SLICE_VALUES)
            seen.add(*counts)
            bar.add(stopped - begin)
            begin = stopped
        return seen

    def buffered(begin: int, end: int) -> Visits:
        seen, left = Visits(), end - begin
        block = _native.TreeRounds(search, begin, end, plan.buffer)
        while left > 0:
            workers.check()
            finished, *counts = block.run(tuning.SLICE_VALUES)
            seen.add(*counts)
            if finished > 0:
                bar.add(finished)
            left -= finished
        if rounds is not None:
            made, emptied, full, tiles, find, process = block.counts()
            rounds.add(rounds=made, emptied=emptied, full=full, tiles=tiles, compared=seen.leaves)
            rounds.add(find_seconds=find, process_seconds=process)
        return seen

    traverse = buffered if plan.traversal == "buffered" else walk
    if m <= plan.query_block or (plan.threads == 1 and traverse is walk):  # the walk checks for Ctrl-C by itself
        return found, traverse(0, m)
    parts = workers.map(lambda block: traverse(block.start, block.stop), cut(m, plan.query_block))
    total = Visits()
    for part in parts:
        total.add(part.leaves, part.nodes, part.points)
    return found, total


def order_of(queries: npt.NDArray[Any], tree: Tree, workers: Workers) -> npt.NDArray[np.int64]:
    """Return the row numbers of the queries, sorted by the leaf that contains each query."""
    m, native = len(queries), tree.native
    leaves, order = np.empty(m, np.int32), np.empty(m, np.int64)

    def route(begin: int) -> None:
        native.first_leaves(queries, begin, min(begin + tuning.ROUTED, m), leaves)

    workers.map(route, range(0, m, tuning.ROUTED))
    _native.order_by_leaf(leaves, tree.leaves, order)
    return order
