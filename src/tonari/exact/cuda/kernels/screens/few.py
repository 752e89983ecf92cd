"""The screen for a few queries. It packs the queries itself, and computes products without matrix units.

    every program   query rows -> form rows (form_rows.py) -> q~ = -2 q^, float16, as in kernels/rows/pack.py
    all but one     sums of q~ x^ with some tiles of POINTS packed points, in float32, BLOCK columns at a time
    the first       screens no tiles; it writes the norms, error bounds, float64 rows and flags that later steps need

    score(row, point)  = low(point) + sum of q~ x^
    minima(row, group) = min over GROUP adjacent points         tile minima(row, tile) = min over POINTS

The error bound N E1 + r E2 is not yet subtracted from the minima. The kernel that reads them (few_finish.py) subtracts
it, when N and r are known. Lemma 3 of docs/exactness.md prescribes this order: the minimum, then the subtraction, each
rounded.

The error of the sums, line by line against that page, with u = 2^-24 and w columns in use:

    products     two float16 numbers: at most 22 bits, 0 or at least 2^-48, so exact in float32, fused or not
    additions    rounded to nearest: each loses at most u of its result. Matrix units may lose 4 u of the magnitudes
    a term       passes through at most w additions that round, in any order; those of zeros beyond the columns do not
    the sum      its error is at most w u / (1 - w u) times the sum of all magnitudes, including |low|, at which sums
                 start. gamma and e0 allow more, y / (1 - y) with y = 4 w u (kernels/rows/pack.py computes all bounds)

Every program packs the queries in the same way, element by element, so the errors measured by the first program hold
for all programs. Only the norms and means of angular metrics are sums, and every program computes them by the same
instructions.

Here groups are adjacent points, not parts of a matrix unit's accumulator (rows/groups.py).
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.exact.cuda.kernels.rows.form_rows import row_factors
from tonari.exact.cuda.kernels.rows.pack import (
    ROUNDED,
    TINY,
    form_of,
    load_with_centre,
    norm_of,
    note_refused,
    product_errors,
    store_query_terms,
)
from tonari.exact.cuda.kernels.rows.widen import widen_rows


@triton.jit
def load_step(
    point_ptrs, first, step, steps, width, blocks, point, inner,
    POINTS: tl.constexpr, BLOCK: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    """Load the block of a tile's columns for step `step`: [1, POINTS, BLOCK]; columns beyond the width are 0."""
    start = step % blocks * BLOCK
    ptrs = point_ptrs + ((first + step // blocks).to(tl.int64) * POINTS * width + start)
    # All columns of a point have the same mask, so that loads are as wide as without a mask.
    present = point[None, :, None] < tl.where(step < steps, POINTS, 0)
    if WHOLE:
        x = tl.load(ptrs, mask=present, other=0.0)
    else:
        x = tl.load(ptrs, mask=present & (start + inner < width), other=0.0)
    return x


@triton.jit
def load_low(low_ptr, tile, tiles, point, M: tl.constexpr, POINTS: tl.constexpr):
    """Load the terms `low` of a tile's points, from which the sums [M, POINTS] of all queries start."""
    present = point < tl.where(tile < tiles, POINTS, 0)
    low = tl.load(low_ptr + tile * POINTS + point, mask=present, other=0.0)
    return tl.zeros([M, POINTS], tl.float32) + low[None, :]


@triton.jit(do_not_specialize=["d", "stride", "units", "wide_steps", "tiles", "each", "m", "first_row"])
def screen_few_kernel(
    # inputs
    rows_ptr, centre_ptr, scale_ptr, values_ptr, low_ptr,
    # scratch: [program][M][width]
    packed_ptr,
    # outputs: minima of groups [row][tiles * POINTS / GROUP] and of tiles [row][tiles]; norm, rest and shift per row;
    # float64 rows, and their norms
    minima_ptr, tile_minima_ptr, norm_ptr, rest_ptr, shift_ptr, widened_ptr, norms_ptr,
    counters_ptr,  # output: set to 0 for the next launch
    flags_ptr,
    # shapes
    m, d, stride, units, wide_steps, width,
    blocks,  # number of blocks of columns in a row; if there is only one, no divisions are needed
    tiles,
    each,  # number of tiles per program
    first_row,  # row number of the first row, for flags
    # constants
    METRIC: tl.constexpr, LIMIT: tl.constexpr, STEP: tl.constexpr, UNIT: tl.constexpr, M: tl.constexpr,
    POINTS: tl.constexpr, GROUP: tl.constexpr, BLOCK: tl.constexpr,
    WHOLE: tl.constexpr,  # whether BLOCK divides the width
    V: tl.constexpr,
):  # fmt: skip
    T: tl.constexpr = BLOCK // V
    GROUPS: tl.constexpr = POINTS // GROUP
    program = tl.program_id(0)
    d = d // STEP * STEP
    stride = stride // STEP * STEP
    row = tl.arange(0, M).to(tl.int64)
    row_axis = row[:, None, None]
    local = tl.arange(0, T)[None, :, None] * V + tl.arange(0, V)[None, None, :]
    present = row < m
    mean, varies, factor, lossy = row_factors(
        rows_ptr, scale_ptr, row, local, m, d, stride, METRIC, M, T, V
    )  # fmt: skip

    point = tl.arange(0, POINTS)
    inner = tl.arange(0, BLOCK)[None, None, :]
    point_ptrs = values_ptr + point[None, :, None] * width + inner
    first = tl.maximum(program - 1, 0) * each
    steps = tl.where(program > 0, (tl.minimum(first + each, tiles) - first) * blocks, 0)
    # The points of the first step are loaded while queries are packed; each step then loads the points of the next one.
    x = load_step(point_ptrs, first, 0, steps, width, blocks, point, inner, POINTS, BLOCK, WHOLE)  # [1, POINTS, BLOCK]
    packed_ptr += program.to(tl.int64) * M * width
    for start in range(0, width, BLOCK):
        column = start + local
        elements, centre = load_with_centre(rows_ptr, centre_ptr, row_axis, column, m, d, stride, METRIC)
        form, _ = form_of(elements, centre, column, d, mean, varies, factor, METRIC, LIMIT)  # [M, T, V]
        q = (form.to(tl.float32) * -2.0).to(tl.float16)
        tl.store(packed_ptr + row_axis * width + column, q, mask=column < width)
    tl.debug_barrier()  # all threads read the packed queries next

    group = tl.arange(0, GROUPS)
    sums = load_low(low_ptr, first, tiles, point, M, POINTS)
    for step in range(steps):
        tile = first + step // blocks
        block = step % blocks
        following = load_step(point_ptrs, first, step + 1, steps, width, blocks, point, inner, POINTS, BLOCK, WHOLE)
        at = block * BLOCK + inner
        for query in tl.static_range(M):
            if WHOLE:
                q = tl.load(packed_ptr + query * width + at)  # [1, 1, BLOCK]
            else:
                q = tl.load(packed_ptr + query * width + at, mask=at < width, other=0.0)
            products = tl.sum(q.to(tl.float32) * x.to(tl.float32), 2)  # [1, POINTS]
            sums += tl.where(row[:, None] == query, products, 0.0)
        if block == blocks - 1:
            minima = tl.min(tl.reshape(sums, [M, GROUPS, GROUP]), 2)
            out_ptrs = minima_ptr + row[:, None] * (tiles * GROUPS) + tile * GROUPS + group[None, :]
            tl.store(out_ptrs, minima, mask=present[:, None])
            tl.store(tile_minima_ptr + row * tiles + tile, tl.min(minima, 1), mask=present)
            sums = load_low(low_ptr, tile + 1, tiles, point, M, POINTS)
        x = following

    if program == 0:
        tl.store(counters_ptr + row, 0, mask=present)
        sizes = tl.zeros([M, T], tl.float64)
        differences = tl.zeros([M, T], tl.float64)
        lost = tl.zeros([M, T], tl.int32)
        for start in range(0, d, BLOCK):
            column = start + local
            elements, centre = load_with_centre(rows_ptr, centre_ptr, row_axis, column, m, d, stride, METRIC)
            form, lost_here = form_of(elements, centre, column, d, mean, varies, factor, METRIC, LIMIT)
            y = form.to(tl.float32) * -2.0  # packed as above, and by all other programs
            rest = y - y.to(tl.float16).to(tl.float32)
            sizes += tl.sum(form * form, 2)
            differences += tl.sum(rest * rest, 2).to(tl.float64)
            lost += tl.sum(lost_here, 2)
        beyond = (lossy | (tl.sum(lost, 1) > 0)) & present
        if tl.max(beyond.to(tl.int32), 0) > 0:
            note_refused(rows_ptr, flags_ptr, row, local, m, d, stride, first_row, METRIC.nonnegative, M, T, V)
        size = norm_of(sizes, METRIC)
        difference, gamma = product_errors(size, norm_of(differences, METRIC) / 2, d, "float16")
        remainder = (difference + gamma * (size + difference)) * ROUNDED + TINY
        term = size * 0
        if METRIC.squares:
            term = tl.sum(sizes, 1)
        packed = present & (beyond == 0)
        store_query_terms(
            norm_ptr, rest_ptr, shift_ptr, row, present, packed, beyond, size * ROUNDED + TINY, remainder, term
        )  # fmt: skip
        widen_rows(
            rows_ptr, widened_ptr, norms_ptr, row, present, d, units, wide_steps,
            METRIC.angular, METRIC.centred, UNIT, M,
        )  # fmt: skip
