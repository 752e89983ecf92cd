"""Compute sums of float16 products on matrix units, accumulated from 0 and from given start values.

    plain(i, j)    =            <q(i), x(j)>
    started(i, j)  =  low(j)  + <q(i), x(j)>        the accumulator starts at `low`

One program computes both results, float32 of shape ROWS x ROWS, from float16 operands of shape ROWS x WIDTH.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def products_kernel(queries_ptr, points_ptr, low_ptr, out_ptr, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    row = tl.arange(0, ROWS)
    column = tl.arange(0, WIDTH)
    at = row[:, None] * WIDTH + column[None, :]  # [ROWS, WIDTH]
    queries = tl.load(queries_ptr + at)
    points = tl.load(points_ptr + at)
    started = tl.zeros([ROWS, ROWS], tl.float32) + tl.load(low_ptr + row)[None, :]
    pair_at = row[:, None] * ROWS + row[None, :]  # [ROWS, ROWS]
    tl.store(out_ptr + pair_at, tl.dot(queries, points.T))
    tl.store(out_ptr + ROWS * ROWS + pair_at, tl.dot(queries, points.T, started))
