"""The data structure of the tree on a CUDA device: full leaves, and boxes in groups of 32 for the lanes of a warp."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tonari.cuda.streams import Written

WIDTH = 32  # children per node, one per lane of a warp
BLOCK = 64  # points per block, which are compared at once, two per lane; a leaf is a whole number of blocks
MOST_LEVELS = 4  # maximum number of levels of boxes, for up to 32**4 leaves


@dataclass(frozen=True)
class DeviceTree:
    """A tree whose points and boxes are arranged for the lanes of a warp.

    Unlike on the CPU (``kdtree/cpu/tree.py``), every leaf except the last is full, so that no lane is idle. Splits are
    medians, rounded so that each side has whole leaves, and on higher levels whole nodes.

    Attributes
    ----------
    leaf : int
        Points per leaf, a multiple of 64.
    ids : int32 tensor of shape (leaves * leaf,)
        Row number of the point at each position, -1 for padding; leaf i begins at position i * leaf.
    rows : float32 or float64 tensor of shape (leaves * leaf / 64, d, 64)
        The points in blocks, column by column, padded with +inf.
    boxes : tensor of shape (nodes of all levels, d, 2, 32), of the dtype of rows
        Level 0, whose children are leaves, comes first; the last node is the root. [.., 0, lane] is the smallest and
        [.., 1, lane] the largest value of a child's points; +inf for an absent child.
    levels : tuple of int
        Index in `boxes` of the first node of each level.
    written : Written
        The event after which all tensors are written; call ``written.read()`` before another stream reads them.
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
        """The size of all tensors in bytes."""
        return sum(part.numel() * part.element_size() for part in (self.ids, self.rows, self.boxes))


def levels_of(leaves: int) -> tuple[int, ...]:
    """Return the number of nodes on each level of boxes in a tree of this many leaves.

    >>> levels_of(1), levels_of(33), levels_of(32768)
    ((1,), (2, 1), (1024, 32, 1))
    """
    counts = [-(-leaves // WIDTH)]
    while counts[-1] > 1:
        counts.append(-(-counts[-1] // WIDTH))
    return tuple(counts)


def leaf_of(n: int, wanted: int) -> int:
    """Return the leaf size for a target: rounded up to whole blocks, but not to more blocks than all points need.

    >>> leaf_of(1000, 16), leaf_of(1000, 100), leaf_of(10, 1000)
    (64, 128, 64)
    """
    return -(-min(n, wanted) // BLOCK) * BLOCK


def part_bytes(n: int, d: int, leaf: int, itemsize: int) -> tuple[int, int, int]:
    """Return the size in bytes of a tree's ids, of its rows and of its boxes, each rounded up to a multiple of 256.

    >>> part_bytes(1000, 3, 64, 4)
    (4096, 12288, 768)
    """
    leaves = -(-n // leaf)
    places = leaves * leaf
    return 4 * places, places * d * itemsize, sum(levels_of(leaves)) * 2 * WIDTH * d * itemsize


def device_tree_bytes(n: int, d: int, leaf: int, itemsize: int) -> int:
    """Return the size in bytes of a tree on the device.

    >>> device_tree_bytes(10**6, 10, 64, 4) // 2**20
    43
    """
    return sum(part_bytes(n, d, leaf, itemsize))
