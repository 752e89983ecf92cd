"""What the lanes of a warp do with entries in memory: every lane has a row of its own.

    entry          (key, index), compared in that order; a pad, (LAST, PAD_INDEX), is larger than all that exist
    memory         [position][32 lanes], so that lanes at one position read one line
    `key_ptrs`, ...   [32] pointers: each lane's position 0

Programs have one warp and tensors 32 elements: a lane loads what it has stored itself, and nothing needs a barrier.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.select.cuda.kernels.keys import last_key

LANES = tl.constexpr(32)
PAD_INDEX = tl.constexpr(0x7FFFFFFF)

# Slots of the counters, [slot][32 lanes]; those of the queue's positions come last.
MERGES = tl.constexpr(0)
FLUSHES = tl.constexpr(1)
EXAMINED = tl.constexpr(2)
UPDATES = tl.constexpr(3)


@triton.jit
def any_lane(mask):
    """Whether the mask of any lane is set."""
    return tl.max(mask.to(tl.int32), axis=0) > 0


@triton.jit
def before(key, index, other_key, other_index):
    """Whether entries are smaller than others."""
    return (key < other_key) | ((key == other_key) & (index < other_index))


@triton.jit
def load_entry(key_ptrs, index_ptrs, position, mask):
    """Entries at a position, the same for all lanes or one for each."""
    at = tl.cast(position, tl.int64) * LANES
    return tl.load(key_ptrs + at, mask=mask, other=0), tl.load(index_ptrs + at, mask=mask, other=0)


@triton.jit
def store_entry(key_ptrs, index_ptrs, position, key, index, mask):
    """Store entries at a position, the same for all lanes or one for each."""
    at = tl.cast(position, tl.int64) * LANES
    tl.store(key_ptrs + at, key, mask=mask)
    tl.store(index_ptrs + at, index, mask=mask)


@triton.jit
def fill_with_pads(key_ptrs, index_ptrs, size, lanes, WIDE: tl.constexpr):
    """Empty queues of `size` positions."""
    for position in range(size):
        store_entry(key_ptrs, index_ptrs, position, last_key(WIDE), PAD_INDEX, lanes)


@triton.jit
def count(count_ptrs, slot, lanes):
    """Count one for each lane in `lanes`."""
    slot_ptrs = count_ptrs + tl.cast(slot, tl.int64) * LANES
    tl.store(slot_ptrs, tl.load(slot_ptrs, mask=lanes, other=0) + 1, mask=lanes)


@triton.jit
def descend(key_ptrs, index_ptrs, upper, lower, lanes, count_ptrs, COUNT: tl.constexpr):
    """Exchange the entries at two positions where the one at `upper` is the smaller."""
    upper_key, upper_index = load_entry(key_ptrs, index_ptrs, upper, lanes)
    lower_key, lower_index = load_entry(key_ptrs, index_ptrs, lower, lanes)
    swapped = lanes & before(upper_key, upper_index, lower_key, lower_index)
    store_entry(key_ptrs, index_ptrs, upper, lower_key, lower_index, swapped)
    store_entry(key_ptrs, index_ptrs, lower, upper_key, upper_index, swapped)
    if COUNT:
        count(count_ptrs, upper + UPDATES, swapped)
        count(count_ptrs, lower + UPDATES, swapped)
