"""Search the tree on the CPU: the order of the queries, and their distribution over threads.

gieseke2014 buffers queries until many need the same leaf, so that the leaf is read once for all of them. Here queries
are sorted once by the leaf that contains them, and each is searched to its end. Consecutive queries need nearly the
same leaves, which are still in the cache, and no queues are needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.core.neighbors import Neighbors
from tonari.core.progress import Counter
from tonari.core.workers import Workers
from tonari.kdtree.cpu.tree import Tree
from tonari.kdtree.plan import TreePlan

_ROUTED = 1 << 16  # queries per task when queries are routed to their leaves
_SLICE = 1 << 26  # values of points and boxes read between two checks for Ctrl-C: some tens of milliseconds


@dataclass
class Visits:
    """Totals over all queries of a search: leaves visited, box nodes entered, points in those leaves."""

    leaves: int = 0
    nodes: int = 0
    points: int = 0


def search_tree(
    queries: npt.NDArray[Any],
    points: npt.NDArray[Any],
    tree: Tree,
    plan: TreePlan,
    *,
    self_ids: npt.NDArray[np.int64] | None = None,
    bar: Counter,
) -> tuple[Neighbors, Visits]:
    """Find the neighbours of checked queries with the tree of the points.

    Parameters
    ----------
    queries : array of shape (m, d), checked
    points : array of shape (n, d), checked
        The points that the tree was built from. Distances are float64 if points or queries are; the tree must then
        hold float64.
    tree : Tree
    plan : TreePlan
        Uses its k, metric, isa, threads, sort and query_block.
    self_ids : int64 array of shape (m,), optional
        For each query the point that it is, which is not reported.
    bar : Counter
        Counts queries.

    Returns
    -------
    Neighbors of shape (m, k)
        Bit for bit those of :func:`tonari.metrics.reference.brute`.
    Visits
        Of all queries together.
    """
    m = len(queries)
    double = np.float64 in (queries.dtype, points.dtype)
    if double and tree.rows.dtype != np.float64:
        raise ValueError("a tree of float32 cannot answer in float64: build it with double=True")
    found = Neighbors(
        np.empty((m, plan.k), np.float64 if double else np.float32), np.empty((m, plan.k), tree.ids.dtype)
    )
    workers = Workers(plan.threads)
    order = _order(queries, tree, workers) if plan.sort and m > 1 else None
    search = _native.TreeSearch(
        tree.native, plan.isa, plan.metric, plan.k, queries, order, self_ids, found.distances, found.indices
    )

    def work(begin: int) -> Visits:
        seen = Visits()
        end = min(begin + plan.query_block, m)
        while begin < end:
            workers.check()
            stopped, leaves, nodes, looked_at = search.run(begin, end, _SLICE)
            seen = Visits(seen.leaves + leaves, seen.nodes + nodes, seen.points + looked_at)
            bar.add(stopped - begin)
            begin = stopped
        return seen

    parts = workers.map(work, range(0, m, plan.query_block))
    return found, Visits(
        sum(part.leaves for part in parts), sum(part.nodes for part in parts), sum(part.points for part in parts)
    )


def _order(queries: npt.NDArray[Any], tree: Tree, workers: Workers) -> npt.NDArray[np.int64]:
    """Return the query numbers sorted by the leaf that contains each query."""
    m, native = len(queries), tree.native
    leaves, order = np.empty(m, np.int32), np.empty(m, np.int64)

    def route(begin: int) -> None:
        native.first_leaves(queries, begin, min(begin + _ROUTED, m), leaves)

    workers.map(route, range(0, m, _ROUTED))
    _native.order_by_leaf(leaves, tree.leaves, order)
    return order
