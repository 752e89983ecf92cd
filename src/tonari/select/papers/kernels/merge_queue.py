"""Merge queues (tang2015 III-C, algorithm 2) of 32 lanes: levels [0, m) [m, 2m) [2m, 4m) ..., each in descending order.

The heads of the levels descend too, so that the largest entry is at position 0. An entry is inserted into the first
level. If a level's head is then smaller than the next level's, the next level is merged with all levels above it, and
so on downwards (lazy update). Line 5 of algorithm 2 as printed tests the opposite condition; this code follows the text
around it.

    Reverse Bitonic Merge (Figure 2b) of two descending halves of s entries each, in place:
    position i with 2s - 1 - i, then distances s/2, s/4, ..., 1; the larger entry goes to the smaller position
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.select.papers.kernels.insertion import insert_sorted
from tonari.select.papers.kernels.lanes import LANES, MERGES, any_lane, before, count, descend, load_entry


@triton.jit
def merge_halves(key_ptrs, index_ptrs, half, lanes, count_ptrs, COUNT: tl.constexpr):
    """Merge the first `half` positions of each queue, a power of two, with the next `half` positions."""
    for i in range(half):
        descend(key_ptrs, index_ptrs, i, 2 * half - 1 - i, lanes, count_ptrs, COUNT)
    distance = half // 2
    while distance > 0:
        for i in range(half):
            upper = i + (i & -distance)  # the i-th position without the bit `distance`
            descend(key_ptrs, index_ptrs, upper, upper + distance, lanes, count_ptrs, COUNT)
        distance = distance // 2


@triton.jit
def must_merge(key_ptrs, index_ptrs, level, below, size, lanes, ALIGNED: tl.constexpr):
    """Return a mask of the lanes that merge the level at `below` with those above it; ALIGNED: all do if one must."""
    inside = lanes & (below < tl.zeros([LANES], tl.int32) + size)
    key, index = load_entry(key_ptrs, index_ptrs, level, inside)
    below_key, below_index = load_entry(key_ptrs, index_ptrs, below, inside)
    broken = inside & before(key, index, below_key, below_index)
    if ALIGNED:
        broken = tl.where(lanes, tl.max(broken.to(tl.int32), axis=0), 0) > 0
    return broken


@triton.jit
def insert_and_merge(
    key_ptrs, index_ptrs, size, key, index, lanes, present, count_ptrs,
    M: tl.constexpr, ALIGNED: tl.constexpr, COUNT: tl.constexpr,
):  # fmt: skip
    """Insert an entry into the queue of each lane in `lanes`; it must be below the head of the queue.

    ALIGNED: all lanes in `present` merge their levels as soon as one of them must."""
    tl.static_assert((M & (M - 1)) == 0, "levels are merged in halves, of M places at first")
    insert_sorted(key_ptrs, index_ptrs, M, key, index, lanes, count_ptrs, COUNT)
    level = tl.full((), 0, tl.int32)
    below = tl.full((), M, tl.int32)
    merging = must_merge(key_ptrs, index_ptrs, level, below, size, present if ALIGNED else lanes, ALIGNED)
    while any_lane(merging):
        merge_halves(key_ptrs, index_ptrs, below, merging, count_ptrs, COUNT)
        if COUNT:
            count(count_ptrs, MERGES, merging)
        level = below
        below = below * 2
        merging = must_merge(key_ptrs, index_ptrs, level, below, size, merging, ALIGNED)
