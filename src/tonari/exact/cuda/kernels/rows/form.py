"""Choose the centre c and the scale 2^p of form rows (form_rows.py) from a sample of the points, in two launches.

    x' = 2^p (x - c)

    sample   each program sums some of the sampled rows in COLUMNS columns, and finds their minima and maxima
    settle   one program combines these results. For each column's mean c, the largest |x - c| of the sample is at
             the minimum or the maximum, so that the rows need not be read again

The scale 2^p brings the largest |x - c| into [2^6, 2^7), or below 1 for metrics that require it. The centre is then
rounded to a multiple of 2^-4 / 2^p. The search is correct for any centre. This choice also keeps integers exact: if x
is a multiple of 2^-4 / 2^p and |x'| < 2^7, then x' is a multiple of 2^-4 with at most 11 significant bits, which
float16 represents exactly. SIFT vectors and images are therefore screened without rounding, even if they are stored as
float32.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.exact.cuda.kernels.rows.form_rows import read_elements
from tonari.metrics.kernels.instructions import floor

_INFINITY = tl.constexpr(float("inf"))


@triton.jit(do_not_specialize=["n", "d", "stride", "every", "count", "chunk", "blocks"])
def sample_kernel(
    rows_ptr,
    # output: [3][parts][d] float64: sums, minima, maxima
    parts_ptr, n, d, stride,
    every,  # step between the row numbers of sampled rows
    count,  # number of sampled rows
    chunk,  # sampled rows per program
    blocks,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    part = tl.program_id(0) // blocks
    column = (tl.program_id(0) % blocks) * COLUMNS + tl.arange(0, COLUMNS)
    end = tl.minimum(part * chunk + chunk, count)
    sums = tl.zeros([ROWS, COLUMNS], tl.float64)
    least = tl.full([ROWS, COLUMNS], _INFINITY, tl.float64)
    greatest = tl.full([ROWS, COLUMNS], -_INFINITY, tl.float64)
    for start in range(part * chunk, end, ROWS):
        number = start + tl.arange(0, ROWS)[:, None]  # [ROWS, 1]
        present = number < end
        x, _ = read_elements(
            rows_ptr, tl.where(present, number.to(tl.int64) * every, n), column[None, :], n, d, stride, False
        )
        sums += x
        least = tl.where(present, tl.minimum(least, x), least)
        greatest = tl.where(present, tl.maximum(greatest, x), greatest)
    size = tl.num_programs(0) // blocks * d
    out_ptrs = parts_ptr + part * d + column
    inside = column < d
    tl.store(out_ptrs, tl.sum(sums, 0), mask=inside)
    tl.store(out_ptrs + size, tl.min(least, 0), mask=inside)
    tl.store(out_ptrs + 2 * size, tl.max(greatest, 0), mask=inside)


@triton.jit
def column_centre(parts_ptr, column, parts, d, count, PARTS: tl.constexpr, COLUMNS: tl.constexpr):
    """Return the means of some columns of the sample, float64 [COLUMNS]."""
    sums = tl.zeros([PARTS, COLUMNS], tl.float64)
    for start in range(0, parts, PARTS):
        part = start + tl.arange(0, PARTS)[:, None]  # [PARTS, 1]
        sums += tl.load(parts_ptr + part * d + column[None, :], mask=(part < parts) & (column < d)[None, :], other=0.0)
    return tl.sum(sums, 0) / tl.cast(count, tl.float64)


@triton.jit
def column_magnitude(parts_ptr, column, centre, parts, d, PARTS: tl.constexpr, COLUMNS: tl.constexpr):
    """Return the largest |x - centre| of some columns of the sample, float64 [COLUMNS]."""
    magnitude = tl.zeros([PARTS, COLUMNS], tl.float64)
    for start in range(0, parts, PARTS):
        part = start + tl.arange(0, PARTS)[:, None]
        inside = (part < parts) & (column < d)[None, :]
        least_ptrs = parts_ptr + (parts + part) * d + column[None, :]
        greatest_ptrs = least_ptrs + parts * d
        low = tl.abs(tl.load(least_ptrs, mask=inside, other=0.0) - centre[None, :])
        high = tl.abs(tl.load(greatest_ptrs, mask=inside, other=0.0) - centre[None, :])
        magnitude = tl.where(inside, tl.maximum(magnitude, tl.maximum(low, high)), magnitude)
    return tl.max(magnitude, 0)


@triton.jit(do_not_specialize=["parts", "d", "count"])
def settle_kernel(
    # input: the output of sample_kernel
    parts_ptr,
    # outputs: [d] and [1] float64
    centre_ptr, scale_ptr, parts, d, count,
    CENTRED: tl.constexpr,
    WHOLE: tl.constexpr,  # whether the scale is 1 and the centre an integer
    TOP: tl.constexpr,  # exponent of the largest element of a form row
    LEAST: tl.constexpr,  # smallest exponent of the scale
    MOST: tl.constexpr,  # largest exponent of the scale
    EVERY: tl.constexpr,  # the exponent of the scale is a multiple of this power of two
    PARTS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    scale = 1.0 + tl.zeros([], tl.float64)
    grid = scale
    if not WHOLE:
        magnitudes = tl.zeros([COLUMNS], tl.float64)
        for start in range(0, d, COLUMNS):
            column = start + tl.arange(0, COLUMNS)
            centre = tl.zeros([COLUMNS], tl.float64)
            if CENTRED:
                centre = column_centre(parts_ptr, column, parts, d, count, PARTS, COLUMNS)
            magnitude = column_magnitude(parts_ptr, column, centre, parts, d, PARTS, COLUMNS)
            magnitudes = tl.maximum(magnitudes, magnitude)
        magnitude = tl.max(magnitudes, 0)
        exponent = (magnitude.to(tl.int64, bitcast=True) >> 52) - 1023
        # Accepted elements are at most 1e150 < 2^499, so form rows are finite for any sample.
        power = tl.minimum(tl.maximum(TOP - exponent, LEAST), MOST)
        power = tl.where(magnitude > 0, (power & -EVERY), 0)
        scale = ((power + 1023) << 52).to(tl.float64, bitcast=True)
        grid = 16 * scale
    tl.store(scale_ptr, scale)
    for start in range(0, d, COLUMNS):
        column = start + tl.arange(0, COLUMNS)
        centre = tl.zeros([COLUMNS], tl.float64)
        if CENTRED:
            centre = floor(column_centre(parts_ptr, column, parts, d, count, PARTS, COLUMNS) * grid + 0.5) / grid
        tl.store(centre_ptr + column, centre, mask=column < d)
