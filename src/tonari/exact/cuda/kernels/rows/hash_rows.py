"""Hash rows: compute a 64-bit number for each row, which is the same for equal rows.

    hash = sum over columns of (bits of the value) * weight(column)      modulo 2^64
    weight(column) = column mixed by two rounds of multiply and shift, made odd

One program reads ROWS rows, in blocks [ROWS, COLUMNS]. The sum does not depend on its order.
"""

from __future__ import annotations

import triton
import triton.language as tl

# Multipliers of a 64-bit finaliser (Stafford's mix 13), as signed numbers.
_FIRST = tl.constexpr(0xBF58476D1CE4E5B9 - (1 << 64))
_SECOND = tl.constexpr(0x94D049BB133111EB - (1 << 64))


@triton.jit(do_not_specialize=["n", "d", "stride"])
def hash_rows_kernel(
    # input: the bits of the rows' values, as integers
    bits_ptr,
    # output: [n] int64
    hashes_ptr,
    # shapes
    n, d, stride,
    # constants
    STEP: tl.constexpr,  # divides d and stride, so that loads can be wide
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    d = d // STEP * STEP
    stride = stride // STEP * STEP
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    total = tl.zeros([ROWS], tl.int64)
    for start in range(0, d, COLUMNS):
        column = start + tl.arange(0, COLUMNS)
        inside = (row < n)[:, None] & (column < d)[None, :]
        bits = tl.load(bits_ptr + row[:, None] * stride + column[None, :], mask=inside, other=0)
        weight = (column + 1).to(tl.int64) * _FIRST
        weight = (weight ^ (weight >> 27)) * _SECOND
        weight = (weight ^ (weight >> 31)) | 1
        total += tl.sum(bits.to(tl.int64) * weight[None, :], 1)
    tl.store(hashes_ptr + row, total, mask=row < n)
