"""Compute float64 values of pairs of rows in kernels, with the same bits as ``tonari.metrics.definitions``.

    lane j  =  0.0 + t[j] + t[j + 16] + ...             a tile [pairs, 16] per step: its columns are the lanes
    sum     =  8 + 8, 4 + 4, 2 + 2, 1 + 1 lanes          each is a sum of two numbers, whose order does not matter

Products are rounded before they are added: kernels that use this must be launched with ``fused=False``. Square root and
division of float64 are correctly rounded. Zeros beyond the end of a row change nothing, because a lane is never -0.0.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.metrics.kernels.instructions import sqrt


@triton.jit
def widened(x):
    """Convert bfloat16 to float32, in which every GPU and Triton's interpreter can compute; keep other dtypes."""
    if x.dtype == tl.bfloat16:
        # Converted by shifting bits, because the interpreter converts subnormal numbers incorrectly.
        x = (x.to(tl.int16, bitcast=True).to(tl.int32) << 16).to(tl.float32, bitcast=True)
    return x


@triton.jit
def add_terms(lanes, q, x, METRIC: tl.constexpr, TERM: tl.constexpr):
    """Add one term of the metric (for angular metrics, the product) to each of the 16 partial sums (lanes)."""
    if METRIC.maximum:
        return tl.maximum(lanes, TERM(q, x))
    if METRIC.elementwise:
        return lanes + TERM(q, x)
    if METRIC.squares:
        difference = q - x
        return lanes + difference * difference
    return lanes + q * x


@triton.jit
def add_own_terms(lanes, q, x, inside, TERM: tl.constexpr):
    """Add one term of a user's function to each partial sum (lane), except beyond the end of a row."""
    return lanes + tl.where(inside[None, :], TERM(q, x), 0.0)


@triton.jit
def fold(lanes, PAIRS: tl.constexpr, MAXIMUM: tl.constexpr):
    """Reduce the 16 lanes of each pair to their sum or maximum, in halves: [PAIRS, 16] becomes [PAIRS]."""
    halves = tl.reshape(lanes, [PAIRS, 2, 2, 2, 2])
    if MAXIMUM:
        return tl.max(tl.max(tl.max(tl.max(halves, 1), 1), 1), 1)
    return tl.sum(tl.sum(tl.sum(tl.sum(halves, 1), 1), 1), 1)


@triton.jit
def value_of(folded, METRIC: tl.constexpr):
    """Convert the total of a pair's terms to the value of the metric, which must not be angular."""
    tl.static_assert(not METRIC.angular)
    return sqrt(folded) if METRIC.root else folded


@triton.jit
def cosine_of(product, query_norm, point_norm):
    """Return the cosines of pairs from their products (0 for a zero row), and a mask of pairs that need the chord."""
    zero = tl.minimum(query_norm, point_norm) == 0
    cosine = tl.where(zero, 0.0, product / tl.where(zero, 1.0, query_norm * point_norm))
    return cosine, cosine > 0.5


@triton.jit
def inverse_of(norm):
    """Return 1 / norm; the result for a zero row is undefined."""
    return 1.0 / tl.where(norm == 0, 1.0, norm)


@triton.jit
def add_chord(lanes, q, x, query_inverse, point_inverse):
    """Add to each lane the squared difference of two elements, each divided by the norm of its row."""
    difference = q * query_inverse - x * point_inverse
    return lanes + difference * difference


@triton.jit
def angular_value(cosine, close, square, d):
    """Return the value of an angular metric: 1 - cosine or, for close rows, half the squared chord; 0 if parallel."""
    shortest = (tl.cast(d, tl.float64) + 192) * 2.0**-57
    near = tl.where(square <= shortest * shortest, 0.0, tl.minimum(square / 2, 0.5))
    return tl.where(close, near, tl.minimum(1.0 - cosine, 2.0))


@triton.jit
def load_lanes(row_ptrs, at, d, present, UNIT: tl.constexpr, LAST: tl.constexpr):
    """Load columns [at, at + 16) of some rows, [rows, 16]; if these are the LAST columns, zeros beyond the end.

    d is a multiple of UNIT, to which rows are aligned. Rows that are not present have undefined values. Elements have
    their stored dtype; use :func:`widened` before computing with them.
    """
    tl.static_assert(16 % UNIT == 0)
    column = at + tl.arange(0, 16)
    if LAST:
        # All columns of a unit have the same mask, so that a unit is still one load.
        inside = at + tl.arange(0, 16) // UNIT * UNIT < d
        loaded = tl.load(row_ptrs[:, None] + column[None, :], mask=present[:, None] & inside[None, :], other=0)
    else:
        loaded = tl.load(row_ptrs[:, None] + column[None, :], mask=present[:, None])
    return loaded


@triton.jit
def add_to_mean(lanes, spread, x, first, inside):
    """Add one element to each lane (partial sum), and record whether it differs from its row's first element."""
    x = widened(x).to(tl.float64)
    return lanes + x, spread | ((x != first[:, None]) & inside[None, :]).to(tl.int32)


@triton.jit
def means(row_ptrs, d, present, PAIRS: tl.constexpr, UNIT: tl.constexpr):
    """Return the mean of each row, and whether its elements differ."""
    column = tl.arange(0, 16)
    first = widened(tl.load(row_ptrs, mask=present, other=0)).to(tl.float64)  # [PAIRS]
    lanes = tl.zeros([PAIRS, 16], tl.float64)
    spread = tl.zeros([PAIRS, 16], tl.int32)
    batches = d // 64 * 64
    for at in tl.range(0, batches, 64):
        x0 = load_lanes(row_ptrs, at, d, present, UNIT, False)  # [PAIRS, 16]
        x1 = load_lanes(row_ptrs, at + 16, d, present, UNIT, False)
        x2 = load_lanes(row_ptrs, at + 32, d, present, UNIT, False)
        x3 = load_lanes(row_ptrs, at + 48, d, present, UNIT, False)
        lanes, spread = add_to_mean(lanes, spread, x0, first, column >= 0)
        lanes, spread = add_to_mean(lanes, spread, x1, first, column >= 0)
        lanes, spread = add_to_mean(lanes, spread, x2, first, column >= 0)
        lanes, spread = add_to_mean(lanes, spread, x3, first, column >= 0)
    for at in tl.range(batches, d, 16):
        x = load_lanes(row_ptrs, at, d, present, UNIT, True)
        lanes, spread = add_to_mean(lanes, spread, x, first, at + column < d)
    return fold(lanes, PAIRS, False) / d.to(tl.float64), tl.max(spread, 1) > 0


@triton.jit
def less_mean(x, mean, at, d):
    """Subtract each row's mean from its columns [at, at + 16); zeros beyond the end of a row."""
    inside = at + tl.arange(0, 16) < d
    return tl.where(inside[None, :], x - mean[:, None], 0.0)
