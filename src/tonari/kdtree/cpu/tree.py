"""The data structure of the tree: points in leaf order, the boxes around them, and the splits.

The top tree and the leaf structure are those of gieseke2014 (section 3.1): a complete, pointer-free binary tree of
splits over leaves that are contiguous blocks of points. Bounding boxes are added to that structure. A search prunes by
boxes alone, so it is exact for any splits; the splits determine only the leaf that is visited first.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core import _native

WIDTH = 16  # children per node of boxes: one AVX-512 register of float32
BLOCK = 16  # points per block: the capacity of a leaf is a whole number of blocks


@dataclass(frozen=True)
class Tree:
    """The points in the order of the leaves, the boxes and the splits; the module docstring explains the design.

    Attributes
    ----------
    n, d, height : int
        Points, columns, and levels of splits; there are 2**height leaves.
    capacity : int
        The number of points that each leaf has room for: the size of the largest leaf, rounded up to a multiple of 16.
    begins : int64 array of shape (leaves + 1,)
        Leaf i has the points at positions [begins[i], begins[i + 1]).
    ids : int32 or int64 array of shape (n,)
        Row number of the point at each position; ascending within a leaf.
    rows : float32 or float64 array of shape (leaves, d, capacity)
        The points of each leaf, column by column, padded with +inf.
    boxes : tuple of arrays of shape (nodes, d, 2, 16), of the dtype of rows
        Level 0 has the nodes whose children are leaves, level 1 their parents, and so on; the last level is one node.
        [.., 0, lane] is the smallest and [.., 1, lane] the largest value of child 16 * node + lane; both are +inf for
        an absent or empty child.
    split_dimensions : int32 array of shape (2**height - 1,)
        Binary tree in breadth-first order: the children of node i are 2i + 1 and 2i + 2. A child i >= 2**height - 1 is
        the leaf i - (2**height - 1).
    split_values : array of shape (2**height - 1,), of the dtype of rows
        A query goes right if its value in the split dimension is at least the split value. Points with exactly this
        value may be on both sides.
    """

    n: int
    d: int
    height: int
    capacity: int
    begins: npt.NDArray[np.int64]
    ids: npt.NDArray[Any]
    rows: npt.NDArray[Any]
    boxes: tuple[npt.NDArray[Any], ...]
    split_dimensions: npt.NDArray[np.int32]
    split_values: npt.NDArray[Any]

    @property
    def leaves(self) -> int:
        """Number of leaves."""
        return 1 << self.height

    @functools.cached_property
    def native(self) -> _native.TreeView:
        """The tree in the form that native kernels take, over the same arrays. Its small arrays are checked here."""
        return _native.TreeView(
            self.height, self.rows, self.begins, self.ids, list(self.boxes), self.split_dimensions, self.split_values
        )

    @property
    def nbytes(self) -> int:
        """The size of all arrays in bytes."""
        arrays = (self.begins, self.ids, self.rows, *self.boxes, self.split_dimensions, self.split_values)
        return sum(array.nbytes for array in arrays)


def plan_height(n: int, leaf: int) -> int:
    """Return the smallest height at which no leaf has more than `leaf` of the n points; leaves are never empty.

    Examples
    --------
    >>> plan_height(1_000_000, 64), plan_height(64, 64), plan_height(65, 64)
    (14, 0, 1)
    """
    height = 0
    while -(-n >> height) > leaf and 2 << height <= n:
        height += 1
    return height


def check_height(n: int, height: int) -> None:
    """Raise ValueError for a height at which some leaf would be empty."""
    if height < 0 or (height > 0 and 1 << height > n):
        raise ValueError(
            f"height={height}: expected 0 to {max(n, 1).bit_length() - 1}, so that every leaf has at least one point"
        )


def leaf_begins(n: int, height: int) -> npt.NDArray[np.int64]:
    """Return the first position of each leaf after splits at exact medians: i * n >> height for leaf i.

    Examples
    --------
    >>> leaf_begins(10, 2).tolist()
    [0, 2, 5, 7, 10]
    """
    leaves = 1 << height
    i = np.arange(leaves + 1, dtype=np.int64)
    begins: npt.NDArray[np.int64] = i * (n >> height) + (i * (n & (leaves - 1)) >> height)  # i * n could overflow int64
    return begins


def room_for(begins: npt.NDArray[np.int64]) -> int:
    """Return the capacity of every leaf: the size of the largest leaf, rounded up to whole blocks, at least one block.

    Examples
    --------
    >>> room_for(leaf_begins(100, 2)), room_for(leaf_begins(64, 2))
    (32, 16)
    """
    return BLOCK * max(1, -(-int((begins[1:] - begins[:-1]).max()) // BLOCK))


def level_nodes(leaves: int) -> list[int]:
    """Return the number of nodes on each level of boxes, from the level above the leaves to the root.

    Examples
    --------
    >>> level_nodes(1), level_nodes(512)
    ([1], [32, 2, 1])
    """
    nodes = [-(-leaves // WIDTH)]
    while nodes[-1] > 1:
        nodes.append(-(-nodes[-1] // WIDTH))
    return nodes


def boxes_above(leaf_boxes: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], ...]:
    """Compute the boxes of all levels, from the boxes of the leaves up to the root.

    Parameters
    ----------
    leaf_boxes : array of shape (nodes, d, 2, 16)
        Level 0 of the boxes, as in :class:`Tree`; absent or empty children have +inf.

    Returns
    -------
    tuple of arrays
        Level 0 itself, then each level up to the root.
    """
    levels = [leaf_boxes]
    while len(levels[-1]) > 1:
        below = levels[-1]
        count, d = len(below), below.shape[1]
        lower, upper = below[:, :, 0].min(axis=2), below[:, :, 1].max(axis=2)
        if upper.max() == np.inf:  # some children are absent
            upper = np.where(np.isinf(below[:, :, 1]), -np.inf, below[:, :, 1]).max(axis=2)
            upper[np.isinf(lower)] = np.inf  # if all children are absent, mark the node as absent
        level = np.full((-(-count // WIDTH) * WIDTH, d, 2), np.inf, below.dtype)
        level[:count, :, 0], level[:count, :, 1] = lower, upper
        levels.append(np.ascontiguousarray(level.reshape(-1, WIDTH, d, 2).transpose(0, 2, 3, 1)))
    return tuple(levels)
