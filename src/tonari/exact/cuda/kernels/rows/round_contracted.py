"""Round contracted rows, computed by float64 products, to float32, and bound how far rounding may move each row.

    f      = (along, |rest|)      along = V' z, rest = z - V V' z, both products in float64
    error <= 2^-24 |f| + 8 (d + p + 16) sqrt(p) 2^-53 (|z| + |origin|)      exact/cuda/rows/contraction.py

One program per ROWS rows, in steps of COLUMNS columns; sums of squares in float64.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.metrics.kernels.instructions import sqrt

_UNIT = tl.constexpr(2.0**-24 * (1 + 2.0**-20))  # error of rounding a row to float32, relative to the rounded row
_TINY = tl.constexpr(2.0**-100)  # more than float32 loses to underflow in 2^20 columns
_EVALUATION = tl.constexpr(2.0**-50)
_INFINITY = tl.constexpr(float("inf"))


@triton.jit
def squares_of(pointer, length, COLUMNS: tl.constexpr):
    """Return the sum of the squares of a float64 vector."""
    column = tl.arange(0, COLUMNS)
    total = tl.zeros([COLUMNS], tl.float64)
    for start in range(0, length, COLUMNS):
        x = tl.load(pointer + start + column, mask=start + column < length, other=0.0)
        total += x * x
    return tl.sum(total, 0)


@triton.jit(do_not_specialize=["n", "d", "kept"])
def round_contracted_kernel(
    # inputs in float64: residuals [n][d], coordinates [n][kept], lengths [n] (+inf without a contraction), origin [d]
    rest_ptr, along_ptr, lengths_ptr, origin_ptr,
    # outputs: float32 [n][kept + 1], float64 [n]
    values_ptr, errors_ptr,
    # shapes
    n, d, kept,
    # constants
    BEYOND: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    present = row < n
    length = tl.load(lengths_ptr + row, mask=present, other=0.0)  # [ROWS]
    usable = length < _INFINITY
    column = tl.arange(0, COLUMNS)[None, :]
    p = kept + 1
    squares = tl.zeros([ROWS, COLUMNS], tl.float64)
    for start in range(0, d, COLUMNS):
        inside = present[:, None] & (start + column < d)
        rest = tl.load(rest_ptr + row[:, None] * d + start + column, mask=inside, other=0.0)
        squares += rest * rest
    last = sqrt(tl.sum(squares, 1)).to(tl.float32)
    sizes = tl.zeros([ROWS, COLUMNS], tl.float64)
    for start in range(0, kept, COLUMNS):
        inside = present[:, None] & (start + column < kept)
        along = tl.load(along_ptr + row[:, None] * kept + start + column, mask=inside, other=0.0).to(tl.float32)
        sizes += along.to(tl.float64) * along.to(tl.float64)
        out_ptrs = values_ptr + row[:, None] * p + start + column
        tl.store(out_ptrs, tl.where(usable[:, None], along, BEYOND), mask=inside)
    tl.store(values_ptr + row * p + kept, tl.where(usable, last, BEYOND), mask=present)
    size = sqrt(tl.sum(sizes, 1) + last.to(tl.float64) * last.to(tl.float64))
    columns = tl.cast(p, tl.float64)
    evaluation = tl.cast(d + p + 16, tl.float64) * sqrt(columns) * _EVALUATION
    moved = sqrt(squares_of(origin_ptr, d, COLUMNS))
    tl.store(errors_ptr + row, size * _UNIT + (length + moved) * evaluation + _TINY, mask=present)
