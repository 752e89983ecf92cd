"""The screen of a graph: one product of a tile of rows and a tile of points gives the scores in both directions.

    s = -2 <x^(row), x^(point)>       shared by the pairs (row, point) and (point, row)
    lower bound of (row, point)       s + low(point) - (N(row) e1 + r(row) e2)          e of the point's tile
    lower bound of (point, row)       s + low(row) - (N(point) e1 + r(point) e2)        e of the row's tiles

In int8, the score for the direction (point, row) is s + low(row) + low(point) (kernels/screens/mirrored_note.py).

    tile of rows      ROWS x STEP float16, or int8, tile of points COLUMNS x STEP, through `STAGES` buffers each
    accumulator       ROWS x COLUMNS float32, or int32

The rows are a batch; the points are the batch itself and all later batches, so each product of two batches is computed
once. In the direction (row, point), points are appended to the rows' lists (record.py). In the direction (point, row),
a row is a candidate of a point of a later batch if its score is at or below the point's `limit`, which is the threshold
plus the error bound (kernels/screens/mirrored_note.py). The row is then noted. Notes are stored by row, so that no
operation is atomic: for each run of LISTED points of a thread, a note has a mask of the points whose limit the row's
score does not exceed, and the lowest of these scores. A thread has one slot per tile, so notes are never lost.
kernels/screens/mirrored_note.py transfers the notes to lists of the points.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.exact.cuda.kernels.screens.record import append_below, lowest_scores, never_rounded, scores_of

_ALWAYS = tl.constexpr(-1e30)  # `low` of a point beyond range


@triton.jit
def note_near(
    scores, limits, noted, starts, first_group, nearest_ptr, groups_ptr, masks_ptr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, LISTED: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    """Record, for each row, the points with scores at or below their limits; return the new counts [ROWS, 4]."""
    tl.static_assert(COLUMNS == 4 * LISTED and LISTED == 32, "a thread holds 32 columns of a row, one for each bit")
    column = tl.arange(0, COLUMNS)
    bits = tl.full((COLUMNS,), 1, tl.int32) << (column // 8 * 2 + column % 2)
    near = scores <= limits[None, :]
    masks = tl.reshape(tl.where(near, bits[None, :], 0), (ROWS, COLUMNS // 8, 4, 2))
    mask = tl.sum(tl.sum(masks, 3), 1)  # [ROWS, 4]
    kept = tl.reshape(tl.where(near, scores, float("inf")), (ROWS, COLUMNS // 8, 4, 2))
    nearest = never_rounded(tl.min(tl.min(kept, 3), 1), WHOLE)
    hit = mask != 0
    at = starts + noted
    tl.store(nearest_ptr + at, nearest, mask=hit)
    tl.store(groups_ptr + at, first_group + tl.arange(0, 4)[None, :] + tl.zeros_like(mask), mask=hit)
    tl.store(masks_ptr + at, mask, mask=hit)
    return noted + hit.to(tl.int32)


@triton.jit(do_not_specialize=["first", "m", "segments", "room", "row_tiles", "blocks", "blocks_per_program"])
def screen_mirrored_kernel(
    # inputs: the packed rows of the batch, all packed points, and the terms of all points as points and as queries
    queries, shift_ptr, points, low_ptr, e1_ptr, e2_ptr, norm_ptr, rest_ptr, thresholds_ptr, limits_ptr,
    # outputs: the lists of the batch's rows; the points of later batches to which these rows are near
    values_ptr, entries_ptr, counts_ptr, nearest_ptr, groups_ptr, masks_ptr, noted_ptr,
    # shapes: the batch is rows `first` to `first + m`
    first, m, width, segments, room, row_tiles, blocks, blocks_per_program,
    # constants
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, STEP: tl.constexpr, GROUP: tl.constexpr, LISTED: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    WHOLE: tl.constexpr = queries.dtype == tl.int8
    SUMS: tl.constexpr = tl.int32 if WHOLE else tl.float32
    first_row = (tl.program_id(0) % row_tiles) * ROWS
    part = tl.program_id(0) // row_tiles
    begin = first // COLUMNS + part * blocks_per_program
    end = tl.minimum(begin + blocks_per_program, blocks)
    column = tl.arange(0, COLUMNS)
    row = first_row + tl.arange(0, ROWS)
    present = row < m
    norm = tl.load(norm_ptr + first + row, mask=present, other=0.0)
    rest = tl.load(rest_ptr + first + row, mask=present, other=0.0)
    thresholds = tl.load(thresholds_ptr + first + row, mask=present, other=-float("inf"))
    # A row that can be packed as a point, but not as a query, consists of zeros here. It is listed for all points.
    low_of_row = tl.load(low_ptr + first + row, mask=present, other=float("inf"))
    low_of_row = tl.where(tl.load(shift_ptr + row, mask=present, other=0.0) < float("inf"), low_of_row, _ALWAYS)
    # A row's lists each consist of `segments` segments, four of which are filled by this program.
    segment = part * 4 + tl.arange(0, 4)[None, :]
    places = tl.arange(0, ROWS)[:, None] * segments + segment
    values_ptr += first_row.to(tl.int64) * segments * room
    entries_ptr += first_row.to(tl.int64) * segments * room
    nearest_ptr += first_row.to(tl.int64) * segments * blocks_per_program
    groups_ptr += first_row.to(tl.int64) * segments * blocks_per_program
    masks_ptr += first_row.to(tl.int64) * segments * blocks_per_program
    counts = tl.zeros((ROWS, 4), tl.int32)
    noted = tl.zeros((ROWS, 4), tl.int32)
    for number in tl.range(begin, end, flatten=True):
        block = tl.cast(number, tl.int32)
        sums = tl.zeros((ROWS, COLUMNS), SUMS)
        for at in tl.range(0, width, STEP, num_stages=STAGES):
            first_column = tl.cast(at, tl.int32)
            q, x = queries.load([first_row, first_column]), points.load([block * COLUMNS, first_column])
            sums = tl.dot(q, x.T, sums, out_dtype=SUMS)
        scores = scores_of(sums)
        point = block * COLUMNS + column
        low = tl.load(low_ptr + point)
        e1, e2 = tl.load(e1_ptr + block), tl.load(e2_ptr + block)
        lowest = lowest_scores(scores + low[None, :], norm, rest, e1, e2, ROWS, COLUMNS, GROUP, WHOLE)
        counts = append_below(
            lowest, counts, thresholds, block * 4, values_ptr, entries_ptr, places * room, room,
            ROWS, COLUMNS, GROUP, LISTED,
        )  # fmt: skip
        if WHOLE:  # squared distances
            scores += low[None, :]
        noted = note_near(
            scores + low_of_row[:, None], tl.load(limits_ptr + point), noted, places * blocks_per_program, block * 4,
            nearest_ptr, groups_ptr, masks_ptr, ROWS, COLUMNS, LISTED, WHOLE,
        )  # fmt: skip
    tl.store(counts_ptr + row[:, None] * segments + segment, counts, mask=present[:, None])
    tl.store(noted_ptr + row[:, None] * segments + segment, noted, mask=present[:, None])
