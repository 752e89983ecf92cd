"""Minima of groups of scores whose terms are no products: l1, linf and chi2, in float32 on ordinary lanes.

    l1, linf    low + S|q - x|, low + max |q - x|                two instructions a term
    chi2        low + S(q) + S(x) - 4 S(q x / (q + x))           three and a half, and half a reciprocal root

The second is S((q - x)^2 / (q + x)), as (q - x)^2 = (q + x)^2 - 4 q x. With r = 1 / q and s = 1 / x, which are
computed once for a tile and not once for a pair, q x / (q + x) is 1 / (r + s), and two such terms share one root:

    1 / a + 1 / b = (a + b) p^2,    p = 1 / sqrt(a b)

0 is taken as 2^-60, which can only lower a score, by no more than 2^-58 a term (up to 3 of zeros follow the last).
Values are 0 or between 2^-60 and 2^40, so that nothing overflows or underflows. The other roundings amount to less than
(d + 15) u (q + x), in units u of 2^-24: 2 for r and s, 1 for each of r + s, a + b, a b, (a + b) p and its product with
p, 4.3 for the square of a root (relative error 2^-22.9), ceil(d / 2) - 1 for the sum, all of 4 q x / (q + x) <= q + x;
ceil(d / 4) + 1 for S(q) and S(x); 3 for joining them with low.

    tile            R TR x POINT_TILE scores, 128 threads or 64: each holds R x C of them and adds STEP columns of the
                    rows at a time, which reach it through shared memory; the next ones are on their way meanwhile
    thread's share  rows i TR + t for i < R, and what member_column() gives for groups of C, one group of them

A thread's share of columns is the whole of a group, or a part of it: its minimum needs few exchanges between threads.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.exact.cuda.kernels.groups import member_column


@triton.jit
def inverse(v):
    """1 / v within 2 units of its last place, at most 2^60; v is 0 or at least 2^-60."""
    v = tl.maximum(v, 8.673617379884035e-19)  # 2^-60
    root = tl.rsqrt(v)
    guess = root * root
    return tl.fma(guess, tl.fma(-v, guess, 1.0), guess)


@triton.jit
def four_of(t):
    """The four [R, C, TR, TC] of [R, C, TR, TC, 4]; they lie in registers, so that nothing moves."""
    shape: tl.constexpr = t.shape
    even, odd = tl.split(t.reshape(shape[0], shape[1], shape[2], shape[3], 2, 2))
    t0, t2 = tl.split(even)
    t1, t3 = tl.split(odd)
    return t0, t1, t2, t3


@triton.jit
def add_terms(total, q, x, METRIC: tl.constexpr):
    """Add the terms of four columns, one after the other: a sum of their own would take registers."""
    if METRIC == "chi2":
        shape: tl.constexpr = (total.shape[0], total.shape[1], total.shape[2], total.shape[3], 2, 2)
        a, b = tl.split((q + x).reshape(shape))
        root = tl.rsqrt(a * b)
        t0, t1 = tl.split((a + b) * root)
        root0, root1 = tl.split(root)
        total += t0 * root0
        return total + t1 * root1
    t0, t1, t2, t3 = four_of(tl.abs(q - x))
    if METRIC == "linf":
        total = tl.maximum(tl.maximum(total, t0), t1)
        return tl.maximum(tl.maximum(total, t2), t3)
    total += t0
    total += t1
    total += t2
    return total + t3


@triton.jit(do_not_specialize=["m", "d", "stride"])
def screen_elementwise_kernel(
    # inputs: rows [.][d]; N and r per query, low per point, e1 and e2 per tile of points
    queries_ptr,
    norm_ptr,
    rest_ptr,
    points_ptr,
    low_ptr,
    e1_ptr,
    e2_ptr,
    # output: [m][stride], one value per group
    minima_ptr,
    # shapes
    m,
    d,
    stride,
    # constants
    METRIC: tl.constexpr,
    GROUP: tl.constexpr,
    POINT_TILE: tl.constexpr,
    R: tl.constexpr,
    C: tl.constexpr,
    TR: tl.constexpr,
    TC: tl.constexpr,
):
    """The groups of one tile of points, for R * TR queries."""
    STEP: tl.constexpr = 4
    row_tiles = tl.cdiv(m, R * TR)
    tile = tl.program_id(0) // row_tiles  # neighbours share the points
    row = tl.program_id(0) % row_tiles * (R * TR) + tl.arange(0, R)[:, None] * TR + tl.arange(0, TR)[None, :]
    at = tl.minimum(row, m - 1)
    column = member_column(tl.arange(0, TC)[None, :], tl.arange(0, C)[:, None], C, POINT_TILE)
    step = tl.arange(0, STEP)[None, None, :]
    q_ptrs = queries_ptr + at.to(tl.int64)[:, :, None] * d + step
    x_ptrs = points_ptr + (tile.to(tl.int64) * POINT_TILE + column)[:, :, None] * d + step
    next_q = tl.load(q_ptrs, mask=step < d, other=0)  # [R, TR, STEP]
    next_x = tl.load(x_ptrs, mask=step < d, other=0)  # [C, TC, STEP]
    total = tl.zeros([R, C, TR, TC], tl.float32)
    if METRIC == "chi2":
        q_sums = tl.zeros([R, TR, STEP], tl.float32)
        x_sums = tl.zeros([C, TC, STEP], tl.float32)
    for start in range(0, d, STEP):
        q = next_q
        x = next_x
        next_q = tl.load(q_ptrs + (start + STEP), mask=step < d - start - STEP, other=0)
        next_x = tl.load(x_ptrs + (start + STEP), mask=step < d - start - STEP, other=0)
        if METRIC == "chi2":
            q_sums += q
            x_sums += x
            q = inverse(q)
            x = inverse(x)
        total = add_terms(total, q[:, None, :, None, :], x[None, :, None, :, :], METRIC)
    low = tl.load(low_ptr + tile * POINT_TILE + column)[None, :, None, :]
    if METRIC == "chi2":
        sums = tl.sum(q_sums, 2)[:, None, :, None] + tl.sum(x_sums, 2)[None, :, None, :]
        total = (low + sums) - 4 * total
    else:
        total += low
    least = tl.min(total, 1)
    least = tl.min(least.reshape(R, TR, POINT_TILE // (4 * GROUP), GROUP // C, 4), 3)
    bound = tl.load(norm_ptr + at) * tl.load(e1_ptr + tile) + tl.load(rest_ptr + at) * tl.load(e2_ptr + tile)
    group = tl.arange(0, POINT_TILE // (4 * GROUP))[:, None] * 4 + tl.arange(0, 4)[None, :]
    group += tile * (POINT_TILE // GROUP)
    tl.store(
        minima_ptr + row.to(tl.int64)[:, :, None, None] * stride + group[None, None, :, :],
        least - bound[:, :, None, None],
        mask=row[:, :, None, None] < m,
    )
