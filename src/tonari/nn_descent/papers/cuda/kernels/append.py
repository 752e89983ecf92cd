"""Reverse samples (wang2021, section 4.1): each row is appended to the reverse list of each point that it samples.

An atomic counter of the listed point gives the position of a pair (listed, listing); pairs beyond ROOM are dropped. The
kept rows and their order therefore depend on the timing of threads. A program processes BLOCK pairs.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["pairs"])
def append_kernel(
    # input: int32 [row][SAMPLES]
    listed_ptr,
    # outputs: int32 [n], zeros; [n][ROOM], filled with -1
    counts_ptr, reverse_ptr,
    # shapes
    pairs,
    # constants
    SAMPLES: tl.constexpr, ROOM: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """For each of BLOCK pairs of a row and a point that it samples, append the row to the point's reverse list."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    listed = tl.load(listed_ptr + at, mask=at < pairs, other=-1)
    place = tl.atomic_add(counts_ptr + listed, 1, mask=listed >= 0, sem="relaxed")
    out = listed.to(tl.int64) * ROOM + place
    tl.store(reverse_ptr + out, (at // SAMPLES).to(tl.int32), mask=(listed >= 0) & (place < ROOM))
