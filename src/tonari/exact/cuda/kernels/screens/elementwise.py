"""Compute group minima of scores whose terms are not products, in float32 and without matrix units.

    l1, linf    low + S|q - x|, low + max |q - x|                2 instructions per term
    chi2        low + S(q) + S(x) - 4 S(q x / (q + x))           3.5, and one reciprocal square root per two terms

S is the sum over the dimensions. The metric defines its terms and their rounding (``metrics/kernels/terms.py``).

    tile            R * TR queries x POINT_TILE points, for a program of TR * TC threads (64 or 128). Each thread
                    computes R x C scores. Each step adds the terms of STEP dimensions, whose values are passed to the
                    threads through shared memory, while the values of the next STEP dimensions are loaded
    thread's share  queries i * TR + t for i < R, and the C points at the columns that member_column() returns

The points of a thread are a whole group or a part of one, so few values are exchanged between threads for a minimum.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.exact.cuda.kernels.rows.groups import member_column


@triton.jit(do_not_specialize=["m", "d", "stride"])
def screen_elementwise_kernel(
    # inputs: rows [.][d]; factors norm and rest per query; low per point; error terms e1 and e2 per tile of points
    queries_ptr, norm_ptr, rest_ptr, points_ptr, low_ptr, e1_ptr, e2_ptr,
    # output: [m][stride], one value per group
    minima_ptr,
    # shapes
    m, d, stride,
    # constants
    ADD_TERMS: tl.constexpr, PREPARE: tl.constexpr, COMPLEMENT: tl.constexpr, GROUP: tl.constexpr,
    POINT_TILE: tl.constexpr, R: tl.constexpr, C: tl.constexpr, TR: tl.constexpr, TC: tl.constexpr,
):  # fmt: skip
    """Write the minima of all groups of one tile of points, for each of R * TR consecutive queries."""
    tl.static_assert(C * TC == POINT_TILE, "threads have the whole tile of points")
    tl.static_assert(GROUP % C == 0, "a thread's columns lie in one group")
    STEP: tl.constexpr = 4
    row_tiles = tl.cdiv(m, R * TR)
    tile = tl.program_id(0) // row_tiles  # programs with consecutive ids share a tile of points
    row = tl.program_id(0) % row_tiles * (R * TR) + tl.arange(0, R)[:, None] * TR + tl.arange(0, TR)[None, :]
    at = tl.minimum(row, m - 1)
    column = member_column(tl.arange(0, TC)[None, :], tl.arange(0, C)[:, None], C, POINT_TILE)
    step = tl.arange(0, STEP)[None, None, :]
    q_ptrs = queries_ptr + at.to(tl.int64)[:, :, None] * d + step
    x_ptrs = points_ptr + (tile.to(tl.int64) * POINT_TILE + column)[:, :, None] * d + step
    next_q = tl.load(q_ptrs, mask=step < d, other=0)  # [R, TR, STEP]
    next_x = tl.load(x_ptrs, mask=step < d, other=0)  # [C, TC, STEP]
    total = tl.zeros([R, C, TR, TC], tl.float32)
    if COMPLEMENT is not None:
        q_sums = tl.zeros([R, TR, STEP], tl.float32)
        x_sums = tl.zeros([C, TC, STEP], tl.float32)
    for start in range(0, d, STEP):
        q = next_q
        x = next_x
        next_q = tl.load(q_ptrs + (start + STEP), mask=step < d - start - STEP, other=0)
        next_x = tl.load(x_ptrs + (start + STEP), mask=step < d - start - STEP, other=0)
        if COMPLEMENT is not None:
            q_sums += q
            x_sums += x
        if PREPARE is not None:
            q = PREPARE(q)
            x = PREPARE(x)
        total = ADD_TERMS(total, q[:, None, :, None, :], x[None, :, None, :, :])
    low = tl.load(low_ptr + tile * POINT_TILE + column)[None, :, None, :]
    if COMPLEMENT is not None:
        sums = tl.sum(q_sums, 2)[:, None, :, None] + tl.sum(x_sums, 2)[None, :, None, :]
        total = (low + sums) - COMPLEMENT * total
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
