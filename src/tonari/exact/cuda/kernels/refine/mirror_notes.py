"""Select from the noted rows of a row: the lowest, or all at or below a score; one program per row.

Rows that are not noted are above the row's threshold, unless the room was too small.
"""

from __future__ import annotations

import triton
import triton.language as tl

_UNKNOWN = tl.constexpr(2**31 - 1)  # more than there is room for


@triton.jit(do_not_specialize=["width", "room"])
def lowest_noted_kernel(
    # inputs: the width + 1 lowest values of each row and their slots; rows, counts and thresholds of the lists
    lowest_ptr, slots_ptr, rows_ptr, counts_ptr, thresholds_ptr,
    # outputs: int32 [row][width], float32 [row]
    chosen_ptr, following_ptr,
    # shapes
    width, room,
    # constants
    WIDTH: tl.constexpr,
):  # fmt: skip
    """Write the rows of the lowest values, padded with -1, and a lower bound on all other values."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, WIDTH)
    value = tl.load(lowest_ptr + row * (width + 1) + at, mask=at < width, other=float("inf"))  # [WIDTH]
    present = value < float("inf")
    slot = tl.load(slots_ptr + row * (width + 1) + at, mask=present, other=0)
    chosen = tl.load(rows_ptr + row * room + slot, mask=present, other=-1)
    tl.store(chosen_ptr + row * width + at, chosen, mask=at < width)
    following = tl.minimum(tl.load(lowest_ptr + row * (width + 1) + width), tl.load(thresholds_ptr + row))
    cut = tl.load(counts_ptr + row) > room
    tl.store(following_ptr + row, tl.where(cut, -float("inf"), following))


@triton.jit(do_not_specialize=["room", "near_room"])
def near_noted_kernel(
    # inputs
    values_ptr, rows_ptr, counts_ptr, thresholds_ptr, scores_ptr,
    # outputs: int32 [row][near_room] and [row]
    near_ptr, found_ptr,
    # shapes
    room, near_room,
    # constants
    TILE: tl.constexpr,
):  # fmt: skip
    """Write the rows whose value is at or below the row's score."""
    row = tl.program_id(0).to(tl.int64)
    score = tl.load(scores_ptr + row)
    count = tl.load(counts_ptr + row)
    total = tl.zeros((), tl.int32)
    for start in tl.range(0, tl.minimum(count, room), TILE):
        slot = start + tl.arange(0, TILE)
        present = slot < tl.minimum(count, room)
        value = tl.load(values_ptr + row * room + slot, mask=present, other=float("inf"))  # [TILE]
        near = present & (value <= score)
        noted = tl.load(rows_ptr + row * room + slot, mask=near, other=0)
        place = total + tl.cumsum(near.to(tl.int32), 0) - near.to(tl.int32)
        tl.store(near_ptr + row * near_room + place, noted, mask=near & (place < near_room))
        total += tl.sum(near.to(tl.int32), 0)
    told = (score <= tl.load(thresholds_ptr + row)) & (count <= room)
    tl.store(found_ptr + row, tl.where(told, total, _UNKNOWN))
