"""Make reverse lists, one for each listed point, from pairs (listed, listing) in the order of the listed points.

A program processes BLOCK pairs, and drops pairs whose row is full. The position of a pair in its row is the number of
earlier pairs with the same listed point, including the pairs of earlier calls. All positions are distinct, so no locks
are needed (wang2021, section 4.1, appends atomically, in the order of the threads' arrival).
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["pairs", "n", "room", "column"])
def reverse_kernel(
    # inputs
    listed_ptr, numbers_ptr, firsts_ptr, counts_ptr, entries_ptr,
    # output: int32 [n][room]
    reverse_ptr,
    # shapes
    pairs, n, room, size, column,
    # constants
    BLOCK: tl.constexpr, NEW: tl.constexpr,
):  # fmt: skip
    """Write, for each point, the points that list it, with the NEW bits of their entries.

    Each of the `numbers` encodes the (column, row) of an entry.
    """
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
