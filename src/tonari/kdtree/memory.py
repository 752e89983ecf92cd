"""Formulas for the memory that a k-d tree search needs, on the CPU and on CUDA."""

from __future__ import annotations

from typing import NamedTuple

from tonari.core.results.neighbors import index_dtype
from tonari.core.units import MIB
from tonari.kdtree import tuning
from tonari.kdtree.cpu.tree import BLOCK, WIDTH, level_nodes
from tonari.kdtree.cuda.tree import device_tree_bytes, leaf_of

SMALL_CHANGE, SMALL_CHANGE_ON_CUDA = 4 * MIB, 64 * MIB
# Bytes of memory that the buffered traversal keeps per query between rounds: stack and limit (20), leaf and an entry in
# each queue (20), and its share of the scratch for sorting the waiting queries by leaf and cutting them into tiles (at
# most 120, if no two queries share a leaf).
BUFFERED_ROW_ON_CUDA = 160


class TreeMemory(NamedTuple):
    """The memory of a TreePlan in bytes (per device on CUDA), and the number of queries that are searched at once."""

    packed: int
    copied: int
    working: int
    output: int
    block: int

    @property
    def total(self) -> int:
        return self.packed + self.copied + self.working + self.output


class TreeNeeds(NamedTuple):
    """The inputs of the memory formulas that the CPU and CUDA have in common.

    Attributes
    ----------
    n, m, d : int
        Points, queries (per device on CUDA), dimensions.
    held, row_out : int
        Bytes per value in the tree, and bytes per query of results.
    query_block : int or None
        The number of queries searched at once, if the caller has set it.
    buffered : bool
        Whether the traversal is buffered, which keeps the state of queries in memory between rounds.
    """

    n: int
    m: int
    d: int
    held: int
    row_out: int
    query_block: int | None
    buffered: bool


def tree_bytes(n: int, d: int, height: int, itemsize: int) -> int:
    """Return the size in bytes of a :class:`tonari.kdtree.cpu.tree.Tree`.

    >>> tree_bytes(10**6, 10, 14, 4) // 2**20
    45
    """
    leaves = 1 << height
    largest = -(-n // leaves)
    rows = leaves * -(-largest // BLOCK) * BLOCK * d * itemsize
    boxes = sum(level_nodes(leaves)) * 2 * WIDTH * d * itemsize
    return rows + boxes + n * index_dtype(n).itemsize + 8 * (leaves + 1) + (leaves - 1) * (4 + itemsize)


def on_cpu(needs: TreeNeeds, k: int, height: int, threads: int) -> TreeMemory:
    """Return the memory on the CPU for a tree of all points and its search."""
    n, m, d, held, row_out, asked, buffered = needs
    fair = -(-m // (tuning.BLOCKS_PER_THREAD * threads))
    most, row_work, buffers = tuning.QUERY_BLOCK, d * held + 16 * k, 0
    if buffered:
        # Per query: a key for each level, the padding of a list, a record, and entries in two queues.
        row_work += len(level_nodes(1 << height)) * held + 104
        most, buffers = max(most, tuning.BUFFERED_BLOCK_BYTES // row_work), 8 << height
    block = min(m, min(most, fair) if asked is None else asked)
    building = 4 * n  # bytes for the node number of each point, and later for arrays of the nodes that are being split
    return TreeMemory(
        packed=tree_bytes(n, d, height, held),
        copied=0,
        working=SMALL_CHANGE + max(building, 16 * m + min(m, threads * block) * row_work + threads * buffers),
        output=m * row_out,
        block=block,
    )


def host_block(m: int) -> int:
    """Return the number of queries per block if m queries in host memory are copied to a device block by block.

    >>> [host_block(m) for m in (1000, 200_000, 10**6, 10**7)]
    [1000, 200000, 250000, 1000000]
    """
    return -(-m // max(1, -(-m // tuning.MOST_HOST_BLOCK), min(tuning.HOST_BLOCKS, m // tuning.LEAST_HOST_BLOCK)))


class OnCuda(NamedTuple):
    """Formulas for the memory of a tree search on one CUDA device.

    Attributes
    ----------
    row_in, point_in : int
        Bytes copied to the device per query and per point; 0 if they are already there.
    results : int
        Bytes of all results if they are collected on the device; 0 if results and queries are in host memory.
    leaf : int
        Target leaf size.
    """

    needs: TreeNeeds
    row_in: int
    point_in: int
    results: int
    leaf: int

    def slab(self, budget: int, most: int, *, kept: bool, prepared: bool) -> int:
        """Return the number of points per tree: `most`, halved until a tree and its search fit into the budget.

        `prepared` is True if trees of `most` points exist already. Otherwise slabs are small enough to leave some
        memory for later searches with more queries.
        """
        points, n, rest = most, self.needs.n, budget
        if not prepared:
            rest -= min(budget // 8, tuning.LEAST_HOST_BLOCK * sum(self._of_query(merging=True, staged=True)))
        while points > tuning.LEAST_SLAB:
            limit = budget if points == n else rest
            if self.fit(points, limit, kept=kept).total <= limit:
                break
            points = -(-points // 2)
        return points

    def tree_bytes(self, slab: int) -> int:
        """Return the size in bytes of all trees together, if each has `slab` points and the last one the rest."""
        n, d, held = self.needs.n, self.needs.d, self.needs.held
        whole, rest = divmod(n, slab)
        sizes = ((whole, slab), (1, rest))
        return sum(count * device_tree_bytes(size, d, leaf_of(size, self.leaf), held) for count, size in sizes if size)

    def fit(self, slab: int, budget: int, *, kept: bool) -> TreeMemory:
        """Return the memory for searching trees of `slab` points, with as many queries at once as the budget allows.

        `kept` is True if the trees are kept in host memory, and each is copied to the device while the previous one is
        searched.
        """
        n, m, d, held, _, asked, _ = self.needs
        tree = device_tree_bytes(slab, d, leaf_of(slab, self.leaf), held)
        packed = 2 * tree if kept and slab < n else tree
        points = slab * self.point_in
        building = slab * (d * held + 48)  # rows in the tree's dtype, and scratch memory of sorting
        lists = self.results if slab == n else 2 * self.results  # lists of this slab, and merged lists of earlier ones
        room = budget - packed - points - lists - SMALL_CHANGE_ON_CUDA
        wanted = m if asked is None else min(m, asked)
        if asked is None and not lists:
            wanted = host_block(m)
        for staged in (False, True):
            into, work, out = self._of_query(merging=slab < n, staged=staged)
            block = wanted
            if asked is None:
                fitting = min(room // (into + work + out), (room - building) // max(1, into + out))
                block = min(wanted, max(tuning.QUERY_BLOCK, fitting))
            if lists or (block < m) == staged:
                break
        return TreeMemory(
            packed=packed,
            copied=points + block * into,
            working=SMALL_CHANGE_ON_CUDA + max(building, block * work),
            output=max(lists, block * out),
            block=block,
        )

    def _of_query(self, *, merging: bool, staged: bool) -> tuple[int, int, int]:
        """Return the bytes on the device per query of a block: for copied queries, for the search, and for its lists.

        `merging`: the lists are merged with the best lists of earlier slabs. `staged`: queries and best lists are
        copied in while the previous block is searched, and lists are copied out while the next block is searched.
        """
        _, _, d, held, row_out, _, buffered = self.needs
        work = 2 * d * held + 48 + (BUFFERED_ROW_ON_CUDA if buffered else 0)
        if self.results:
            return self.row_in, work, 0
        # bytes per query: those copied to the device, and those written by the search
        into, lists = self.row_in, row_out
        if merging:
            into, lists = into + row_out, 2 * lists
        return (2 * into, work, lists + row_out) if staged else (into, work, lists)
