"""Operations on entries in memory by the 32 lanes of a warp, each of which searches a row of its own.

    entry             (key, index), compared in that order; a pad, (LAST, PAD_INDEX), is larger than every real entry
    memory            [position][32 lanes], so that lanes at the same position read one cache line
    `key_ptrs`, ...   [32] pointers: position 0 of each lane

A program is one warp, and its tensors have 32 elements. A lane loads only its own stores, so no barriers are needed.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.select.cuda.kernels.registers.keys import last_key

LANES = tl.constexpr(32)
PAD_INDEX = tl.constexpr(0x7FFFFFFF)

# Slots of the counters, [slot][32 lanes]. From UPDATES on, there is a slot for the updates of each queue position.
MERGES = tl.constexpr(0)
FLUSHES = tl.constexpr(1)
EXAMINED = tl.constexpr(2)
UPDATES = tl.constexpr(3)


@triton.jit
def any_lane(mask):
    """Return whether the mask is set in any lane."""
    return tl.max(mask.to(tl.int32), axis=0) > 0


@triton.jit
def before(key, index, other_key, other_index):
    """Return for each lane whether its first entry is smaller than its second."""
    return (key < other_key) | ((key == other_key) & (index < other_index))


@triton.jit
def load_entry(key_ptrs, index_ptrs, position, mask):
    """Load an entry for each lane in the mask; `position` is a scalar, or has a position for each lane."""
    at = tl.cast(position, tl.int64) * LANES
    return tl.load(key_ptrs + at, mask=mask, other=0), tl.load(index_ptrs + at, mask=mask, other=0)


@triton.jit
def store_entry(key_ptrs, index_ptrs, position, key, index, mask):
    """Store an entry for each lane in the mask; `position` is a scalar, or has a position for each lane."""
    at = tl.cast(position, tl.int64) * LANES
    tl.store(key_ptrs + at, key, mask=mask)
    tl.store(index_ptrs + at, index, mask=mask)


@triton.jit
def fill_with_pads(key_ptrs, index_ptrs, size, lanes, WIDE: tl.constexpr):
    """Empty the queues of `lanes`: fill their `size` positions with pads."""
    for position in range(size):
        store_entry(key_ptrs, index_ptrs, position, last_key(WIDE), PAD_INDEX, lanes)


@triton.jit
def count(count_ptrs, slot, lanes):
    """Increment a counter of each lane in `lanes`."""
    slot_ptrs = count_ptrs + tl.cast(slot, tl.int64) * LANES
    tl.store(slot_ptrs, tl.load(slot_ptrs, mask=lanes, other=0) + 1, mask=lanes)


@triton.jit
def descend(key_ptrs, index_ptrs, upper, lower, lanes, count_ptrs, COUNT: tl.constexpr):
    """Exchange the entries at two positions in each lane whose entry at `upper` is the smaller one."""
    upper_key, upper_index = load_entry(key_ptrs, index_ptrs, upper, lanes)
    lower_key, lower_index = load_entry(key_ptrs, index_ptrs, lower, lanes)
    swapped = lanes & before(upper_key, upper_index, lower_key, lower_index)
    store_entry(key_ptrs, index_ptrs, upper, lower_key, lower_index, swapped)
    store_entry(key_ptrs, index_ptrs, lower, upper_key, upper_index, swapped)
    if COUNT:
        count(count_ptrs, upper + UPDATES, swapped)
        count(count_ptrs, lower + UPDATES, swapped)
