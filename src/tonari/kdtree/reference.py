"""The tree in plain NumPy: what the compiled build must give, array for array."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core.neighbors import index_dtype
from tonari.kdtree.cpu.tree import WIDTH, Tree, boxes_above, check_height, leaf_begins, room_for
from tonari.metrics import get_metric, reference

# A node of more points than SAMPLED_FROM is judged by the rows whose number is a multiple of SAMPLE_STEP (a prime, so
# that rows which repeat in some period do not look alike); any other by at most LOOKED_AT of its rows.
SAMPLED_FROM = 16_384
SAMPLE_STEP = 61
LOOKED_AT = 128


def build_reference(points: npt.NDArray[Any], height: int, double: bool) -> Tree:
    """The tree of exact medians in the dimension of the largest variance, level by level.

    Parameters
    ----------
    points : array of shape (n, d), finite, of an accepted dtype
    height : int
        2**height is at most n.
    double : bool
        Hold float64, else float32 (which float64 points are not).

    Returns
    -------
    Tree
        Leaf i holds the places i * n >> height to (i + 1) * n >> height. A node's points are cut in the dimension of
        the largest variance (ties: the first), in order of (value, row); the first of the right half gives the value.
        Against the largest range, which outliers decide, searches visit 11 % fewer leaves at d = 10 and 16 % fewer
        at d = 15 (descriptors).
    """
    n, d = points.shape
    check_height(n, height)
    values = points.astype(np.float64 if double else np.float32)
    ids = np.arange(n)
    dimensions = np.zeros((1 << height) - 1, np.int32)
    cuts = np.zeros((1 << height) - 1, values.dtype)
    for level in range(height):
        for i in range(1 << level):
            begin, middle, end = (j * n >> (level + 1) for j in (2 * i, 2 * i + 1, 2 * i + 2))
            rows = ids[begin:end]  # ascending
            node = (1 << level) - 1 + i
            dimensions[node] = dimension = _most_varied(values[_looked_at(rows)])
            order = np.argsort(values[rows, dimension], kind="stable")
            left = middle - begin
            cuts[node] = values[rows[order[left]], dimension] + 0.0  # never -0.0
            ids[begin:end] = np.concatenate([np.sort(rows[order[:left]]), np.sort(rows[order[left:]])])

    begins = leaf_begins(n, height)
    leaves, capacity = 1 << height, room_for(begins)
    blocks = np.full((leaves, d, capacity), np.inf, values.dtype)
    boxes = np.full((-(-leaves // WIDTH), d, 2, WIDTH), np.inf, values.dtype)
    for leaf in range(leaves):
        rows = ids[begins[leaf] : begins[leaf + 1]]
        blocks[leaf, :, : len(rows)] = values[rows].T
        boxes[leaf // WIDTH, :, 0, leaf % WIDTH] = values[rows].min(axis=0)
        boxes[leaf // WIDTH, :, 1, leaf % WIDTH] = values[rows].max(axis=0)
    return Tree(
        n=n,
        d=d,
        height=height,
        capacity=capacity,
        begins=begins,
        ids=ids.astype(index_dtype(n)),
        rows=blocks,
        boxes=boxes_above(boxes),
        split_dimensions=dimensions,
        split_values=cuts,
    )


def _looked_at(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The rows, ascending, that a node is judged by."""
    if len(rows) > SAMPLED_FROM:
        return np.compress(rows % SAMPLE_STEP == 0, rows)
    looks = min(len(rows), LOOKED_AT)
    places = np.arange(looks) * len(rows) // looks
    return rows[places]


def _most_varied(values: npt.NDArray[Any]) -> int:
    """The dimension of the largest variance; sums run from left to right, about the first row, in float64."""
    if len(values) == 0:
        return 0
    shifted = values.astype(np.float64) - values[0]
    sums, squares = np.cumsum(shifted, axis=0)[-1], np.cumsum(shifted * shifted, axis=0)[-1]
    return int(np.argmax(squares - sums * sums / len(values)))


def visits_reference(
    tree: Tree, query: npt.NDArray[Any], k: int, metric: str, *, self_id: int = -1
) -> tuple[list[int], int]:
    """The leaves that a search must visit, by the recursion that it is an unrolling of.

    Parameters
    ----------
    tree : Tree
    query : array of shape (d,)
    k : int
    metric : str
        One that a tree bounds; values are returned in the dtype of tree.rows.
    self_id : int
        The point that is left out.

    Returns
    -------
    list of int, int
        Leaves in the order of their visits, and how many nodes of boxes were entered. Children are taken in ascending
        order of (bound, number), and one whose bound exceeds the threshold when its turn comes is passed over.
    """
    kind = tree.rows.dtype.type
    row = query.astype(kind)
    best = np.full(k, np.inf, kind)
    leaves: list[int] = []
    nodes = 0

    def scan(leaf: int) -> None:
        nonlocal best
        leaves.append(leaf)
        here = slice(tree.begins[leaf], tree.begins[leaf + 1])
        points = tree.rows[leaf, :, : here.stop - here.start].T[tree.ids[here] != self_id]
        if len(points):
            values = reference.pairwise(query[None], points, metric)[0]
            best = np.sort(np.concatenate([best, reference.returned(values, kind)]))[:k]

    def enter(level: int, node: int) -> None:
        nonlocal nodes
        nodes += 1
        box = tree.boxes[level][node]
        bounds = _bounds(row, box, metric)
        for lane in np.argsort(bounds, kind="stable"):
            if np.isfinite(box[0, 0, lane]) and bounds[lane] <= reach_reference(best[-1], tree.d, metric):
                child = node * WIDTH + int(lane)
                if level == 0:
                    scan(child)
                else:
                    enter(level - 1, child)

    enter(len(tree.boxes) - 1, 0)
    return leaves, nodes


def reach_reference(worst: Any, d: int, metric: str) -> Any:
    """The threshold, in the dtype of the k-th returned value so far, from which on nothing can be an answer.

    docs/kdtree.md, "Exactness", derives it.
    """
    single = worst.dtype == np.float32
    n = (d + 8) * 2.0**-24 * single + (3 * d + 72) * 2.0**-53
    factor = 1 + n / (1 - 2 * n) if n < 0.25 else np.inf
    with np.errstate(over="ignore"):
        value = np.float64(np.nextafter(worst, np.inf, dtype=worst.dtype) if single else worst)
        if get_metric(metric).root:
            value = value * value
        return (value * factor + (d + 8) * (2.0**-149 if single else 2.0**-1074)).astype(worst.dtype)


def _bounds(row: npt.NDArray[Any], box: npt.NDArray[Any], metric: str) -> npt.NDArray[Any]:
    """The least value that a point in each child's box can have, summed in the dtype of the tree column by column."""
    record, sums = get_metric(metric), np.zeros(WIDTH, row.dtype)
    with np.errstate(over="ignore"):
        for x, (lower, upper) in zip(row, box, strict=True):
            t = np.abs(np.minimum(np.maximum(x, lower), upper) - x)
            sums = np.maximum(sums, t) if record.maximum else sums + (t * t if record.squares else t)
    return sums
