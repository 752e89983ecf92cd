"""Build the tree on the CPU by exact medians on every level; the tree does not depend on the number of threads.

The top levels are split one after another; all threads share each level, in passes over ranges of rows. Each node below
the top levels is a task of one thread, which splits the node's points, copies them to their leaves and computes the
boxes, all within the cache (native/kdtree/build.hpp).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.core.process.progress import Counter
from tonari.core.process.workers import Workers
from tonari.core.results.neighbors import index_dtype
from tonari.costs import tuning as costs_tuning
from tonari.costs.formulas import TOP_LEVELS
from tonari.kdtree import tuning
from tonari.kdtree.cpu.tree import WIDTH, Tree, boxes_above, check_height, leaf_begins, level_nodes, room_for


def build(points: npt.NDArray[Any], *, height: int, double: bool, workers: Workers, bar: Counter | None = None) -> Tree:
    """Build the tree of some points.

    Parameters
    ----------
    points : array of shape (n, d), C-contiguous, finite, of an accepted dtype
        They may be read-only or memory-mapped. All of them are read about once for each level with nodes of more than
        16,384 points.
    height : int
        Levels of splits; 2**height must not exceed n.
    double : bool
        Store the points as float64; otherwise as float32, which is exact for all dtypes except float64.
    workers : Workers
        The threads that build the tree. The tree does not depend on the number of threads.
    bar : Counter, optional
        Counts points, n in total.

    Returns
    -------
    Tree
        Each of its arrays equals that of :func:`tonari.kdtree.reference.build_reference`.

    Raises
    ------
    ValueError
        The points are float64 and `double` is False, or some leaf would be empty at this height.

    Notes
    -----
    Median splits and contiguous leaves follow gieseke2014, section 3.1. A node is split in the dimension of the largest
    variance, estimated from a sample of its rows. Medians are exact; samples only narrow the range in which they are
    searched (Floyd and Rivest 1975).

    Examples
    --------
    >>> import numpy as np
    >>> from tonari.kdtree.cpu.build import build
    >>> from tonari.core.process.workers import Workers
    >>> points = np.arange(40, dtype=np.float32).reshape(20, 2)
    >>> tree = build(points, height=2, double=False, workers=Workers(1))
    >>> tree.begins.tolist(), tree.rows.shape
    ([0, 5, 10, 15, 20], (4, 2, 16))
    """
    n, d = points.shape
    check_height(n, height)
    if points.dtype == np.float64 and not double:
        raise ValueError("got float64 points, which a float32 tree cannot hold: pass double=True")
    dtype = np.dtype(np.float64 if double else np.float32)
    begins = leaf_begins(n, height)
    leaves, capacity = 1 << height, room_for(begins)
    ids = np.empty(n, index_dtype(n))
    rows = np.empty((leaves, d, capacity), dtype)
    boxes = np.empty((level_nodes(leaves)[0], d, 2, WIDTH), dtype)
    boxes[:, :, :, leaves:] = np.inf  # pad absent children, which exist only if one node covers all leaves
    dimensions = np.empty(leaves - 1, np.int32)
    values = np.empty(leaves - 1, dtype)

    levels = _cut_top(points, ids, dimensions, values, height, workers)

    def finish(index: int) -> None:
        workers.check()
        _native.tree_below(points, levels, index, ids, dimensions, values, rows, boxes, height)
        if bar is not None:
            bar.add((index + 1) * n // (1 << levels) - index * n // (1 << levels))

    workers.map(finish, range(1 << levels))
    return Tree(
        n=n,
        d=d,
        height=height,
        capacity=capacity,
        begins=begins,
        ids=ids,
        rows=rows,
        boxes=boxes_above(boxes),
        split_dimensions=dimensions,
        split_values=values,
    )


def _cut_top(
    points: npt.NDArray[Any],
    ids: npt.NDArray[Any],
    dimensions: npt.NDArray[np.int32],
    values: npt.NDArray[Any],
    height: int,
    workers: Workers,
) -> int:
    """Split the top levels, sort the row numbers within each resulting node, and return the number of levels split."""
    n = len(points)
    levels = 0
    while levels < min(height, TOP_LEVELS) and n >> levels > costs_tuning.TASK_POINTS:
        levels += 1
    ranges = range(max(1, min(tuning.RANGES_PER_THREAD * workers.threads, n // tuning.RANGE_ROWS)))
    passes = workers if n >= costs_tuning.SHARED_ROWS else Workers(1)
    top = _native.tree_top(points, levels, len(ranges), dimensions, values)

    def count(at: int) -> None:
        workers.check()
        top.count(at)

    def cut(node: int) -> bool:
        workers.check()
        return top.cut(node)

    def tally(at: int) -> None:
        workers.check()
        top.tally(at)

    def place(at: int) -> None:
        workers.check()
        top.place(at, ids)

    for level in range(levels):
        nodes = list(range(1 << level))
        while nodes:
            passes.map(count, ranges)
            nodes = [node for node, done in zip(nodes, passes.map(cut, nodes), strict=True) if not done]
        top.descend()
    passes.map(tally, ranges)
    passes.map(place, ranges)
    return levels
