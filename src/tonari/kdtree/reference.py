"""The tree and the visits of a search in plain NumPy: the specification of the compiled kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core.results.neighbors import index_dtype
from tonari.kdtree.cpu.tree import WIDTH, Tree, boxes_above, check_height, leaf_begins, room_for
from tonari.metrics import Metric, get_metric, reference

# In a node of more than SAMPLED_FROM points, variances are estimated from rows with row numbers that are multiples of
# SAMPLE_STEP (a prime, so that periodic data are still sampled well). In a smaller node, they are estimated from at
# most LOOKED_AT rows.
SAMPLED_FROM = 16_384
SAMPLE_STEP = 61
LOOKED_AT = 128


def build_reference(points: npt.NDArray[Any], height: int, double: bool) -> Tree:
    """Build the tree level by level, with exact median splits in the dimension of the largest variance.

    Parameters
    ----------
    points : array of shape (n, d), finite, of an accepted dtype
    height : int
        Levels of splits; 2**height must not exceed n.
    double : bool
        Store the points as float64; otherwise as float32, which cannot represent float64 points.

    Returns
    -------
    Tree
        Leaf i holds the positions from i * n >> height up to (i + 1) * n >> height. A node is split in the dimension of
        the largest variance (the first of equal ones), in the order of (value, row); the split value is that of the
        first point of the right half.

    Notes
    -----
    Splitting the dimension of the largest range instead would depend on outliers. With the largest variance, searches
    of image descriptors visit 11 % fewer leaves at d = 10 and 16 % fewer at d = 15.
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
            rows = ids[begin:end]  # ascending row numbers
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
    """Return the row numbers, ascending, of the sample from which a node's variances are estimated."""
    if len(rows) > SAMPLED_FROM:
        return np.compress(rows % SAMPLE_STEP == 0, rows)
    looks = min(len(rows), LOOKED_AT)
    places = np.arange(looks) * len(rows) // looks
    return rows[places]


def _most_varied(values: npt.NDArray[Any]) -> int:
    """Return the dimension of the largest variance.

    Row 0 is subtracted, and sums are computed in float64 over the rows in order, as in the compiled build.
    """
    if len(values) == 0:
        return 0
    shifted = values.astype(np.float64) - values[0]
    sums, squares = np.cumsum(shifted, axis=0)[-1], np.cumsum(shifted * shifted, axis=0)[-1]
    return int(np.argmax(squares - sums * sums / len(values)))


def visits_reference(
    tree: Tree, query: npt.NDArray[Any], k: int, metric: str, *, self_id: int = -1
) -> tuple[list[int], int]:
    """Return the leaves that the search for one query must visit, by plain recursion, which the kernel unrolls.

    Parameters
    ----------
    query : array of shape (d,)
    metric : str
        One of the metrics that a tree supports; values are compared in the dtype of tree.rows.
    self_id : int
        The row number of a point that is excluded.

    Returns
    -------
    list of int, int
        Leaves in the order of their visits, and the number of box nodes entered. Children are visited in ascending
        order of (bound, index); a child whose bound exceeds the threshold when its turn comes is skipped.
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
    """Return the largest bound at which a box is still visited, if `worst` is the k-th smallest known value.

    docs/kdtree.md derives the threshold in the section "Exactness".
    """
    single = worst.dtype == np.float32
    n = (d + 12) * 2.0**-24 * single + (3 * d + 72) * 2.0**-53
    factor = 1 + n / (1 - 2 * n) if n < 0.25 else np.inf
    with np.errstate(over="ignore"):
        value = np.float64(np.nextafter(worst, np.inf, dtype=worst.dtype) if single else worst)
        if get_metric(metric).root:
            value = value * value
        return (value * factor + (d + 8) * (2.0**-149 if single else 2.0**-1074)).astype(worst.dtype)


def _bounds(row: npt.NDArray[Any], box: npt.NDArray[Any], metric: str) -> npt.NDArray[Any]:
    """Return a lower bound of the distance to each child's box, summed over the dimensions in the tree's dtype."""
    record, sums = get_metric(metric), np.zeros(WIDTH, row.dtype)
    with np.errstate(over="ignore"):
        for x, (lower, upper) in zip(row, box, strict=True):
            t = np.abs(np.minimum(np.maximum(x, lower), upper) - x)
            sums = np.maximum(sums, t) if record.maximum else sums + (t * t if record.squares else _term(record, t))
    return sums


def _term(record: Metric, t: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the metric's term for each absolute difference in `t`, in the dtype of `t`."""
    assert record.value is not None
    return record.value(t[None], np.zeros_like(t)[None])
