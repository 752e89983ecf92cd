"""The certificate of a row: a proof that every point that was not refined is worse than the k-th returned value.

    proved = next_minimum > T(kth)

T is `Bounds::threshold_from_value` in native/exact/bounds.cpp, derived in docs/exactness.md (Lemma 2): no point whose
returned value is as good as the k-th has a true score above T. All arithmetic is float64; one program has ROWS rows.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.metrics.kernels.instructions import sqrt

SLACK = tl.constexpr(2.0**-50)  # exceeds the float64 rounding errors of converting values to scores
_EVALUATION = tl.constexpr(2.0**-51)  # relative error of evaluating a value in float64, divided by (d + 16)
_HUGE = tl.constexpr(-1.0000000150474662e30)  # -1e30 rounded to float32: the score of points beyond range
_LARGEST = tl.constexpr(3.4028234663852886e38)  # the largest float32
_INFINITY = tl.constexpr(float("inf"))
_REACH = tl.constexpr(2.0**511)  # largest scaled value: larger ones might overflow when they are squared


@triton.jit
def unit_of(scale, METRIC: tl.constexpr):
    """Return scale^degree without rounding: the factor that converts values of an elementwise metric to scores."""
    if METRIC.degree == 0:
        unit = scale * 0 + 1.0
    elif METRIC.degree == 0.5:
        unit = sqrt(scale)
    elif METRIC.degree == 1.5:
        unit = scale * sqrt(scale)
    elif METRIC.degree == 3:
        unit = scale * scale * scale
    elif METRIC.degree == 4:
        unit = (scale * scale) * (scale * scale)
    else:
        tl.static_assert(METRIC.degree == 1)
        unit = scale
    return unit


@triton.jit
def worst_value(value, shift, scale, d, METRIC: tl.constexpr, DOUBLE: tl.constexpr):
    """Return the worst true value that may have been rounded to the returned value `value`, and three more results.

    A returned value differs from the true one by the roundings of its evaluation, by underflow and by the rounding of
    the output. The results are the worst value, the query's shift, a mask of the rows for which both are bounded, and
    the relative error of evaluating a value.
    """
    judged = (tl.abs(value) < _INFINITY) & (shift < _INFINITY)
    value = tl.where(judged, value, 0.0)
    shift = tl.where(judged, shift, 0.0)
    terms = tl.cast(d, tl.float64) + 16
    evaluation = terms * _EVALUATION
    underflow = terms * METRIC.underflow
    if DOUBLE:
        slack = tl.abs(value) * evaluation + (underflow + 2.0**-1070)
    else:
        slack = tl.abs(value) * (evaluation + 2.0**-22) + (underflow + 2.0**-148)
    if METRIC.angular:
        slack = slack + evaluation
    if METRIC.descending:
        worst = value - slack
    else:
        worst = value + slack
    if METRIC.elementwise:
        judged = judged & (tl.abs(worst) <= _REACH / unit_of(scale, METRIC))
    else:
        judged = judged & (tl.abs(worst) <= _REACH / scale)
    if not DOUBLE:
        judged = judged & (tl.abs(worst) < _LARGEST)
    if METRIC.angular:
        judged = judged & (worst < 2)  # values are clipped at 2
    worst = tl.where(judged, worst, 0.0)
    return worst, shift, judged, evaluation


@triton.jit
def square_of(worst, scale, d, METRIC: tl.constexpr):
    """Convert a value of a metric of the family "squares" to the squared distance of form rows (rows/form.py)."""
    if METRIC.root:
        square = (worst * scale) * (worst * scale) + (tl.cast(d, tl.float64) + 16) * METRIC.underflow * scale * scale
    else:
        square = worst * scale * scale
    return square


@triton.jit
def threshold_of(value, shift, scale, d, METRIC: tl.constexpr, DOUBLE: tl.constexpr):
    """Return an upper bound on the true scores of points whose returned values are at most `value`.

    The second result is a mask of the rows that have such a bound.
    """
    worst, shift, judged, evaluation = worst_value(value, shift, scale, d, METRIC, DOUBLE)

    # Convert the worst value to a score, and raise the score by the error bound of its evaluation.
    if METRIC.squares:
        square = square_of(worst, scale, d, METRIC)
        score = square - shift
        size = square + shift
    elif METRIC.products:
        score = 2 * shift - 2 * worst * scale * scale
        size = 2 * tl.abs(shift) + 2 * tl.abs(worst) * scale * scale
    elif METRIC.angular:
        score = 2 * (worst - 1) * scale * scale
        size = 2 * scale * scale + worst * 0
    else:
        score = worst * unit_of(scale, METRIC)
        size = score
    threshold = score + size * (evaluation + SLACK)
    return tl.maximum(threshold, _HUGE), judged & (threshold < _LARGEST)


@triton.jit(
    do_not_specialize=["rows", "d", "kth_stride", "next_stride"],
    do_not_specialize_on_alignment=["kth_ptr", "next_ptr"],
)
def certify_kernel(
    # inputs
    shift_ptr, kth_ptr, next_ptr, scale_ptr,
    # output
    proved_ptr,
    # shapes
    rows, d, kth_stride, next_stride,
    # constants
    METRIC: tl.constexpr, DOUBLE: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    present = row < rows
    value = tl.load(kth_ptr + row * kth_stride, mask=present, other=0.0).to(tl.float64)
    shift = tl.load(shift_ptr + row, mask=present, other=0.0)  # [ROWS]
    scale = tl.load(scale_ptr)
    threshold, judged = threshold_of(value, shift, scale, d, METRIC, DOUBLE)
    next_minimum = tl.load(next_ptr + row * next_stride, mask=present, other=0.0).to(tl.float64)
    proved = judged & (next_minimum > threshold)
    tl.store(proved_ptr + row, proved, mask=present)
