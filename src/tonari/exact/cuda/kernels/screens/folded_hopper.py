"""The screen of folded codes on Hopper: the matrix units do not wait for the maxima.

The schedule is that of kernels/screens/all_minima_hopper.py, and the scores are those of kernels/screens/folded.py:
while the product of one half of the queries runs, the maxima of the other half are taken. All values keep the layout of
the accumulator until they are stored, so that threads exchange no data.
"""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, warpgroup_mma, warpgroup_mma_wait

from tonari.exact.cuda.kernels.screens.all_minima_hopper import append, barrier, load_tile


@gluon.jit
def largest_parts(sums, COLUMNS: gl.constexpr, HALF: gl.constexpr):
    """Reduce products [HALF, COLUMNS] to maxima [HALF, parts of 8, 4 lanes]."""
    sums = sums.reshape([HALF, COLUMNS // 32, 4, 4, 2])
    return gl.max(gl.max(sums, 4), 2)


@gluon.jit
def take(
    sums, offset, thresholds, counts, starts, first_group,
    values_ptr, entries_ptr, room, HALF: gl.constexpr, COLUMNS: gl.constexpr,
):  # fmt: skip
    """Append a tile's groups at or below the thresholds; return the new counts."""
    lowest = ((offset - largest_parts(sums, COLUMNS, HALF)) * 2).to(gl.float32)
    return append(lowest, thresholds, counts, starts, first_group, values_ptr, entries_ptr, room, COLUMNS)


@gluon.jit(do_not_specialize=["m", "tiles", "segments", "room", "row_tiles", "tiles_per_program", "offset"])
def screen_folded_hopper_kernel(
    queries, points, thresholds_ptr,
    values_ptr, entries_ptr, counts_ptr,
    m, tiles, segments, room, row_tiles, tiles_per_program, offset,
    HALF: gl.constexpr, COLUMNS: gl.constexpr, WIDTH: gl.constexpr, STAGES: gl.constexpr,
    TILES: gl.constexpr,
):  # fmt: skip
    gl.static_assert(COLUMNS % 32 == 0, "a part is 32 columns, eight for each of four lanes")
    mma: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[8, 1], instr_shape=[16, COLUMNS, 32])
    first_row = (gl.program_id(0) % row_tiles) * (2 * HALF)
    part = gl.program_id(0) // row_tiles
    begin = part * tiles_per_program
    end = begin + tiles_per_program  # a multiple of TILES; tiles beyond the last are zeros, whose groups have no points

    q = gl.allocate_shared_memory(gl.int8, [2, HALF, WIDTH], queries.layout)
    x = gl.allocate_shared_memory(gl.int8, [STAGES, COLUMNS, WIDTH], points.layout)
    loaded = gl.allocate_shared_memory(gl.int64, [STAGES + 1, 1], mbarrier.MBarrierLayout())
    for stage in gl.static_range(STAGES + 1):
        mbarrier.init(loaded.index(stage), count=1)
    mbarrier.expect(loaded.index(STAGES), 2 * HALF * WIDTH)
    load_tile(queries, [first_row, 0], loaded.index(STAGES), q.index(0))
    load_tile(queries, [first_row + HALF, 0], loaded.index(STAGES), q.index(1))
    for stage in gl.static_range(STAGES):
        present = begin + stage < end
        mbarrier.expect(loaded.index(stage), COLUMNS * WIDTH, pred=present)
        load_tile(points, [(begin + stage) * COLUMNS, 0], loaded.index(stage), x.index(stage), pred=present)

    a = gl.zeros([HALF, COLUMNS], gl.int32, layout=mma)
    b = gl.zeros([HALF, COLUMNS], gl.int32, layout=mma)
    # The maxima of a tile have their own layout; rows, columns and lanes are laid out to match.
    shape: gl.constexpr = largest_parts(a, COLUMNS, HALF).type.layout
    by_row: gl.constexpr = gl.SliceLayout(1, gl.SliceLayout(2, shape))
    by_lane: gl.constexpr = gl.SliceLayout(1, shape)
    row_a = first_row + gl.arange(0, HALF, layout=by_row)
    row_b = row_a + HALF
    thresholds_a = gl.load(thresholds_ptr + row_a, mask=row_a < m, other=-float("inf"))  # [HALF]
    thresholds_b = gl.load(thresholds_ptr + row_b, mask=row_b < m, other=-float("inf"))  # [HALF]
    local = gl.arange(0, HALF, layout=gl.SliceLayout(1, by_lane))
    segment = 4 * part + gl.arange(0, 4, layout=gl.SliceLayout(0, by_lane))
    starts_a = (local[:, None] * segments + segment[None, :]) * room
    starts_b = starts_a + HALF * segments * room
    values_ptr += first_row.to(gl.int64) * segments * room
    entries_ptr += first_row.to(gl.int64) * segments * room
    counts_a = gl.zeros([HALF, 4], gl.int32, layout=by_lane)
    counts_b = gl.zeros([HALF, 4], gl.int32, layout=by_lane)

    mbarrier.wait(loaded.index(STAGES), 0)
    # ptxas keeps asynchronous products in flight only within straight-line code: TILES tiles, then a pause.
    for first in range(begin, end, TILES):
        step = first - begin
        mbarrier.wait(loaded.index(step % STAGES), (step // STAGES) & 1)
        running_a = warpgroup_mma(q.index(0), x.index(step % STAGES).permute((1, 0)), a, use_acc=False, is_async=True)
        for number in gl.static_range(TILES):
            tile = first + number
            here = x.index((step + number) % STAGES)
            running_b = warpgroup_mma(q.index(1), here.permute((1, 0)), b, use_acc=False, is_async=True)
            a = warpgroup_mma_wait(1, deps=[running_a])
            counts_a = take(
                a, offset, thresholds_a, counts_a, starts_a, tile * (COLUMNS // 32),
                values_ptr, entries_ptr, room, HALF, COLUMNS,
            )  # fmt: skip
            if number + 1 < TILES:
                following = step + number + 1
                mbarrier.wait(loaded.index(following % STAGES), (following // STAGES) & 1)
                running_a = warpgroup_mma(
                    q.index(0), x.index(following % STAGES).permute((1, 0)), a, use_acc=False, is_async=True
                )
                b = warpgroup_mma_wait(1, deps=[running_b])
            else:
                b = warpgroup_mma_wait(0, deps=[running_b])
            barrier()  # both warpgroups have finished with this tile
            refill = tile + STAGES < end
            buffer = (step + number) % STAGES
            mbarrier.expect(loaded.index(buffer), COLUMNS * WIDTH, pred=refill)
            load_tile(points, [(tile + STAGES) * COLUMNS, 0], loaded.index(buffer), here, pred=refill)
            counts_b = take(
                b, offset, thresholds_b, counts_b, starts_b, tile * (COLUMNS // 32),
                values_ptr, entries_ptr, room, HALF, COLUMNS,
            )  # fmt: skip
    for stage in gl.static_range(STAGES + 1):
        mbarrier.invalidate(loaded.index(stage))

    row = first_row + local[:, None]
    gl.store(counts_ptr + row * segments + segment[None, :], counts_a, mask=row < m)
    row += HALF
    gl.store(counts_ptr + row * segments + segment[None, :], counts_b, mask=row < m)
