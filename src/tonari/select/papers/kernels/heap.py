"""Heap queues (tang2015 III-B) of 32 lanes: max-heaps, with the children of position p at 2p + 1 and 2p + 2.

An insertion drops the root, which is the largest entry. The hole sinks, each time to the larger child, until both
children are below the new entry, which fills it. Lanes take different paths, so that their loads are scattered.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.select.papers.kernels.lanes import LANES, UPDATES, any_lane, before, count, load_entry, store_entry


@triton.jit
def insert_into_heap(key_ptrs, index_ptrs, size, key, index, lanes, count_ptrs, COUNT: tl.constexpr):
    """Insert an entry into the heap of each lane in `lanes`; it must be below the root."""
    hole = tl.zeros([LANES], tl.int32)
    moving = lanes
    while any_lane(moving):
        left = 2 * hole + 1
        has_left = moving & (left < size)
        has_right = moving & (left + 1 < size)
        left_key, left_index = load_entry(key_ptrs, index_ptrs, left, has_left)
        right_key, right_index = load_entry(key_ptrs, index_ptrs, left + 1, has_right)
        goes_right = has_right & before(left_key, left_index, right_key, right_index)
        child_key = tl.where(goes_right, right_key, left_key)
        child_index = tl.where(goes_right, right_index, left_index)
        sinks = has_left & before(key, index, child_key, child_index)
        moved_key, moved_index = tl.where(sinks, child_key, key), tl.where(sinks, child_index, index)
        store_entry(key_ptrs, index_ptrs, hole, moved_key, moved_index, moving)
        if COUNT:
            count(count_ptrs, hole + UPDATES, moving)
        hole = tl.where(goes_right, left + 1, left)
        moving = sinks
