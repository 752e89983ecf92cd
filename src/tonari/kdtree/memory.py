"""Memory that a k-d tree search needs, on the CPU and on CUDA."""

from __future__ import annotations

from typing import NamedTuple

from tonari.core.neighbors import index_dtype
from tonari.core.units import MIB
from tonari.kdtree.cpu.tree import BLOCK, WIDTH, level_nodes
from tonari.kdtree.cuda.tree import device_tree_bytes, leaf_of

QUERY_BLOCK = 512  # a few milliseconds of work on data that suit a tree
BUFFERED_BLOCK_BYTES = 2 * MIB  # of the state of a thread's queries between rounds: the second-level cache
BLOCKS_PER_THREAD = 4  # minimum, so that all threads stay busy to the end
SMALL_CHANGE, SMALL_CHANGE_ON_CUDA = 4 * MIB, 64 * MIB
LEAST_SLAB = 1 << 16
# Of a query between rounds: its stack and limit (20 bytes), a place in both queues and its leaf (20), and what sorting
# the waiting queries by their leaves and cutting them into tiles takes (at most 120, if no two share a leaf).
BUFFERED_ROW_ON_CUDA = 160


class TreeMemory(NamedTuple):
    """Bytes as in TreePlan (per device on CUDA), and the queries in flight at once."""

    packed: int
    copied: int
    working: int
    output: int
    block: int

    @property
    def total(self) -> int:
        return self.packed + self.copied + self.working + self.output


class TreeNeeds(NamedTuple):
    """Inputs of the memory formulas, common to the CPU and CUDA.

    Attributes
    ----------
    n, m, d : int
        Points, queries (per device on CUDA), dimensions.
    held, row_out : int
        Bytes per value in the tree, and bytes per query of results.
    query_block : int or None
        Queries at once, if the caller set it.
    buffered : bool
        Whether queries have their state in memory between rounds.
    """

    n: int
    m: int
    d: int
    held: int
    row_out: int
    query_block: int | None
    buffered: bool


def tree_bytes(n: int, d: int, height: int, itemsize: int) -> int:
    """Return the bytes of a :class:`tonari.kdtree.cpu.tree.Tree`.

    >>> tree_bytes(10**6, 10, 14, 4) // 2**20
    45
    """
    leaves = 1 << height
    largest = -(-n // leaves)
    rows = leaves * -(-largest // BLOCK) * BLOCK * d * itemsize
    boxes = sum(level_nodes(leaves)) * 2 * WIDTH * d * itemsize
    return rows + boxes + n * index_dtype(n).itemsize + 8 * (leaves + 1) + (leaves - 1) * (4 + itemsize)


def on_cpu(needs: TreeNeeds, k: int, height: int, threads: int) -> TreeMemory:
    """Return the memory for a tree of all points and its search."""
    n, m, d, held, row_out, asked, buffered = needs
    fair = -(-m // (BLOCKS_PER_THREAD * threads))
    most, row_work, buffers = QUERY_BLOCK, d * held + 16 * k, 0
    if buffered:
        row_work += len(level_nodes(1 << height)) * held + 104  # keys; a list's padding, a record, places in two queues
        most, buffers = max(most, BUFFERED_BLOCK_BYTES // row_work), 8 << height
    block = min(m, min(most, fair) if asked is None else asked)
    building = 4 * n  # the node of each point, then the sorted points of the nodes in work
    return TreeMemory(
        packed=tree_bytes(n, d, height, held),
        copied=0,
        working=SMALL_CHANGE + max(building, 16 * m + min(m, threads * block) * row_work + threads * buffers),
        output=m * row_out,
        block=block,
    )


class OnCuda(NamedTuple):
    """Memory of one device.

    Attributes
    ----------
    needs : TreeNeeds
    row_in, point_in : int
        Bytes copied to the device per query and per point; 0 if they are already there.
    results : int
        Bytes of all results if they are gathered on the device, else 0.
    leaf : int
        Target leaf size.
    """

    needs: TreeNeeds
    row_in: int
    point_in: int
    results: int
    leaf: int

    def slab(self, budget: int) -> int:
        """Return the points per tree: all, halved until a tree and its search fit the budget."""
        points = self.needs.n
        while points > LEAST_SLAB and self.fit(points, budget).total > budget:
            points = -(-points // 2)
        return points

    def fit(self, slab: int, budget: int) -> TreeMemory:
        """Return the memory for trees of `slab` points, with as many queries at once as the budget allows."""
        n, m, d, held, row_out, asked, buffered = self.needs
        packed = device_tree_bytes(slab, d, leaf_of(slab, self.leaf), held)
        points = slab * self.point_in
        building = slab * (3 * d * held + 48)  # rows as given, rows in leaf order, and rows with padding masked
        lists = self.results if slab == n else 2 * self.results  # lists of the current slab, and the best so far
        row_work = 2 * d * held + 48 + (0 if lists else row_out) + (BUFFERED_ROW_ON_CUDA if buffered else 0)
        room = budget - packed - points - lists - SMALL_CHANGE_ON_CUDA
        most = max(QUERY_BLOCK, room // (self.row_in + row_work + row_out))
        block = min(m, most if asked is None else asked)
        return TreeMemory(
            packed=packed,
            copied=points + block * self.row_in,
            working=SMALL_CHANGE_ON_CUDA + max(building, block * row_work),
            output=max(lists, block * row_out),
            block=block,
        )
