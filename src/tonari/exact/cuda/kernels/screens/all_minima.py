"""The screen for queries that stay in shared memory: a program compares a tile of queries with some tiles of points.

    tile of queries   ROWS x WIDTH float16, or int8, loaded once
    tile of points    COLUMNS x WIDTH, a POINT_TILE, streamed through `STAGES` buffers by TMA
    accumulator       ROWS x COLUMNS float32, which starts at the points' `low`, or int32; only minima leave the kernel

WIDTH is a power of two, or WIDTH and MORE are two powers of two that add up to the packed width (96 = 64 + 32). The
method is from tang2015, section III-E: the bottom level of its hierarchy, the minima of groups, is computed while the
scores are in registers.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.exact.cuda.kernels.screens.record import append_below, lowest_scores, scores_of, write_all


@triton.jit(
    do_not_specialize=["m", "tiles", "groups", "minima_stride", "segments", "room", "row_tiles", "tiles_per_program"]
)
def screen_kernel(
    queries, queries_more, points, points_more, low_ptr, e1_ptr, e2_ptr, norm_ptr, rest_ptr, thresholds_ptr,
    minima_ptr, values_ptr, entries_ptr, counts_ptr,
    m, tiles, groups, minima_stride, segments, room, row_tiles, tiles_per_program,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, WIDTH: tl.constexpr, MORE: tl.constexpr, GROUP: tl.constexpr,
    LISTED: tl.constexpr, DENSE: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    WHOLE: tl.constexpr = queries.dtype == tl.int8
    SUMS: tl.constexpr = tl.int32 if WHOLE else tl.float32
    # Consecutive programs, which run at the same time, have different queries and share points.
    first_row = (tl.program_id(0) % row_tiles) * ROWS
    begin = (tl.program_id(0) // row_tiles) * tiles_per_program
    end = tl.minimum(begin + tiles_per_program, tiles)
    row = first_row + tl.arange(0, ROWS)
    column = tl.arange(0, COLUMNS)
    present = row < m
    q = queries.load([first_row, 0])  # [ROWS, WIDTH]
    if MORE:
        q_more = queries_more.load([first_row, WIDTH])  # [ROWS, MORE]
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
    for number in tl.range(begin, end, num_stages=STAGES):
        tile = tl.cast(number, tl.int32)
        sums = tl.dot(q, points.load([tile * COLUMNS, 0]).T, out_dtype=SUMS)  # [ROWS, COLUMNS]
        if MORE:
            sums = tl.dot(q_more, points_more.load([tile * COLUMNS, WIDTH]).T, sums, out_dtype=SUMS)
        scores = scores_of(sums) + tl.load(low_ptr + tile * COLUMNS + column)[None, :]
        e1, e2 = tl.load(e1_ptr + tile), tl.load(e2_ptr + tile)
        lowest = lowest_scores(scores, norm, rest, e1, e2, ROWS, COLUMNS, GROUP, WHOLE)
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
