"""What a search by a k-d tree holds in memory, on the CPU and on CUDA."""

from __future__ import annotations

from typing import NamedTuple

from tonari.core.neighbors import index_dtype
from tonari.core.units import MIB
from tonari.kdtree.cpu.tree import BLOCK, WIDTH, level_nodes
from tonari.kdtree.cuda.tree import device_tree_bytes, leaf_of

QUERY_BLOCK = 512  # a few milliseconds of work where a tree is any good
BLOCKS_PER_THREAD = 4  # at least, so that all of them are busy to the end
SMALL_CHANGE, SMALL_CHANGE_ON_CUDA = 4 * MIB, 64 * MIB
LEAST_SLAB = 1 << 16


class TreeMemory(NamedTuple):
    """Bytes as in TreePlan, on CUDA of one device, and the queries that are under way at once."""

    packed: int
    copied: int
    working: int
    output: int
    block: int

    @property
    def total(self) -> int:
        return self.packed + self.copied + self.working + self.output


class TreeNeeds(NamedTuple):
    """What memory depends on, wherever the search runs.

    Attributes
    ----------
    n, m, d : int
        Points, queries (on CUDA those of one device), dimensions.
    held, row_out : int
        Bytes of a value in the tree, and of a query's results.
    query_block : int or None
        Queries at once, where that was asked for.
    """

    n: int
    m: int
    d: int
    held: int
    row_out: int
    query_block: int | None


def tree_bytes(n: int, d: int, height: int, itemsize: int) -> int:
    """What a :class:`tonari.kdtree.cpu.tree.Tree` takes.

    >>> tree_bytes(10**6, 10, 14, 4) // 2**20
    45
    """
    leaves = 1 << height
    largest = -(-n // leaves)
    rows = leaves * -(-largest // BLOCK) * BLOCK * d * itemsize
    boxes = sum(level_nodes(leaves)) * 2 * WIDTH * d * itemsize
    return rows + boxes + n * index_dtype(n).itemsize + 8 * (leaves + 1) + (leaves - 1) * (4 + itemsize)


def on_cpu(needs: TreeNeeds, k: int, height: int, threads: int) -> TreeMemory:
    """For a tree of all points."""
    n, m, d, held, row_out, asked = needs
    fair = -(-m // (BLOCKS_PER_THREAD * threads))
    block = min(m, min(QUERY_BLOCK, fair) if asked is None else asked)
    building = 4 * n  # the node of each point, and those of a node in their order
    row_work = d * held + 16 * k
    return TreeMemory(
        packed=tree_bytes(n, d, height, held),
        copied=0,
        working=SMALL_CHANGE + max(building, 16 * m + min(m, threads * block) * row_work),
        output=m * row_out,
        block=block,
    )


class OnCuda(NamedTuple):
    """One device.

    Attributes
    ----------
    needs : TreeNeeds
    row_in, point_in : int
        Bytes of a query and of a point that are copied there.
    results : int
        Bytes of all results, where they are gathered there.
    leaf : int
        Points wanted in a leaf.
    """

    needs: TreeNeeds
    row_in: int
    point_in: int
    results: int
    leaf: int

    def slab(self, budget: int) -> int:
        """Points of one tree: all, or as many as fit."""
        points = self.needs.n
        while points > LEAST_SLAB and self.fit(points, budget).total > budget:
            points = -(-points // 2)
        return points

    def fit(self, slab: int, budget: int) -> TreeMemory:
        """For trees of so many points, with as many queries at once as the budget allows."""
        n, m, d, held, row_out, asked = self.needs
        packed = device_tree_bytes(slab, d, leaf_of(slab, self.leaf), held)
        points = slab * self.point_in
        building = slab * (3 * d * held + 48)  # rows as they come, in order, and without what is no point
        lists = self.results if slab == n else 2 * self.results  # found in a slab, and the best so far
        row_work = 2 * d * held + 48 + (0 if lists else row_out)
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
