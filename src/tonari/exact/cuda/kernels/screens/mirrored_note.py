"""Transfer the notes of a batch of rows to the lists of points in later batches.

A note says that a row may be a neighbour of some later points (kernels/screens/mirrored.py).

    value        = score - (N(point) e1 + r(point) e2)        e of the row's tile
    limit(point) = threshold + N(point) E1 + r(point) E2      E: the largest e of the batch

The limit is raised by more than the rounding errors of both lines. So if a value is at or below the threshold, its
score is at or below the limit. The screen notes all scores at or below the limit, stored by row. Here one program per
row appends the row to the lists of all points in the mask of each note, in steps of SLOTS notes. An atomic counter
gives the next position in a point's list, so the order of a list is arbitrary; entries beyond the end of a list are
only counted.

In int8, where all rows are exact, `low` of the point is added to scores and limits, and subtracted again here. With it,
scores are squared distances, so the lowest score of some points is a closer bound for each of them, and numbers below
2^24 are exact.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.exact.cuda.kernels.rows.groups import member_column
from tonari.exact.cuda.kernels.screens.record import COUNTED

_RAISED = tl.constexpr(2.0**-21)
_LARGEST = tl.constexpr(1e30)  # larger thresholds are lowered to this, so that sums with them are finite


@triton.jit(do_not_specialize=["first", "m", "n"])
def limits_kernel(
    # inputs
    thresholds_ptr, norm_ptr, rest_ptr, low_ptr, e1_ptr, e2_ptr,
    # output: float32 [tiles of points][POINT_TILE], -inf for points that are not in a later batch
    limits_ptr,
    # shapes: the batch is rows `first` to `first + m` of n
    first, m, n,
    # constants
    POINT_TILE: tl.constexpr,
    TILES: tl.constexpr,
    WHOLE: tl.constexpr,  # whether scores are from int8 products
):  # fmt: skip
    e1 = tl.zeros([TILES], tl.float32)
    e2 = tl.zeros([TILES], tl.float32)
    for start in tl.range(first // POINT_TILE, tl.cdiv(first + m, POINT_TILE), TILES):
        tile = start + tl.arange(0, TILES)
        mine = tile < tl.cdiv(first + m, POINT_TILE)
        e1 = tl.maximum(e1, tl.load(e1_ptr + tile, mask=mine, other=0.0))
        e2 = tl.maximum(e2, tl.load(e2_ptr + tile, mask=mine, other=0.0))
    point = tl.program_id(0) * POINT_TILE + tl.arange(0, POINT_TILE)
    later = (point >= first + m) & (point < n)
    threshold = tl.load(thresholds_ptr + point, mask=later, other=0.0)  # [POINT_TILE]
    bound = tl.load(norm_ptr + point, mask=later, other=0.0) * tl.max(e1, 0)
    bound += tl.load(rest_ptr + point, mask=later, other=0.0) * tl.max(e2, 0)
    threshold = tl.minimum(threshold, _LARGEST)
    if WHOLE:
        square = threshold + tl.load(low_ptr + point, mask=later, other=0.0)
        limit = square + bound + tl.where(square < COUNTED, 0.5, square * _RAISED)
    else:
        limit = threshold + bound + (tl.abs(threshold) + bound) * _RAISED
    tl.store(limits_ptr + point, tl.where(later, limit, -float("inf")))


@triton.jit(do_not_specialize=["first", "segments", "segment_room", "room"])
def note_kernel(
    # inputs: the outputs of kernels/screens/mirrored.py, and the terms of points and rows
    nearest_ptr, groups_ptr, masks_ptr, noted_ptr, thresholds_ptr, norm_ptr, rest_ptr, low_ptr, e1_ptr, e2_ptr,
    # outputs: float32 and int32 [point][room], int32 [point]
    values_ptr, rows_ptr, counts_ptr,
    # shapes
    first, segments, segment_room, room,
    # constants
    LISTED: tl.constexpr,
    POINT_TILE: tl.constexpr,
    SEGMENTS: tl.constexpr,
    SLOTS: tl.constexpr,
    WHOLE: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    number = first + tl.program_id(0)
    e1 = tl.load(e1_ptr + number // POINT_TILE)
    e2 = tl.load(e2_ptr + number // POINT_TILE)
    member = tl.arange(0, LISTED)[None, :]
    segment = tl.arange(0, SEGMENTS)
    count = tl.load(noted_ptr + row * segments + segment, mask=segment < segments, other=0)  # [SEGMENTS]
    end = tl.cumsum(count, 0)
    # Entry i of a row's list is in the first segment whose end exceeds i, at offset `gap` + i in the row's segments.
    gap = segment * segment_room - (end - count)
    for start in tl.range(0, tl.sum(count, 0), SLOTS):
        entry = start + tl.arange(0, SLOTS)
        before = tl.sum((end[None, :] <= entry[:, None]).to(tl.int32), 1)  # [SLOTS], segments
        shift = tl.sum(tl.where(segment[None, :] == before[:, None], gap[None, :], 0), 1)
        present = before < segments
        at = row * segments * segment_room + entry + shift
        mask = tl.load(masks_ptr + at, mask=present, other=0)
        group = tl.load(groups_ptr + at, mask=present, other=0)
        nearest = tl.load(nearest_ptr + at, mask=present, other=0.0)
        near = ((mask[:, None] >> member) & 1) != 0  # [SLOTS, LISTED]
        point = member_column(group[:, None], member, LISTED, POINT_TILE)
        bound = tl.load(norm_ptr + point, mask=near, other=0.0) * e1
        bound += tl.load(rest_ptr + point, mask=near, other=0.0) * e2
        score = nearest[:, None]
        if WHOLE:
            score = score - tl.load(low_ptr + point, mask=near, other=0.0)
        value = score - bound
        near = near & (value <= tl.load(thresholds_ptr + point, mask=near, other=0.0))
        place = tl.atomic_add(counts_ptr + point, 1, mask=near, sem="relaxed")
        fits = near & (place < room)
        to = point.to(tl.int64) * room + place
        tl.store(values_ptr + to, value, mask=fits)
        tl.store(rows_ptr + to, number + tl.zeros_like(point), mask=fits)
