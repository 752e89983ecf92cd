"""Search through the tree on the CPU: which queries come after each other, on which thread.

The buffers of gieseke2014 bring together the queries that wait for the same leaf, so that the leaf is read once for all
of them. Here queries are put in the order of the leaves that they lie in, once, and each is searched to its end: those
that follow each other need nearly the same leaves, which are still in the cache, and nothing has to travel or wait.
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

_ROUTED = 1 << 16  # queries that one task routes to their leaves
_SLICE = 1 << 26  # values of points and boxes read between two looks at Ctrl-C: some tens of milliseconds


@dataclass
class Visits:
    """What a search looked at, all queries together: leaves, nodes of boxes, and points in the leaves."""

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
    """Answer checked queries through the tree of the points as the plan says.

    Parameters
    ----------
    queries : array of shape (m, d), checked
    points : array of shape (n, d), checked
        What the tree was built of. Values are float64 if these or the queries are; then the tree must hold float64.
    tree : Tree
    plan : TreePlan
        Of it k, metric, isa, threads, sort and query_block are read.
    self_ids : int64 array of shape (m,), optional
        The point that each query is, which is left out.
    bar : Counter
        Counts queries.

    Returns
    -------
    Neighbors of shape (m, k), the same bits as :func:`tonari.metrics.reference.brute`, and the Visits of all queries.
    """
    m = len(queries)
    double = np.float64 in (queries.dtype, points.dtype)
    if double and tree.rows.dtype != np.float64:
        raise ValueError("a tree of float32 cannot answer in float64")
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
    """The queries in the order of the leaves that they lie in."""
    m, native = len(queries), tree.native
    leaves, order = np.empty(m, np.int32), np.empty(m, np.int64)

    def route(begin: int) -> None:
        native.first_leaves(queries, begin, min(begin + _ROUTED, m), leaves)

    workers.map(route, range(0, m, _ROUTED))
    _native.order_by_leaf(leaves, tree.leaves, order)
    return order
