"""The memory of a search among sparse rows, as native/sparse allocates it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

BLOCK = 4096  # points in a block: kSparseBlock of native/sparse/points.hpp

# Columns that at least n / DENSE_SHARE points have are stored as dense arrays. Columns that fewer than n / RARE_SHARE
# points have are rare, and have one inverted list of all points (native/sparse/points.hpp).
DENSE_SHARE, RARE_SHARE = 10, 512
SPARE = 512  # entries of a candidate list beyond 2 k: kMostSpare of native/sparse/block.cpp
_QUERY = 512  # bytes for a query in a task, without its lists


def packed_bytes(n: int, counts: npt.NDArray[np.int64], metric: str) -> int:
    """Return the bytes of prepared points, including the ranks of their entries.

    Parameters
    ----------
    n : int
    counts : int64 array
        The number of points that have each column, in descending order.
    metric : str
    """
    ranked, entries = len(counts), int(counts.sum())
    dense, frequent = (int(np.count_nonzero(counts * share >= n)) for share in (DENSE_SHARE, RARE_SHARE))
    in_dense, by_rows = int(counts[:dense].sum()), int(counts[:frequent].sum())
    blocks = -(-n // BLOCK)
    half = "euclidean" in metric or metric == "jaccard"
    rows = n * (8 + 4 * 4 + 4 + (4 if half else 0) + 8) + 8
    lists = 8 * (entries - in_dense) + 8 * (2 * ranked - frequent + 1) + 8 * (frequent - dense + 1) * blocks
    return rows + lists + 4 * dense * n + 8 * by_rows + 4 * entries


def preparing_bytes(ranked: int, table_bytes: int) -> int:
    """Return the bytes of temporary tables of the columns, which exist while points are prepared."""
    return max(table_bytes, 20 * ranked)


def block_bytes(queries: int, entries: int, k: int, frequent: int) -> int:
    """Return the bytes of a task: sums for pairs, and its queries' entries, candidate lists and neighbour lists.

    Parameters
    ----------
    queries, entries : int
        The number of the task's queries, and of their values.
    k : int
        Neighbours of each query; 0 for a radius search, whose lists are counted as part of the result.
    frequent : int
        The number of columns that are not rare.
    """
    room = 2 * k + SPARE
    lists = 2 * 12 * room + 16 * k
    return BLOCK * 8 + 4 * frequent + queries * (_QUERY + lists) + 64 * entries + 32 * (room + k)
