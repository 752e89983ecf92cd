"""Convert original rows to form rows by blocks of columns, in registers and in float64.

A form row x' is a row x in the form that the screen compares (native/exact/form.hpp):

    euclidean                          x' = scale (x - centre)
    cosine, correlation                x' = scale x / |x|, for correlation with the row's mean subtracted first
    inner_product, elementwise         x' = scale x

Each is x' = factor (x - origin) with one factor per row. A block of columns has shape [ROWS, T, V]: T threads share a
row, and each holds V consecutive values, which is one load of 16 bytes for float32. Sums over V need no other thread;
partial sums [ROWS, T] are kept over all columns, and added once at the end.

Elements that searches refuse (NaN, infinities, float64 beyond 1e150, and negative elements if the metric refuses them)
are read as 0 and reported, so that they never enter the arithmetic.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.exact.cuda.kernels.rows.value import widened
from tonari.metrics.kernels.instructions import sqrt

_INFINITY = tl.constexpr(float("inf"))
# Largest element that searches accept in float64; squared differences of larger ones overflow.
_LARGEST = tl.constexpr(1e150)
# If both rows of a pair have at least this squared norm, underflow changes their product by less than 2^-100 of the
# product of their norms.
_SMALLEST_SQUARE = tl.constexpr(2.0**-960)


@triton.jit
def is_finite(x):
    """Whether elements are neither NaN nor infinite."""
    if x.dtype.is_floating():
        finite = tl.abs(x) < _INFINITY
    else:
        finite = x == x
    return finite


@triton.jit
def is_sound(x, NONNEGATIVE: tl.constexpr):
    """Whether searches accept each element; refused elements are reported and read as 0."""
    if x.dtype == tl.float64:
        sound = tl.abs(x) <= _LARGEST
    else:
        sound = is_finite(x)
    if NONNEGATIVE:
        sound = sound & (x >= 0)
    return sound


@triton.jit
def load_elements(rows_ptr, row, column, n, d, stride):
    """Load elements, bfloat16 as float32; absent elements are 0. `row` and `column` must broadcast."""
    return widened(tl.load(rows_ptr + row * stride + column, mask=(row < n) & (column < d), other=0))


@triton.jit
def read_elements(rows_ptr, row, column, n, d, stride, NONNEGATIVE: tl.constexpr):
    """Return elements as float64, and a mask of the elements not refused; absent and refused elements are 0."""
    x = load_elements(rows_ptr, row, column, n, d, stride)
    sound = is_sound(x, NONNEGATIVE)
    return tl.where(sound, x, 0).to(tl.float64), sound


@triton.jit
def row_means(rows_ptr, row, n, d, stride, ROWS: tl.constexpr):
    """Return the mean of each row, float64 [ROWS], and a mask of the rows with different elements, [ROWS].

    The bounds do not cover the rounding of the mean, so it must equal the mean of the metric's definition bit by bit:
    16 partial sums, of the columns with the same i mod 16 in ascending order, which are then added in halves.
    """
    column = tl.arange(0, 16)[None, :]
    row_axis = row[:, None]
    first, _ = read_elements(rows_ptr, row_axis, column * 0, n, d, stride, False)
    lanes = tl.zeros([ROWS, 16], tl.float64)
    differs = tl.zeros([ROWS, 16], tl.int32)
    for start in range(0, d, 16):
        x, _ = read_elements(rows_ptr, row_axis, start + column, n, d, stride, False)  # [ROWS, 16]
        lanes += x
        differs = tl.maximum(differs, ((x != first) & (start + column < d)).to(tl.int32))
    lanes = tl.sum(tl.reshape(lanes, (ROWS, 2, 8)), 1)  # sums of two numbers, which do not depend on the order
    lanes = tl.sum(tl.reshape(lanes, (ROWS, 2, 4)), 1)
    lanes = tl.sum(tl.reshape(lanes, (ROWS, 2, 2)), 1)
    total = tl.sum(lanes, 1)
    return total / tl.cast(d, tl.float64), tl.max(differs, 1) > 0


@triton.jit
def less_mean(x, column, mean, varies, d):
    """Return elements minus their row's mean, with zeros for constant rows and beyond the end of a row."""
    return tl.where((column < d) & varies[:, None, None], x - mean[:, None, None], 0.0)


@triton.jit
def angular_factor(
    rows_ptr, row, local, n, d, stride, mean, varies, scale,
    CENTRED: tl.constexpr, ROWS: tl.constexpr, T: tl.constexpr, V: tl.constexpr,
):  # fmt: skip
    """Return scale / |x| of each row (0 for a zero row), and a mask of the rows whose products may underflow."""
    squares = tl.zeros([ROWS, T], tl.float64)
    for start in range(0, d, T * V):
        column = start + local
        x, _ = read_elements(rows_ptr, row[:, None, None], column, n, d, stride, False)  # [ROWS, T, V]
        if CENTRED:
            x = less_mean(x, column, mean, varies, d)
        squares += tl.sum(x * x, 2)
    square = tl.sum(squares, 1)
    factor = tl.where(square > 0, scale / sqrt(tl.where(square > 0, square, 1.0)), 0.0)
    return factor, (square > 0) & (square < _SMALLEST_SQUARE)


@triton.jit
def row_factors(
    rows_ptr, scale_ptr, row, local, n, d, stride, METRIC: tl.constexpr,
    ROWS: tl.constexpr, T: tl.constexpr, V: tl.constexpr,
):  # fmt: skip
    """Return means, a mask of rows that vary, factors, and a mask of rows whose products may underflow; all [ROWS].

    Means are 0 unless the metric subtracts them. Padding has the factor 0, and so is zero with any centre.
    """
    scale = tl.load(scale_ptr)
    mean = tl.zeros([ROWS], tl.float64)
    varies = row < n
    lossy = row < 0
    if METRIC.centred:
        mean, varies = row_means(rows_ptr, row, n, d, stride, ROWS)
    if METRIC.angular:
        factor, lossy = angular_factor(
            rows_ptr, row, local, n, d, stride, mean, varies, scale, METRIC.centred, ROWS, T, V
        )  # fmt: skip
    else:
        factor = tl.where(row < n, scale, 0.0)
    return mean, varies, factor, lossy
