"""Insertion queues (tang2015 III-B) of 32 lanes: entries descend, so that the head, at position 0, is the largest.

    before          7 6 5 4 2 1
    3 inserted      6 5 4 3 2 1    every entry above 3 moves one position towards the head, which is dropped

All lanes go through the positions together, beginning at the head; a lane that has placed its entry waits for the
others.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.select.papers.kernels.lanes import LANES, UPDATES, any_lane, before, count, load_entry, store_entry


@triton.jit
def insert_sorted(key_ptrs, index_ptrs, size, key, index, lanes, count_ptrs, COUNT: tl.constexpr):
    """Insert an entry into the queue of each lane in `lanes`, of `size` positions; it must be below the head."""
    position = tl.full((), 0, tl.int32)
    sizes = tl.zeros([LANES], tl.int32) + size
    moving = lanes
    while any_lane(moving):
        inside = moving & (position + 1 < sizes)
        next_key, next_index = load_entry(key_ptrs, index_ptrs, position + 1, inside)
        larger = inside & before(key, index, next_key, next_index)
        moved_key, moved_index = tl.where(larger, next_key, key), tl.where(larger, next_index, index)
        store_entry(key_ptrs, index_ptrs, position, moved_key, moved_index, moving)
        if COUNT:
            count(count_ptrs, position + UPDATES, moving)
        moving = larger
        position += 1
