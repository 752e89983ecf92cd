"""Who lists whom: sorted pairs (listed, listing) go to the places of the listed, as far as there is room.

A program takes BLOCK pairs; a pair's place is how many stand before it with the same listed point, and how many an
earlier call has put there. No two pairs have one place, so nothing has to be locked (wang2021, section 4.1, appends
atomically, in whatever order threads come).
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["pairs", "n", "room"])
def reverse_kernel(
    # inputs
    listed_ptr,
    numbers_ptr,
    firsts_ptr,
    counts_ptr,
    entries_ptr,
    # output: int32 [n][room]
    reverse_ptr,
    # shapes
    pairs,
    n,
    room,
    size,
    column,
    # constants
    BLOCK: tl.constexpr,
    NEW: tl.constexpr,
):
    """Write the listing point, with the bit of its entry; `numbers` say which (column, row) a pair was."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    listed = tl.load(listed_ptr + at, mask=at < pairs, other=n)  # [BLOCK]
    present = listed < n
    place = (
        at - tl.load(firsts_ptr + listed, mask=present, other=0) + tl.load(counts_ptr + listed, mask=present, other=0)
    )
    present = present & (place < room)
    number = tl.load(numbers_ptr + at, mask=present, other=0)
    row = number % n
    entry = tl.load(entries_ptr + row * size + column + number // n, mask=present, other=0)
    tl.store(reverse_ptr + listed.to(tl.int64) * room + place, row.to(tl.int32) | (entry & NEW), mask=present)
