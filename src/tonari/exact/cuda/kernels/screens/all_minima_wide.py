"""The screen for wide rows: queries and points are streamed in steps of STEP columns.

    tile of queries   ROWS x STEP float16, or int8, tile of points COLUMNS x STEP, through `STAGES` buffers each
    accumulator       ROWS x COLUMNS float32, or int32; a block of COLUMNS points is COLUMNS / POINT_TILE tiles

The loops over columns and over blocks are flattened into one, so that the loads of the next block are in flight while
the minima of this one are taken.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.exact.cuda.kernels.screens.record import append_below, lowest_scores, scores_of, write_all


@triton.jit(do_not_specialize=["m", "n", "segments", "room", "row_tiles", "blocks", "blocks_per_program"])
def screen_wide_kernel(
    queries, points, low_ptr, e1_ptr, e2_ptr, norm_ptr, rest_ptr, thresholds_ptr,
    minima_ptr, values_ptr, entries_ptr, counts_ptr,
    m, n, width, groups, minima_stride, segments, room, row_tiles, blocks, blocks_per_program,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, STEP: tl.constexpr, POINT_TILE: tl.constexpr, GROUP: tl.constexpr,
    LISTED: tl.constexpr, DENSE: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    WHOLE: tl.constexpr = queries.dtype == tl.int8
    SUMS: tl.constexpr = tl.int32 if WHOLE else tl.float32
    tl.static_assert(COLUMNS % POINT_TILE == 0, "a block is whole tiles of points")
    first_row = (tl.program_id(0) % row_tiles) * ROWS
    begin = (tl.program_id(0) // row_tiles) * blocks_per_program
    end = tl.minimum(begin + blocks_per_program, blocks)
    row = first_row + tl.arange(0, ROWS)
    column = tl.arange(0, COLUMNS)
    present = row < m
    norm = tl.load(norm_ptr + row, mask=present, other=0.0)
    rest = tl.load(rest_ptr + row, mask=present, other=0.0)
    if not DENSE:
        thresholds = tl.load(thresholds_ptr + row, mask=present, other=-float("inf"))
        # A row's list has `segments` segments of `room` slots; this program fills four of the segments.
        segment = (tl.program_id(0) // row_tiles) * 4 + tl.arange(0, 4)[None, :]
        starts = (tl.arange(0, ROWS)[:, None] * segments + segment) * room
        values_ptr += first_row.to(tl.int64) * segments * room
        entries_ptr += first_row.to(tl.int64) * segments * room
        counts = tl.zeros((ROWS, 4), tl.int32)
    for number in tl.range(begin, end, flatten=True):
        block = tl.cast(number, tl.int32)
        sums = tl.zeros((ROWS, COLUMNS), SUMS)
        for at in tl.range(0, width, STEP, num_stages=STAGES):
            first_column = tl.cast(at, tl.int32)
            q, x = queries.load([first_row, first_column]), points.load([block * COLUMNS, first_column])
            sums = tl.dot(q, x.T, sums, out_dtype=SUMS)
        point = block * COLUMNS + column
        scores = scores_of(sums) + tl.load(low_ptr + point, mask=point < n, other=float("inf"))[None, :]
        # All tiles of the block share one error bound, computed from their largest e1 and their largest e2.
        tile = block * (COLUMNS // POINT_TILE) + tl.arange(0, COLUMNS // POINT_TILE)
        tile_present = tile * POINT_TILE < n
        e1 = tl.max(tl.load(e1_ptr + tile, mask=tile_present, other=0.0), 0)
        e2 = tl.max(tl.load(e2_ptr + tile, mask=tile_present, other=0.0), 0)
        lowest = lowest_scores(scores, norm, rest, e1, e2, ROWS, COLUMNS, GROUP, WHOLE)
        if DENSE:
            write_all(
                lowest, row, present, block * (COLUMNS // GROUP), groups, minima_ptr, minima_stride,
                ROWS, COLUMNS, GROUP,
            )  # fmt: skip
        else:
            counts = append_below(
                lowest, counts, thresholds, block * (COLUMNS // LISTED), values_ptr, entries_ptr, starts, room,
                ROWS, COLUMNS, GROUP, LISTED,
            )  # fmt: skip
    if not DENSE:
        tl.store(counts_ptr + row[:, None] * segments + segment, counts, mask=present[:, None])
