"""Boruvka's rounds over a k-d tree on the CPU: walks through the tree find the lightest edge of each component.

Every component takes its first edge, in the order of edges (pool.py), until a single component remains. The first
candidates are the edges of the points' lists. Then the points of each leaf that may have an earlier edge walk through
the tree together (native/spanning/leaving_tile.hpp). A walk leaves out a box if it is too far away, if its points all
belong to the same component as the walking points, or if their core distances are too large.

The spanning tree is the same as that of :mod:`tonari.spanning.boruvka`, which needs no k-d tree, but searches again for
each point whose list does not reach beyond its component.

March, Ram and Gray 2010 (walks of many points together; bounds that stay valid in later rounds).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.core.process.progress import Counter
from tonari.core.process.workers import Workers
from tonari.core.results.neighbors import Neighbors
from tonari.core.rows.slices import cut
from tonari.kdtree.cpu.tree import Tree
from tonari.kdtree.plan import TreePlan
from tonari.spanning import tuning
from tonari.spanning.boruvka import Lightest

MOST_POINTS = np.iinfo(np.int32).max  # the ids of components are int32 in native code


def spanning_edges_by_tree(
    tree: Tree, plan: TreePlan, lists: Neighbors, core: npt.NDArray[Any], bar: Counter
) -> Lightest:
    """Return the edges of the minimum spanning tree in their total order.

    Parameters
    ----------
    tree : Tree
        The k-d tree of all points; at most MOST_POINTS points.
    plan : TreePlan
        The plan of the k-d tree; its metric, isa and threads are used.
    lists : Neighbors of shape (n, k)
        The nearest other points of every point.
    core : float array of shape (n,)
        The core distance of each point; at most the last distance in its list.
    bar : Counter
        Counts the edges of the tree.
    """
    distances, indices = (np.ascontiguousarray(part) for part in lists)
    forest = _native.Forest(tree.native, plan.isa, plan.metric, core.astype(np.float64), distances, indices)
    with Workers(plan.threads) as workers:
        points = _tasks(tree.n, workers)
        leaves = _tasks(tree.leaves, workers)

        def walk(part: slice) -> None:
            begin = part.start
            while begin < part.stop:
                workers.check()
                begin = forest.walk(begin, part.stop, tuning.SLICE_VALUES)

        while forest.count > 1:
            before = forest.count
            workers.map(lambda part: forest.offer_listed(part.start, part.stop), points)
            workers.map(walk, leaves)
            forest.merge()
            bar.add(before - forest.count)
    weights, pairs = np.empty(tree.n - 1), np.empty(tree.n - 1, np.int64)
    forest.write(weights, pairs)
    order = np.lexsort((pairs, weights))
    return Lightest(weights[order].astype(distances.dtype), pairs[order])


def _tasks(count: int, workers: Workers) -> list[slice]:
    """Cut a range into several tasks per thread, since the durations of tasks differ."""
    return cut(count, max(1, -(-count // (tuning.TASKS_PER_THREAD * workers.threads))))
