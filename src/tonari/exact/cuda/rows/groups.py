"""Groups of points that share a lower bound: the columns of a tile that one thread holds after a matrix product.

In the accumulator of a tile of POINT_TILE columns, four threads share a row, and each of them holds two adjacent
columns of every eight. A group of G points consists of the columns that one thread holds in G / 2 consecutive runs of
eight columns, so its minimum needs no exchange between threads. Members need not be adjacent, because their rows are
gathered one by one later.

    tile t, part j, thread q:    group  = t * (POINT_TILE / G) + 4 j + q
    member 2 v + b:              column = t * POINT_TILE + 8 (j G / 2 + v) + 2 q + b        v < G / 2, b < 2

A group of one is a point.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

POINT_TILE = 128
GROUP_SIZES = (8, 16, 32)
LEAST_GROUP = 8
LISTED = 32  # points of a group in lists; an entry has one bit for each part of LEAST_GROUP points


def group_count(n: int, group: int) -> int:
    """Return the number of groups of n points, including those of the last tile's padding.

    >>> group_count(130, 32)
    8
    """
    return -(-n // POINT_TILE) * (POINT_TILE // group)


def members(groups: npt.NDArray[np.int64], group: int) -> npt.NDArray[np.int64]:
    """Return the row numbers of each group's members, in the order of the kernels; a group has at least two points.

    Row numbers may be beyond the last point.

    >>> members(np.array([1]), 8)
    array([[ 2,  3, 10, 11, 18, 19, 26, 27]])
    """
    per_tile = POINT_TILE // group
    tile, rest = np.divmod(groups[..., None], per_tile)
    part, thread = np.divmod(rest, 4)
    member = np.arange(group)
    columns: npt.NDArray[np.int64] = (
        tile * POINT_TILE + 8 * (part * (group // 2) + member // 2) + 2 * thread + member % 2
    )
    return columns
