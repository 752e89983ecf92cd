"""The screen on Hopper: the matrix units do not wait for the minima.

    queries           2 x HALF rows of float16, or int8, in shared memory, loaded once: half a and half b
    tile of points    COLUMNS x WIDTH, streamed through STAGES buffers by TMA
    accumulators      one per half, HALF x COLUMNS float32, or int32: while the product of one half runs, the minima of
                      the other are taken

        issue b(i) | wait a(i), minima of a(i) | issue a(i + 1) | wait b(i), minima of b(i) | refill tile i

With FOLDED, rows are codes whose squared lengths are folded into the products, and the maxima of products are taken
(kernels/screens/folded.py).

There are two warpgroups, each with 64 rows of each half. All values keep the layout of the accumulator until they are
stored, so that threads exchange no data; by default, Triton would move stored values through shared memory. The kernel
is otherwise that of kernels/screens/all_minima.py, except that it adds `low` to the finished products.
"""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma, warpgroup_mma, warpgroup_mma_wait

# These functions were renamed between Triton 3.6 and 3.9. In 3.9, the old name of `load_tile` still exists, but raises.
load_tile = getattr(tma, "async_load", None) or tma.async_copy_global_to_shared
barrier = getattr(gl, "thread_barrier", None) or gl.barrier


@gluon.jit
def scores_of(sums):
    """Return -2 <q^, x^> as float32; see the function of this name in kernels/screens/record.py."""
    if sums.dtype == gl.int32:
        result = sums.to(gl.float32) * -2.0
    else:
        result = sums
    return result


@gluon.jit
def lowest_parts(scores, COLUMNS: gl.constexpr, HALF: gl.constexpr):
    """Reduce scores [HALF, COLUMNS] to minima over 8 columns of one thread: [HALF, COLUMNS / 32, 4 threads]."""
    scores = scores.reshape([HALF, COLUMNS // 32, 4, 4, 2])
    return gl.min(gl.min(scores, 4), 2)


@gluon.jit
def largest_parts(sums, COLUMNS: gl.constexpr, HALF: gl.constexpr):
    """Reduce products [HALF, COLUMNS] to maxima over 8 columns of one thread: [HALF, COLUMNS / 32, 4 threads]."""
    sums = sums.reshape([HALF, COLUMNS // 32, 4, 4, 2])
    return gl.max(gl.max(sums, 4), 2)


@gluon.jit
def never_rounded(minima, WHOLE: gl.constexpr):
    """Clip minima of int8 scores to numbers that float32 represents; see the function in kernels/screens/record.py."""
    if WHOLE:
        result = gl.where(minima < float("inf"), gl.minimum(minima, 2.0**24), minima)
    else:
        result = minima
    return result


@gluon.jit
def take(
    scores, low, norm, rest, e1, e2, thresholds, counts, starts, first_group,
    values_ptr, entries_ptr, room, HALF: gl.constexpr, COLUMNS: gl.constexpr, WHOLE: gl.constexpr,
):  # fmt: skip
    """Append to lists the groups of a tile whose certified minima do not exceed the thresholds; return new counts."""
    lowest = never_rounded(lowest_parts(scores + low[None, :], COLUMNS, HALF), WHOLE)
    bound = norm * e1 + rest * e2
    lowest = lowest - bound[:, None, None]
    return append(lowest, thresholds, counts, starts, first_group, values_ptr, entries_ptr, room, COLUMNS)


@gluon.jit
def take_folded(
    sums, offset, thresholds, counts, starts, first_group,
    values_ptr, entries_ptr, room, HALF: gl.constexpr, COLUMNS: gl.constexpr,
):  # fmt: skip
    """Do the same as :func:`take`, from products that already contain the squared lengths of the coded points."""
    lowest = ((offset - largest_parts(sums, COLUMNS, HALF)) * 2).to(gl.float32)
    return append(lowest, thresholds, counts, starts, first_group, values_ptr, entries_ptr, room, COLUMNS)


@gluon.jit
def append(
    lowest, thresholds, counts, starts, first_group, values_ptr, entries_ptr, room, COLUMNS: gl.constexpr
):  # fmt: skip
    """Append to lists the groups whose minima do not exceed the thresholds of their rows; return the new counts."""
    layout: gl.constexpr = lowest.type.layout
    part = gl.arange(0, COLUMNS // 32, layout=gl.SliceLayout(0, gl.SliceLayout(2, layout)))
    passed = (lowest <= thresholds[:, None, None]).to(gl.int32) << part[None, :, None]
    mask = gl.sum(passed, 1)
    value = gl.min(lowest, 1)
    lane = gl.arange(0, 4, layout=gl.SliceLayout(0, gl.SliceLayout(1, layout)))
    hit = mask > 0
    fits = hit & (counts < room)
    at = starts + counts
    gl.store(values_ptr + at, value, mask=fits)
    gl.store(entries_ptr + at, (first_group + lane[None, :]) * 16 + mask, mask=fits)
    return counts + hit.to(gl.int32)


@gluon.jit(do_not_specialize=["m", "tiles", "segments", "room", "row_tiles", "tiles_per_program", "offset"])
def screen_hopper_kernel(
    queries, points, low_ptr, e1_ptr, e2_ptr, norm_ptr, rest_ptr, thresholds_ptr,
    values_ptr, entries_ptr, counts_ptr,
    m, tiles, segments, room, row_tiles, tiles_per_program, offset,
    HALF: gl.constexpr, COLUMNS: gl.constexpr, WIDTH: gl.constexpr, STAGES: gl.constexpr,
    TILES: gl.constexpr, FOLDED: gl.constexpr,
):  # fmt: skip
    ELEMENT: gl.constexpr = queries.dtype
    SIZE: gl.constexpr = ELEMENT.primitive_bitwidth // 8
    WHOLE: gl.constexpr = gl.int8 == ELEMENT
    SUMS: gl.constexpr = gl.int32 if WHOLE else gl.float32
    gl.static_assert(COLUMNS % 32 == 0, "a part is 32 columns, eight for each of four lanes")
    mma: gl.constexpr = gl.NVMMADistributedLayout(
        version=[3, 0], warps_per_cta=[8, 1], instr_shape=[16, COLUMNS, 32 // SIZE]
    )
    first_row = (gl.program_id(0) % row_tiles) * (2 * HALF)
    part = gl.program_id(0) // row_tiles
    begin = part * tiles_per_program
    end = begin + tiles_per_program  # a multiple of TILES; tiles beyond the last are empty

    q = gl.allocate_shared_memory(ELEMENT, [2, HALF, WIDTH], queries.layout)
    x = gl.allocate_shared_memory(ELEMENT, [STAGES, COLUMNS, WIDTH], points.layout)
    loaded = gl.allocate_shared_memory(gl.int64, [STAGES + 1, 1], mbarrier.MBarrierLayout())
    for stage in gl.static_range(STAGES + 1):
        mbarrier.init(loaded.index(stage), count=1)
    mbarrier.expect(loaded.index(STAGES), 2 * HALF * WIDTH * SIZE)
    load_tile(queries, [first_row, 0], loaded.index(STAGES), q.index(0))
    load_tile(queries, [first_row + HALF, 0], loaded.index(STAGES), q.index(1))
    for stage in gl.static_range(STAGES):
        present = begin + stage < end
        mbarrier.expect(loaded.index(stage), COLUMNS * WIDTH * SIZE, pred=present)
        load_tile(points, [(begin + stage) * COLUMNS, 0], loaded.index(stage), x.index(stage), pred=present)

    a = gl.zeros([HALF, COLUMNS], SUMS, layout=mma)
    b = gl.zeros([HALF, COLUMNS], SUMS, layout=mma)
    # The layout of a tile's minima determines the layouts of rows, columns and lanes.
    shape: gl.constexpr = lowest_parts(scores_of(a), COLUMNS, HALF).type.layout
    by_row: gl.constexpr = gl.SliceLayout(1, gl.SliceLayout(2, shape))
    by_lane: gl.constexpr = gl.SliceLayout(1, shape)
    column = gl.arange(0, COLUMNS, layout=gl.SliceLayout(0, mma))
    row_a = first_row + gl.arange(0, HALF, layout=by_row)
    row_b = row_a + HALF
    if not FOLDED:
        norm_a = gl.load(norm_ptr + row_a, mask=row_a < m, other=0.0)  # [HALF]
        norm_b = gl.load(norm_ptr + row_b, mask=row_b < m, other=0.0)  # [HALF]
        rest_a = gl.load(rest_ptr + row_a, mask=row_a < m, other=0.0)
        rest_b = gl.load(rest_ptr + row_b, mask=row_b < m, other=0.0)
    thresholds_a = gl.load(thresholds_ptr + row_a, mask=row_a < m, other=-float("inf"))
    thresholds_b = gl.load(thresholds_ptr + row_b, mask=row_b < m, other=-float("inf"))
    local = gl.arange(0, HALF, layout=gl.SliceLayout(1, by_lane))
    segment = 4 * part + gl.arange(0, 4, layout=gl.SliceLayout(0, by_lane))
    starts_a = (local[:, None] * segments + segment[None, :]) * room
    starts_b = starts_a + HALF * segments * room
    values_ptr += first_row.to(gl.int64) * segments * room
    entries_ptr += first_row.to(gl.int64) * segments * room
    counts_a = gl.zeros([HALF, 4], gl.int32, layout=by_lane)
    counts_b = gl.zeros([HALF, 4], gl.int32, layout=by_lane)

    mbarrier.wait(loaded.index(STAGES), 0)
    # ptxas keeps asynchronous products in flight only within straight-line code, so there is a pause after TILES tiles.
    for first in range(begin, end, TILES):
        step = first - begin
        mbarrier.wait(loaded.index(step % STAGES), (step // STAGES) & 1)
        running_a = warpgroup_mma(q.index(0), x.index(step % STAGES).permute((1, 0)), a, use_acc=False, is_async=True)
        for number in gl.static_range(TILES):
            tile = first + number
            here = x.index((step + number) % STAGES)
            running_b = warpgroup_mma(q.index(1), here.permute((1, 0)), b, use_acc=False, is_async=True)
            if not FOLDED:
                low = gl.load(
                    low_ptr + tile * COLUMNS + column, mask=(tile < tiles) & (column < COLUMNS), other=float("inf")
                )
                e1 = gl.load(e1_ptr + tile, mask=tile < tiles, other=0.0)
                e2 = gl.load(e2_ptr + tile, mask=tile < tiles, other=0.0)
            a = warpgroup_mma_wait(1, deps=[running_a])
            if FOLDED:
                counts_a = take_folded(
                    a, offset, thresholds_a, counts_a, starts_a, tile * (COLUMNS // 32),
                    values_ptr, entries_ptr, room, HALF, COLUMNS,
                )  # fmt: skip
            else:
                counts_a = take(
                    scores_of(a), low, norm_a, rest_a, e1, e2, thresholds_a, counts_a, starts_a,
                    tile * (COLUMNS // 32), values_ptr, entries_ptr, room, HALF, COLUMNS, WHOLE,
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
            mbarrier.expect(loaded.index(buffer), COLUMNS * WIDTH * SIZE, pred=refill)
            load_tile(points, [(tile + STAGES) * COLUMNS, 0], loaded.index(buffer), here, pred=refill)
            if FOLDED:
                counts_b = take_folded(
                    b, offset, thresholds_b, counts_b, starts_b, tile * (COLUMNS // 32),
                    values_ptr, entries_ptr, room, HALF, COLUMNS,
                )  # fmt: skip
            else:
                counts_b = take(
                    scores_of(b), low, norm_b, rest_b, e1, e2, thresholds_b, counts_b, starts_b,
                    tile * (COLUMNS // 32), values_ptr, entries_ptr, room, HALF, COLUMNS, WHOLE,
                )  # fmt: skip
    for stage in gl.static_range(STAGES + 1):
        mbarrier.invalidate(loaded.index(stage))

    row = first_row + local[:, None]
    gl.store(counts_ptr + row * segments + segment[None, :], counts_a, mask=row < m)
    row += HALF
    gl.store(counts_ptr + row * segments + segment[None, :], counts_b, mask=row < m)
