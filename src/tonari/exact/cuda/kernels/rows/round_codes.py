"""Round contracted rows to codes, whole numbers of one byte, and measure how far this moves each row.

    g      = f - (0, ..., 0, shift)           f as stored by kernels/rows/round_contracted.py, in steps of the codes
    code   = g rounded, from -127 to 127
    apart  = |g - code| + error(f)            float64

The squared length of a point's code is folded into further columns, so that the products of all columns are

    <q, x> + offset - half,     half = |code(x)|^2 / 2 rounded down,     offset = 127^2 FOLDS + 127
    point  FOLDS columns a and one r with 127 (sum of a) + r = offset - half           query  127, ..., 127, 1

A point with an element beyond the range, or with too long a code, becomes zeros with the least possible product, and
MARK in its first column. The elements of a query are clamped, which `apart` measures. One program per ROWS rows, all
columns at once.
"""

from __future__ import annotations

import triton
import triton.language as tl

MARK = tl.constexpr(-128)
_LARGEST = tl.constexpr(127.0)
_INFINITY = tl.constexpr(float("inf"))
_RAISED = tl.constexpr(1 + 2.0**-20)  # covers the rounding of sums of squares in float64
_TINY = tl.constexpr(2.0**-40)  # far above the rounding error of g, in steps of the codes


@triton.jit(do_not_specialize=["n", "p", "width"])
def round_codes_kernel(
    # inputs: float32 [n][p], float64 [n] and [1]
    values_ptr, errors_ptr, shift_ptr,
    # outputs: int8 [n][width], float64 [n]
    codes_ptr, apart_ptr,
    # outputs only for queries: squared lengths of codes [n]; unrounded codes (g), float32 [n][p]; their error bounds,
    # float64 [n]
    squares_ptr, rounded_ptr, rounded_errors_ptr,
    # shapes
    n, p, width,
    # constants
    POINTS: tl.constexpr, FOLDS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, COLUMNS)[None, :]
    present = row < n
    inside = present[:, None] & (column < p)
    f = tl.load(values_ptr + row[:, None] * p + column, mask=inside, other=0.0).to(tl.float64)  # [ROWS, COLUMNS]
    error = tl.load(errors_ptr + row, mask=present, other=0.0)
    g = tl.where(inside & (column == p - 1), f - tl.load(shift_ptr), f)
    code = tl.minimum(tl.maximum(tl.floor(g + 0.5), -_LARGEST), _LARGEST)
    rest = g - code
    apart = tl.sqrt(tl.sum(rest * rest, 1)) * _RAISED + error + _TINY
    square = tl.sum(code * code, 1)
    out_ptrs = codes_ptr + row[:, None] * width + column
    stored = present[:, None] & (column < width)
    if POINTS:
        left = (_LARGEST * _LARGEST * FOLDS + _LARGEST) - tl.floor(square * 0.5)
        for fold in tl.static_range(FOLDS):
            part = tl.minimum(tl.maximum(tl.floor(left / _LARGEST + 0.5), -_LARGEST), _LARGEST)
            left -= part * _LARGEST
            code = tl.where(column == p + fold, part[:, None], code)
        code = tl.where(column == p + FOLDS, left[:, None], code)
        beyond = (tl.max(tl.abs(g), 1) > _LARGEST + 0.5) | (error == _INFINITY) | (tl.abs(left) > _LARGEST)
        farthest = tl.where(column < p, 0.0, tl.where(column <= p + FOLDS, -_LARGEST, 0.0))
        code = tl.where(beyond[:, None], tl.where(column == 0, MARK, farthest), code)
        tl.store(out_ptrs, code.to(tl.int32).to(tl.int8), mask=stored)
        tl.store(apart_ptr + row, tl.where(beyond, -1.0, apart), mask=present)
    else:
        weight = tl.where(column < p + FOLDS, _LARGEST, tl.where(column == p + FOLDS, 1.0, 0.0))
        code = tl.where(column < p, code, weight)
        tl.store(out_ptrs, code.to(tl.int32).to(tl.int8), mask=stored)
        tl.store(apart_ptr + row, apart, mask=present)
        tl.store(squares_ptr + row, tl.where(error < _INFINITY, square, _INFINITY), mask=present)
        near = g.to(tl.float32)
        moved = g - near.to(tl.float64)
        tl.store(rounded_ptr + row[:, None] * p + column, near, mask=inside)
        rounded_error = tl.sqrt(tl.sum(moved * moved, 1)) * _RAISED + error + _TINY
        tl.store(rounded_errors_ptr + row, rounded_error, mask=present)
