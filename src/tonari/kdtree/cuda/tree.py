"""The tree as it lies on a card: full leaves, and boxes for warps of 32 lanes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tonari.cuda.streams import Written

WIDTH = 32  # children of a node: lanes of a warp
BLOCK = 64  # points that are compared at once, two a lane; a leaf is a whole number of blocks
MOST_LEVELS = 4  # of boxes: 32**4 leaves


@dataclass(frozen=True)
class DeviceTree:
    """Points arranged for warps.

    Unlike the CPU's (``kdtree/cpu/tree.py``) every leaf but the last is full, so that no lane is idle: splits are
    medians in whole leaves, and in whole nodes above them.

    Attributes
    ----------
    n, d : int
    leaf : int
        Points of a leaf, a multiple of 64.
    ids : int32 tensor of shape (leaves * leaf,)
        Row of the points at each place, and -1 behind the last; leaf i holds places i * leaf and on.
    rows : float32 or float64 tensor of shape (leaves * leaf / 64, d, 64)
        The points, in blocks, column by column; +inf behind the last.
    boxes : tensor of shape (nodes of all levels, d, 2, 32), of the dtype of rows
        Level 0 first, whose children are leaves; the last node is the root. [.., 0, lane] is the least and
        [.., 1, lane] the largest value of a child's points; +inf for a child that there is not.
    levels : tuple of int
        Node of `boxes` at which each level begins.
    written : Written
        Of all tensors, which another stream reads after ``written.read()``.
    """

    n: int
    d: int
    leaf: int
    ids: Any
    rows: Any
    boxes: Any
    levels: tuple[int, ...]
    written: Written

    @property
    def nbytes(self) -> int:
        """Bytes on the card."""
        return sum(part.numel() * part.element_size() for part in (self.ids, self.rows, self.boxes))


def levels_of(leaves: int) -> tuple[int, ...]:
    """Nodes on each level over so many leaves.

    >>> levels_of(1), levels_of(33), levels_of(32768)
    ((1,), (2, 1), (1024, 32, 1))
    """
    counts = [-(-leaves // WIDTH)]
    while counts[-1] > 1:
        counts.append(-(-counts[-1] // WIDTH))
    return tuple(counts)


def leaf_of(n: int, wanted: int) -> int:
    """Points of a leaf where so many are wanted: whole blocks, and no more than it takes for all points.

    >>> leaf_of(1000, 16), leaf_of(1000, 100), leaf_of(10, 1000)
    (64, 128, 64)
    """
    return -(-min(n, wanted) // BLOCK) * BLOCK


def device_tree_bytes(n: int, d: int, leaf: int, itemsize: int) -> int:
    """What a tree takes on a card.

    >>> device_tree_bytes(10**6, 10, 64, 4) // 2**20
    43
    """
    leaves = -(-n // leaf)
    rows = leaves * leaf * (d * itemsize + 4)
    return rows + sum(levels_of(leaves)) * 2 * WIDTH * d * itemsize
