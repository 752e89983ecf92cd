"""Find the points whose contracted rows are within a limit of a query's contracted row, in two steps after a screen.

Contracted rows are rows projected to a few coordinates (exact/cuda/rows/contraction.py); below, g(q) and g(x) denote
such rows.

    groups     the groups, from a row's list or from all minima, whose certified minimum is at most the row's score
    members    the points of these groups with |g(q) - g(x)|^2 at or below the row's limit; rows are gathered in
               float32 or int8, in steps of CHUNK members and COLUMNS columns

One program processes a row; if there are few rows, several programs share the members of a row in chunks of CHUNK. Both
steps count all results, and write them while there is room. A row without enough room, or with an incomplete list of
groups, is searched again by another method, so the second step skips it. The set of written members does not depend on
the order in which programs run, but their positions do. The limit allows for the rounding of the sums
(contracted_limits.py).
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.exact.cuda.kernels.refine.groups import candidates
from tonari.exact.cuda.kernels.rows.groups import part_number
from tonari.exact.cuda.kernels.rows.round_codes import MARK

_UNKNOWN = tl.constexpr(2**31 - 1)  # a count that exceeds every list's room


@triton.jit(do_not_specialize=["segments", "segment_room", "room"])
def near_listed_kernel(
    # inputs: the lists of the screen with their thresholds, and the scores
    values_ptr, entries_ptr, counts_ptr, thresholds_ptr, scores_ptr,
    # outputs: int32 [row][room] and [row]
    groups_ptr, found_ptr,
    # shapes
    segments, segment_room, room,
    # constants
    SEGMENTS: tl.constexpr,
    TILE: tl.constexpr,
):  # fmt: skip
    """Write the marked parts of listed groups whose minimum is at or below the row's entry in `scores_ptr`."""
    row = tl.program_id(0).to(tl.int64)
    score = tl.load(scores_ptr + row)
    slots = segments * segment_room
    total = tl.zeros((), tl.int32)
    for start in tl.range(0, slots, TILE):
        slot = start + tl.arange(0, TILE)
        value = tl.load(values_ptr + row * slots + slot, mask=slot < slots, other=float("inf"))  # [TILE]
        near = (value <= score) & (value < float("inf"))  # no entry has +inf
        entry = tl.load(entries_ptr + row * slots + slot, mask=near, other=0)
        mask = entry & 15
        wanted = (mask & 1) + ((mask >> 1) & 1) + ((mask >> 2) & 1) + (mask >> 3)
        place = total + tl.cumsum(wanted, 0) - wanted
        for part in tl.static_range(4):
            bit = (mask >> part) & 1
            tl.store(groups_ptr + row * room + place, part_number(entry >> 4, part), mask=(bit > 0) & (place < room))
            place += bit
        total += tl.sum(wanted, 0)
    segment = tl.arange(0, SEGMENTS)
    counts = tl.load(counts_ptr + row * segments + segment, mask=segment < segments, other=0)  # [SEGMENTS]
    told = (score <= tl.load(thresholds_ptr + row)) & (tl.max(counts, 0) <= segment_room)
    tl.store(found_ptr + row, tl.where(told, total, _UNKNOWN))


@triton.jit(do_not_specialize=["groups", "stride", "room"])
def near_minima_kernel(
    # inputs: the minima of all groups, and the scores
    minima_ptr, scores_ptr,
    # outputs: int32 [row][room] and [row]
    groups_ptr, found_ptr,
    # shapes
    groups, stride, room,
    # constants
    TILE: tl.constexpr,
):  # fmt: skip
    """Write the groups of a row whose minimum is at or below the row's entry in `scores_ptr`."""
    row = tl.program_id(0).to(tl.int64)
    score = tl.load(scores_ptr + row)
    total = tl.zeros((), tl.int32)
    for start in tl.range(0, groups, TILE):
        group = start + tl.arange(0, TILE)
        lowest = tl.load(minima_ptr + row * stride + group, mask=group < groups, other=float("inf"))  # [TILE]
        near = ((lowest <= score) & (lowest < float("inf"))).to(tl.int32)
        place = total + tl.cumsum(near, 0) - near
        tl.store(groups_ptr + row * room + place, group, mask=(near > 0) & (place < room))
        total += tl.sum(near, 0)
    tl.store(found_ptr + row, total)


@triton.jit(do_not_specialize=["p", "units", "n", "room", "members_room"])
def near_members_kernel(
    # inputs: contracted rows of queries and points; limits; groups of each row, and their count; each row's own point
    queries_ptr, rows_ptr, limits_ptr, groups_ptr, found_ptr, own_ptr,
    # outputs, int32: lists of members [row][members_room], which may have entries already, and their lengths [row]
    members_ptr, near_ptr,
    # shapes
    p, units, n, room, members_room,
    # constants
    HAS_OWN: tl.constexpr,
    GROUP: tl.constexpr,
    POINT_TILE: tl.constexpr,
    UNIT: tl.constexpr,
    CHUNK: tl.constexpr,
    COLUMNS: tl.constexpr,
    PARTS: tl.constexpr,
):  # fmt: skip
    """Append to a row's list the members of its groups whose contracted rows are within the row's limit."""
    row = (tl.program_id(0) // PARTS).to(tl.int64)
    found = tl.load(found_ptr + row)
    limit = tl.load(limits_ptr + row)
    total = tl.load(near_ptr + row)
    first = (tl.program_id(0) % PARTS) * CHUNK
    for start in tl.range(first, tl.where(found > room, 0, found) * GROUP, PARTS * CHUNK):
        numbers = start + tl.arange(0, CHUNK)
        ids, present = candidates(groups_ptr, own_ptr, row, numbers, found, room, n, HAS_OWN, GROUP, POINT_TILE)
        x_ptrs = rows_ptr + ids.to(tl.int64) * (units.to(tl.int64) * UNIT)
        square = tl.zeros([CHUNK], tl.float32)
        if rows_ptr.dtype.element_ty == tl.int8:  # codes, in which points beyond range are marked
            present = present & (tl.load(x_ptrs, mask=present, other=0) != MARK)
        for at in tl.range(0, p, COLUMNS):
            column = at + tl.arange(0, COLUMNS)
            q = tl.load(queries_ptr + row * p + column, mask=column < p, other=0.0)[None, :]  # [1, COLUMNS]
            x = tl.load(x_ptrs[:, None] + column[None, :], mask=present[:, None] & (column < p)[None, :], other=0).to(
                tl.float32
            )  # [CHUNK, COLUMNS]
            square += tl.sum((x - q) * (x - q), 1)
            present = present & (square <= limit)  # further columns are not read for points above the limit
        near = present.to(tl.int32)
        if PARTS > 1:
            total = tl.atomic_add(near_ptr + row, tl.sum(near, 0), sem="relaxed")
        place = total + tl.cumsum(near, 0) - near
        tl.store(members_ptr + row * members_room + place, ids, mask=(near > 0) & (place < members_room))
        if PARTS == 1:
            total += tl.sum(near, 0)
    if PARTS == 1:
        tl.store(near_ptr + row, total)
