"""The screen for wide rows on Hopper: queries stay in shared memory, and points are streamed.

    tile of rows      ROWS x (HELD STEP) float16, or int8, loaded once
    tile of points    COLUMNS x STEP, through STAGES buffers by TMA
    accumulator       ROWS x COLUMNS float32, or int32, of one warpgroup: a thread has 32 columns of its two rows each

A program consists of a single warpgroup, which never waits for another one; while it computes minima, other programs on
the same multiprocessor continue with their products. While a product is in progress, the buffers of the previous one
are refilled, also from one tile of points to the next. The terms of a tile's points are passed through shared memory,
since they would take 32 registers of each thread. All values keep the layout of the accumulator until they are stored
(kernels/screens/all_minima_hopper.py).

With MIRRORED the rows are a batch of a graph, and kernels/screens/mirrored.py explains the output.
"""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, warpgroup_mma, warpgroup_mma_wait

from tonari.exact.cuda.kernels.screens.all_minima_hopper import (
    barrier,
    load_tile,
    lowest_parts,
    never_rounded,
    scores_of,
    take,
)


@gluon.jit
def note_near(
    scores, limits, noted, starts, first_group, nearest_ptr, groups_ptr, masks_ptr,
    ROWS: gl.constexpr, COLUMNS: gl.constexpr, WHOLE: gl.constexpr,
):  # fmt: skip
    """Record, for each row, the points with scores at or below their limits; return the new counts [ROWS, 4]."""
    mma: gl.constexpr = scores.type.layout
    column = gl.arange(0, COLUMNS, layout=gl.SliceLayout(0, mma))
    bits = gl.full([COLUMNS], 1, gl.int32, layout=gl.SliceLayout(0, mma)) << (column // 8 * 2 + column % 2)
    near = scores <= limits[None, :]
    masks = gl.where(near, bits[None, :], 0).reshape([ROWS, COLUMNS // 8, 4, 2])
    mask = gl.sum(gl.sum(masks, 3), 1)
    nearest = gl.min(gl.min(gl.where(near, scores, float("inf")).reshape([ROWS, COLUMNS // 8, 4, 2]), 3), 1)
    nearest = never_rounded(nearest, WHOLE)
    layout: gl.constexpr = noted.type.layout
    mask = gl.convert_layout(mask, layout, assert_trivial=True)
    nearest = gl.convert_layout(nearest, layout, assert_trivial=True)
    lane = gl.arange(0, 4, layout=gl.SliceLayout(0, layout))
    hit = mask != 0
    at = starts + noted
    gl.store(nearest_ptr + at, nearest, mask=hit)
    gl.store(groups_ptr + at, first_group + lane[None, :] + gl.zeros_like(mask), mask=hit)
    gl.store(masks_ptr + at, mask, mask=hit)
    return noted + hit.to(gl.int32)


@gluon.jit
def after(block, column, width):
    """Return the block and the column of the next load: at the end of a block, the first column of the next block."""
    ends = column == width
    return gl.where(ends, block + 1, block), gl.where(ends, 0, column)


@gluon.jit(do_not_specialize=["first", "m", "segments", "room", "row_tiles", "blocks", "blocks_per_program"])
def screen_held_kernel(
    # inputs: the packed rows of the batch, all packed points, and the terms of the rows from row `first` on
    queries, shift_ptr, points, low_ptr, e1_ptr, e2_ptr, norm_ptr, rest_ptr, thresholds_ptr, limits_ptr,
    # outputs: the lists of the batch's rows; the points of later batches to which these rows are near
    values_ptr, entries_ptr, counts_ptr, nearest_ptr, groups_ptr, masks_ptr, noted_ptr,
    # shapes
    first, m, width, segments, room, row_tiles, blocks, blocks_per_program,
    # constants
    ROWS: gl.constexpr, COLUMNS: gl.constexpr, STEP: gl.constexpr, STAGES: gl.constexpr, HELD: gl.constexpr,
    WARPS: gl.constexpr, MIRRORED: gl.constexpr,
):  # fmt: skip
    ELEMENT: gl.constexpr = queries.dtype
    SIZE: gl.constexpr = ELEMENT.primitive_bitwidth // 8
    WHOLE: gl.constexpr = gl.int8 == ELEMENT
    SUMS: gl.constexpr = gl.int32 if WHOLE else gl.float32
    gl.static_assert(COLUMNS == 128, "a thread has 32 columns of a row, one for each bit")
    mma: gl.constexpr = gl.NVMMADistributedLayout(
        version=[3, 0], warps_per_cta=[WARPS, 1], instr_shape=[16, COLUMNS, 32 // SIZE]
    )
    first_row = (gl.program_id(0) % row_tiles) * ROWS
    part = gl.program_id(0) // row_tiles
    begin = first // COLUMNS + part * blocks_per_program
    end = gl.minimum(begin + blocks_per_program, blocks)

    q = gl.allocate_shared_memory(ELEMENT, [HELD, ROWS, STEP], queries.layout)
    x = gl.allocate_shared_memory(ELEMENT, [STAGES, COLUMNS, STEP], points.layout)
    loaded = gl.allocate_shared_memory(gl.int64, [STAGES + 1, 1], mbarrier.MBarrierLayout())
    for stage in gl.static_range(STAGES + 1):
        mbarrier.init(loaded.index(stage), count=1)
    mbarrier.expect(loaded.index(STAGES), ROWS * STEP * HELD * SIZE)
    for held in gl.static_range(HELD):
        load_tile(queries, [first_row, held * STEP], loaded.index(STAGES), q.index(held))
    ahead_block, ahead_column = begin, 0
    for stage in gl.static_range(STAGES):
        present = ahead_block < end
        mbarrier.expect(loaded.index(stage), COLUMNS * STEP * SIZE, pred=present)
        load_tile(points, [ahead_block * COLUMNS, ahead_column], loaded.index(stage), x.index(stage), pred=present)
        ahead_block, ahead_column = after(ahead_block, ahead_column + STEP, width)

    sums = gl.zeros([ROWS, COLUMNS], SUMS, layout=mma)
    # The layout of a tile's minima determines the layouts of rows, columns and lanes.
    parts: gl.constexpr = lowest_parts(scores_of(sums), COLUMNS, ROWS).type.layout
    by_row: gl.constexpr = gl.SliceLayout(1, gl.SliceLayout(2, parts))
    by_lane: gl.constexpr = gl.SliceLayout(1, parts)
    by_column: gl.constexpr = gl.SliceLayout(0, mma)
    flat = gl.arange(0, COLUMNS, layout=gl.BlockedLayout([1], [32], [WARPS], [0]))
    row = first_row + gl.arange(0, ROWS, layout=by_row)
    norm = gl.load(norm_ptr + first + row, mask=row < m, other=0.0)
    rest = gl.load(rest_ptr + first + row, mask=row < m, other=0.0)
    thresholds = gl.load(thresholds_ptr + first + row, mask=row < m, other=-float("inf"))
    segment = 4 * part + gl.arange(0, 4, layout=gl.SliceLayout(0, by_lane))
    local = gl.arange(0, ROWS, layout=gl.SliceLayout(1, by_lane))
    places = local[:, None] * segments + segment[None, :]
    values_ptr += first_row.to(gl.int64) * segments * room
    entries_ptr += first_row.to(gl.int64) * segments * room
    counts = gl.zeros([ROWS, 4], gl.int32, layout=by_lane)
    if MIRRORED:
        # A row that can be packed as a point, but not as a query, consists of zeros here. It is listed for all points.
        mine = first_row + gl.arange(0, ROWS, layout=gl.SliceLayout(1, mma))
        low_of_row = gl.load(low_ptr + first + mine, mask=mine < m, other=float("inf"))
        usable = gl.load(shift_ptr + mine, mask=mine < m, other=0.0) < float("inf")
        low_of_row = gl.where(usable, low_of_row, -1e30)
        nearest_ptr += first_row.to(gl.int64) * segments * blocks_per_program
        groups_ptr += first_row.to(gl.int64) * segments * blocks_per_program
        masks_ptr += first_row.to(gl.int64) * segments * blocks_per_program
        noted = gl.zeros([ROWS, 4], gl.int32, layout=by_lane)

    mbarrier.wait(loaded.index(STAGES), 0)
    step = 0
    for block in range(begin, end):
        low_here = gl.load(low_ptr + block * COLUMNS + flat)
        if MIRRORED:
            limits_here = gl.load(limits_ptr + block * COLUMNS + flat)
        e1 = gl.load(e1_ptr + block)
        e2 = gl.load(e2_ptr + block)
        for at in range(0, width, STEP):
            here = step % STAGES
            mbarrier.wait(loaded.index(here), (step // STAGES) & 1)
            sums = warpgroup_mma(
                q.index(at // STEP), x.index(here).permute((1, 0)), sums, use_acc=at > 0, is_async=True
            )
            sums = warpgroup_mma_wait(1, deps=[sums])
            barrier()  # all warps have finished the previous step
            before = (step + STAGES - 1) % STAGES
            refill = (step > 0) & (ahead_block < end)
            mbarrier.expect(loaded.index(before), COLUMNS * STEP * SIZE, pred=refill)
            load_tile(points, [ahead_block * COLUMNS, ahead_column], loaded.index(before), x.index(before), pred=refill)
            ahead_block, ahead_column = after(ahead_block, ahead_column + gl.where(step > 0, STEP, 0), width)
            step += 1
        low = gl.convert_layout(low_here, by_column)
        sums = warpgroup_mma_wait(0, deps=[sums])
        scores = scores_of(sums)
        counts = take(
            scores, low, norm, rest, e1, e2, thresholds, counts, places * room, block * (COLUMNS // 32),
            values_ptr, entries_ptr, room, ROWS, COLUMNS, WHOLE,
        )  # fmt: skip
        if MIRRORED:
            limits = gl.convert_layout(limits_here, by_column)
            if WHOLE:  # squared distances
                scores += low[None, :]
            noted = note_near(
                scores + low_of_row[:, None], limits, noted, places * blocks_per_program, block * (COLUMNS // 32),
                nearest_ptr, groups_ptr, masks_ptr, ROWS, COLUMNS, WHOLE,
            )  # fmt: skip
    for stage in gl.static_range(STAGES + 1):
        mbarrier.invalidate(loaded.index(stage))

    at_row = first_row + local[:, None]
    gl.store(counts_ptr + at_row * segments + segment[None, :], counts, mask=at_row < m)
    if MIRRORED:
        gl.store(noted_ptr + at_row * segments + segment[None, :], noted, mask=at_row < m)
