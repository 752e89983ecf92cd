"""Split the lowest listed groups of each row into their marked parts; one program per row.

    entry                 = 16 group + mask        bit b of the mask: part b of the group may contain a candidate
    position of a part    = number of marked parts of groups with lower minima
                            + number of marked parts before it in its own group

The kernel also writes a lower bound on the scores of all points that are not in a written part. It is the smallest of
three numbers: the threshold, for groups that are not listed; the next minimum, for groups after the `width` lowest; and
the minimum of the first group whose parts do not fit.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.exact.cuda.kernels.rows.groups import part_number


@triton.jit(do_not_specialize=["width", "capacity", "segments", "segment_room", "room"])
def chosen_kernel(
    values_ptr, indices_ptr, entries_ptr, counts_ptr, thresholds_ptr, groups_ptr, following_ptr,
    width, capacity, segments, segment_room, room,
    WIDTH: tl.constexpr, SEGMENTS: tl.constexpr, ROOM: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, WIDTH)
    value = tl.load(values_ptr + row * (width + 1) + at, mask=at < width, other=float("inf"))  # [WIDTH]
    present = value < float("inf")
    index = tl.load(indices_ptr + row * (width + 1) + at, mask=present, other=0)
    entry = tl.load(entries_ptr + row * capacity + index, mask=present, other=0)
    mask = entry & 15
    wanted = (mask & 1) + ((mask >> 1) & 1) + ((mask >> 2) & 1) + (mask >> 3)
    end = tl.cumsum(wanted, 0)
    slot = tl.arange(0, ROOM)
    tl.store(groups_ptr + row * room + slot, -1, mask=(slot >= tl.max(end, 0)) & (slot < room))
    group = entry >> 4
    place = end - wanted
    for part in tl.static_range(4):
        bit = (mask >> part) & 1
        number = part_number(group, part)
        tl.store(groups_ptr + row * room + place, number, mask=(bit > 0) & (place < room))
        place += bit
    squeezed = tl.min(tl.where(end > room, value, float("inf")), 0)
    following = tl.minimum(tl.load(values_ptr + row * (width + 1) + width), tl.load(thresholds_ptr + row))
    segment = tl.arange(0, SEGMENTS)
    counts = tl.load(counts_ptr + row * segments + segment, mask=segment < segments, other=0)  # [SEGMENTS]
    cut = tl.max(counts, 0) > segment_room
    tl.store(following_ptr + row, tl.where(cut, -float("inf"), tl.minimum(following, squeezed)))
