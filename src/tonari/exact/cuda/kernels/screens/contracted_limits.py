"""Bound the distances between the contracted rows of a query and its neighbours; a screen uses the bounds as limits.

Contracted rows are rows projected to a few coordinates (exact/cuda/rows/contraction.py). Let g be these rows as stored,
and V the k-th value. A point whose returned value is as good as V has |q' - x'|^2 <= S, the square of Lemma 2
(kernels/refine/certify.py); for angular metrics S = 2 scale^2 worst. Then

    |g(q) - g(x)|  <=  (1 + stretch) sqrt(S) + error(q) + error(x)  =  R
    score          =  |g(x)|^2 - 2 <g(q), g(x)>  <=  R^2 - |g(q)|^2

The squares |g(q) - g(x)|^2 are computed as float32 sums of p squares. Both limits are rounded up, and are +inf for rows
without a bound. One program has ROWS rows; all arithmetic is float64.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.exact.cuda.kernels.refine.certify import SLACK, square_of, worst_value
from tonari.exact.cuda.kernels.rows.pack import round_up
from tonari.metrics.kernels.instructions import sqrt

_LARGEST_SQUARE = tl.constexpr(1e30)  # far above every squared distance of packed rows
_INFINITY = tl.constexpr(float("inf"))
# Twice the relative error of rounding to float32; it is applied once for each rounding in a sum of p squares. A
# difference counts twice, because it is squared; its square and each addition count once.
_ROUNDING = tl.constexpr(2.0**-23)
_TINY = tl.constexpr(2.0**-100)


@triton.jit(do_not_specialize=["rows", "d", "p", "kth_stride"])
def contracted_limits_kernel(
    # inputs
    shift_ptr,  # |g(q)|^2
    kth_ptr,
    error_ptr,  # float64 [rows]: error bounds of the contracted queries
    farthest_ptr,  # float64 [1]: the largest error of a contracted point
    stretch_ptr,  # float64 [1]: see Contraction.stretch
    scale_ptr,
    # outputs: float32 [rows]
    squares_ptr, scores_ptr,
    # shapes
    rows, d, p, kth_stride,
    # constants
    METRIC: tl.constexpr, DOUBLE: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    present = row < rows
    value = tl.load(kth_ptr + row * kth_stride, mask=present, other=0.0).to(tl.float64)
    shift = tl.load(shift_ptr + row, mask=present, other=0.0)  # [ROWS]
    error = tl.load(error_ptr + row, mask=present, other=0.0)
    scale = tl.load(scale_ptr)
    worst, shift, judged, evaluation = worst_value(value, shift, scale, d, METRIC, DOUBLE)
    if METRIC.angular:
        square = 2 * worst * scale * scale
    else:
        square = square_of(worst, scale, d, METRIC)
    reach = sqrt(square) * (1 + tl.load(stretch_ptr)) + error + tl.load(farthest_ptr)
    reach_square = reach * reach
    slack = (reach_square + shift) * (evaluation + SLACK)
    judged = judged & (reach_square + slack < _LARGEST_SQUARE)
    reach_square = tl.where(judged, reach_square, 0.0)
    slack = tl.where(judged, slack, 0.0)
    squares = round_up((reach_square + slack) * (1 + (p + 8) * _ROUNDING) + _TINY)
    scores = round_up(reach_square - shift + slack)
    tl.store(squares_ptr + row, tl.where(judged, squares, _INFINITY), mask=present)
    tl.store(scores_ptr + row, tl.where(judged, scores, _INFINITY), mask=present)
