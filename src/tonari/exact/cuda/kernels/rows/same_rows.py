"""Mark each row, in the order of hashes, that equals the row before it in every bit.

    same(i) = hash(i) = hash(i - 1)  and  all columns of row order(i) and of row order(i - 1) have the same bits

One program compares ROWS pairs of rows, in blocks [ROWS, COLUMNS]. Rows whose hashes differ are not read.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["n", "d", "stride"])
def same_rows_kernel(
    # inputs: the bits of the rows; their sorted hashes, int64 [n]; row numbers in the order of hashes, int64 [n]
    bits_ptr, hashes_ptr, order_ptr,
    # output: [n] int8
    same_ptr,
    # shapes
    n, d, stride,
    # constants
    STEP: tl.constexpr,  # divides d and stride, so that loads can be wide
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    d = d // STEP * STEP
    stride = stride // STEP * STEP
    at = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    paired = (at > 0) & (at < n)
    equal = tl.load(hashes_ptr + at, mask=paired, other=0) == tl.load(hashes_ptr + at - 1, mask=paired, other=1)
    same = paired & equal
    row = tl.load(order_ptr + at, mask=same, other=0)
    before = tl.load(order_ptr + at - 1, mask=same, other=0)
    apart = tl.zeros([ROWS], tl.int32)
    # Columns are read only if a pair of this program has equal hashes.
    for start in range(0, tl.where(tl.sum(same.to(tl.int32), 0) > 0, d, 0), COLUMNS):
        column = start + tl.arange(0, COLUMNS)
        inside = same[:, None] & (column < d)[None, :]
        mine = tl.load(bits_ptr + row[:, None] * stride + column[None, :], mask=inside, other=0)
        others = tl.load(bits_ptr + before[:, None] * stride + column[None, :], mask=inside, other=0)
        apart += tl.sum((mine != others).to(tl.int32), 1)
    tl.store(same_ptr + at, (same & (apart == 0)).to(tl.int8), mask=at < n)
