"""Select candidates from a point's notes: the notes with the lowest values, or all notes at or below a score.

The screen of a graph (kernels/screens/mirrored.py) uses the score of a row and a point for both of them: if it is low,
the row is noted for the point. The notes of a point are the row numbers of these rows, with lower bounds of their
scores. The bounds of all other rows are above the point's threshold, unless there was no room for all notes. The point
itself is also called row here, because it is a row of the graph. One program processes one point.
"""

from __future__ import annotations

import triton
import triton.language as tl

_UNKNOWN = tl.constexpr(2**31 - 1)  # a count that exceeds every list's room


@triton.jit(do_not_specialize=["width", "room"])
def lowest_noted_kernel(
    # inputs: the width + 1 lowest values of each point's list, their slots; row numbers, counts and thresholds
    lowest_ptr, slots_ptr, rows_ptr, counts_ptr, thresholds_ptr,
    # outputs: int32 [row][width], float32 [row]
    chosen_ptr, following_ptr,
    # shapes
    width, room,
    # constants
    WIDTH: tl.constexpr,
):  # fmt: skip
    """Write the `width` rows with the lowest values in a point's list, padded with -1; bound all other values."""
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
    """Write the rows in a point's list whose value is at or below the point's entry in `scores_ptr`."""
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
