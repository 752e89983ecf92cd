"""What a batch of rows is to points of later batches, from lists of the rows to lists of the points.

One program per row: of each of its segments SLOTS entries at a time, and of each entry all LISTED points of which its
mask has some. A point's next place is what an atomic counter returns, so that entries are in any order; those that find
no room are counted.

    value = nearest - (N(point) e1 + r(point) e2)        e of the row's tile: at most the row's score to the point
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.exact.cuda.kernels.groups import member_column


@triton.jit(do_not_specialize=["first", "segments", "segment_room", "room"])
def note_kernel(
    # inputs: what screen_mirrored.py noted, and the errors of points and rows
    nearest_ptr, groups_ptr, masks_ptr, noted_ptr, norm_ptr, rest_ptr, e1_ptr, e2_ptr,
    # outputs: float32 and int32 [point][room], int32 [point]
    values_ptr, rows_ptr, counts_ptr,
    # shapes
    first, segments, segment_room, room,
    # constants
    LISTED: tl.constexpr,
    POINT_TILE: tl.constexpr,
    SLOTS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    number = first + tl.program_id(0)
    e1 = tl.load(e1_ptr + number // POINT_TILE)
    e2 = tl.load(e2_ptr + number // POINT_TILE)
    member = tl.arange(0, LISTED)[None, :]
    for segment in tl.range(0, segments):
        count = tl.load(noted_ptr + row * segments + segment)
        begin = (row * segments + segment) * segment_room
        for start in tl.range(0, count, SLOTS):
            slot = start + tl.arange(0, SLOTS)
            mask = tl.load(masks_ptr + begin + slot, mask=slot < count, other=0)  # [SLOTS]
            group = tl.load(groups_ptr + begin + slot, mask=slot < count, other=0)
            nearest = tl.load(nearest_ptr + begin + slot, mask=slot < count, other=0.0)
            near = ((mask[:, None] >> member) & 1) != 0  # [SLOTS, LISTED]
            point = member_column(group[:, None], member, LISTED, POINT_TILE)
            bound = tl.load(norm_ptr + point, mask=near, other=0.0) * e1
            bound += tl.load(rest_ptr + point, mask=near, other=0.0) * e2
            place = tl.atomic_add(counts_ptr + point, 1, mask=near, sem="relaxed")
            fits = near & (place < room)
            at = point.to(tl.int64) * room + place
            tl.store(values_ptr + at, nearest[:, None] - bound, mask=fits)
            tl.store(rows_ptr + at, number + tl.zeros_like(point), mask=fits)
