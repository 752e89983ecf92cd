"""The screen of codes (rows/codes.py): products include squared lengths, and are integers until minima are taken.

    score(row, column) = 2 offset - 2 <q, x>         q, x of WIDTH bytes: codes, and the columns of the squared length
    lowest(row, group) = min over its columns        from the largest product, which alone is converted to float32

The tiles are those of kernels/screens/all_minima.py. There, each pair takes a conversion, a product and a sum, and for
such short rows these take longer than the matrix units. Here, a pair takes one maximum.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.exact.cuda.kernels.screens.record import append_below, write_all


@triton.jit
def lowest_folded(sums, offset, ROWS: tl.constexpr, COLUMNS: tl.constexpr, GROUP: tl.constexpr):
    """Reduce products [ROWS, COLUMNS] to the lowest scores of groups, in order: [ROWS, COLUMNS / (4 GROUP), 4]."""
    tl.static_assert(GROUP % 2 == 0)
    tl.static_assert(COLUMNS % (4 * GROUP) == 0)
    RUNS: tl.constexpr = GROUP // 2
    largest = tl.max(tl.max(tl.reshape(sums, (ROWS, COLUMNS // (8 * RUNS), RUNS, 4, 2)), 4), 2)
    return ((offset - largest) * 2).to(tl.float32)


@triton.jit(
    do_not_specialize=[
        "m",
        "tiles",
        "groups",
        "minima_stride",
        "segments",
        "room",
        "row_tiles",
        "tiles_per_program",
        "offset",
    ]
)
def screen_folded_kernel(
    queries, points, thresholds_ptr,
    minima_ptr, values_ptr, entries_ptr, counts_ptr,
    m, tiles, groups, minima_stride, segments, room, row_tiles, tiles_per_program, offset,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, GROUP: tl.constexpr,
    LISTED: tl.constexpr, DENSE: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    # Consecutive programs, which run at the same time, have different queries and share points.
    first_row = (tl.program_id(0) % row_tiles) * ROWS
    begin = (tl.program_id(0) // row_tiles) * tiles_per_program
    end = tl.minimum(begin + tiles_per_program, tiles)
    row = first_row + tl.arange(0, ROWS)
    present = row < m
    q = queries.load([first_row, 0])  # [ROWS, WIDTH]
    if not DENSE:
        thresholds = tl.load(thresholds_ptr + row, mask=present, other=-float("inf"))
        # A row's list has `segments` segments of `room` slots; this program fills four of the segments.
        segment = (tl.program_id(0) // row_tiles) * 4 + tl.arange(0, 4)[None, :]
        starts = (tl.arange(0, ROWS)[:, None] * segments + segment) * room
        values_ptr += first_row.to(tl.int64) * segments * room
        entries_ptr += first_row.to(tl.int64) * segments * room
        counts = tl.zeros((ROWS, 4), tl.int32)
    for number in tl.range(begin, end, num_stages=STAGES):
        tile = tl.cast(number, tl.int32)
        sums = tl.dot(q, points.load([tile * COLUMNS, 0]).T, out_dtype=tl.int32)  # [ROWS, COLUMNS]
        lowest = lowest_folded(sums, offset, ROWS, COLUMNS, GROUP)
        if DENSE:
            write_all(
                lowest, row, present, tile * (COLUMNS // GROUP), groups, minima_ptr, minima_stride,
                ROWS, COLUMNS, GROUP,
            )  # fmt: skip
        else:
            counts = append_below(
                lowest, counts, thresholds, tile * (COLUMNS // LISTED), values_ptr, entries_ptr, starts, room,
                ROWS, COLUMNS, GROUP, LISTED,
            )  # fmt: skip
    if not DENSE:
        tl.store(counts_ptr + row[:, None] * segments + segment, counts, mask=present[:, None])
