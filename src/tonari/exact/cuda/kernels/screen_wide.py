"""The screen for wide rows: both operands are streamed, STEP columns at a time.

    tile of queries   BM x STEP float16, tile of points BN x STEP, through `STAGES` buffers each
    accumulator       BM x BN float32; a block of BN columns is BN / POINT_TILE tiles

The loop over columns and the loop over tiles run as one, so that the next tile's loads are under way while this one's
minima are taken.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.exact.cuda.kernels.record import append_below, lowest_scores, write_all


@triton.jit
def screen_wide_kernel(
    queries, points, low_ptr, e1_ptr, e2_ptr, norm_ptr, rest_ptr, thresholds_ptr,
    minima_ptr, values_ptr, entries_ptr, counts_ptr,
    m, n, width, groups, minima_stride, segments, room, row_tiles, blocks, blocks_per_program,
    BM: tl.constexpr, BN: tl.constexpr, STEP: tl.constexpr, POINT_TILE: tl.constexpr, GROUP: tl.constexpr,
    LISTED: tl.constexpr, DENSE: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    first_row = (tl.program_id(0) % row_tiles) * BM
    begin = (tl.program_id(0) // row_tiles) * blocks_per_program
    end = tl.minimum(begin + blocks_per_program, blocks)
    rows = first_row + tl.arange(0, BM)
    columns = tl.arange(0, BN)
    real = rows < m
    norm = tl.load(norm_ptr + rows, mask=real, other=0.0)
    rest = tl.load(rest_ptr + rows, mask=real, other=0.0)
    if not DENSE:
        thresholds = tl.load(thresholds_ptr + rows, mask=real, other=-float("inf"))
        # The list of a row is `segments` times `room` entries; four of its segments are this program's.
        segment = (tl.program_id(0) // row_tiles) * 4 + tl.arange(0, 4)[None, :]
        starts = (tl.arange(0, BM)[:, None] * segments + segment) * room
        values_ptr += first_row.to(tl.int64) * segments * room
        entries_ptr += first_row.to(tl.int64) * segments * room
        counts = tl.zeros((BM, 4), tl.int32)
    for number in tl.range(begin, end, flatten=True):
        block = tl.cast(number, tl.int32)
        scores = tl.zeros((BM, BN), tl.float32)
        for at in tl.range(0, width, STEP, num_stages=STAGES):
            column = tl.cast(at, tl.int32)
            scores = tl.dot(queries.load([first_row, column]), points.load([block * BN, column]).T, scores)
        here = block * BN + columns
        scores = scores + tl.load(low_ptr + here, mask=here < n, other=float("inf"))[None, :]
        # One bound for the block's tiles: the larger of each.
        tile = block * (BN // POINT_TILE) + tl.arange(0, BN // POINT_TILE)
        there = tile * POINT_TILE < n
        e1 = tl.max(tl.load(e1_ptr + tile, mask=there, other=0.0), 0)
        e2 = tl.max(tl.load(e2_ptr + tile, mask=there, other=0.0), 0)
        lowest = lowest_scores(scores, norm, rest, e1, e2, BM, BN, GROUP)
        if DENSE:
            write_all(lowest, rows, real, block * (BN // GROUP), groups, minima_ptr, minima_stride, BM, BN, GROUP)
        else:
            counts = append_below(
                lowest, counts, thresholds, block * (BN // LISTED), values_ptr, entries_ptr, starts, room,
                BM, BN, GROUP, LISTED,
            )  # fmt: skip
    if not DENSE:
        tl.store(counts_ptr + rows[:, None] * segments + segment, counts, mask=real[:, None])
