"""A kernel that computes the values of all pairs of a block of queries and a slab of points on matrix units.

    shared     =  S(q x)                                 ROWS x COLUMNS int32, exact: at most 2^24 bits
    hamming    =  |q| + |x| - 2 shared                   a whole number that float32 represents
    jaccard    =  hamming / (|q| + |x| - shared)         0 if no bit is set

q and x are the bits of a query and a point, S is the sum over the bits, and |q| and |x| are the numbers of set bits.

The reference divides in float64 and rounds the quotient to float32. A correctly rounded division in float32 gives the
same bits: both operands are whole numbers up to 2^24, which float32 represents, and float64 has more than twice its 24
bits, so that rounding twice equals rounding once (Figueroa, When is double rounding innocuous?, 1995).

Queries and points are unpacked (kernels/unpack.py) and are loaded through STAGES buffers in steps of STEP columns.
Programs that run at the same time have the same points and different queries.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["m", "row_tiles", "first_own"])
def values_kernel(
    # inputs: int8 descriptors of blocks ROWS x STEP and COLUMNS x STEP, and counts of set bits
    queries, points, query_counts_ptr, point_counts_ptr,
    # output: float32 (m, n), rows `stride` apart
    values_ptr,
    # shapes
    m, n, width, stride, row_tiles,
    # for a self-join (OWN): the column of query 0 among the points
    first_own,
    # constants
    JACCARD: tl.constexpr, OWN: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, STEP: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    first_row = (tl.program_id(0) % row_tiles) * ROWS
    first_column = (tl.program_id(0) // row_tiles) * COLUMNS
    shared = tl.zeros((ROWS, COLUMNS), tl.int32)
    for at in tl.range(0, width, STEP, num_stages=STAGES):
        here = tl.cast(at, tl.int32)
        shared = tl.dot(
            queries.load([first_row, here]), points.load([first_column, here]).T, shared, out_dtype=tl.int32
        )
    row = first_row + tl.arange(0, ROWS)
    column = first_column + tl.arange(0, COLUMNS)
    of_query = tl.load(query_counts_ptr + row, mask=row < m, other=0)
    of_point = tl.load(point_counts_ptr + column, mask=column < n, other=0)
    both = of_query[:, None] + of_point[None, :]  # [ROWS, COLUMNS]
    values = (both - 2 * shared).to(tl.float32)
    if JACCARD:
        values = tl.div_rn(values, tl.maximum(both - shared, 1).to(tl.float32))
    if OWN:
        values = tl.where(column[None, :] == row[:, None] + first_own, float("inf"), values)
    at = row.to(tl.int64)[:, None] * stride + column[None, :]
    tl.store(values_ptr + at, values, mask=(row < m)[:, None] & (column < n)[None, :])
