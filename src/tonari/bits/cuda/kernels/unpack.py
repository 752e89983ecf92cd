"""Rows of bits as int8 values, one for each bit, and the number of bits that are set in each row.

    unpacked[i, 8 b + j]  =  bit j of byte b of row i        0 or 1;  WIDTH columns, 0 beyond 8 d
    counts[i]             =  sum of the row

A program takes ROWS rows, BYTES bytes at a time. Bits are counted, never numbered, so their order within a byte does
not matter, as long as queries and points have the same.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["rows"])
def unpack_kernel(
    # inputs: bytes
    rows_ptr,
    # outputs: int8, int32
    unpacked_ptr,
    counts_ptr,
    # shapes
    rows,
    d,
    stride,
    width,
    # constants
    ROWS: tl.constexpr,
    BYTES: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    present = row < rows
    byte, bit = tl.arange(0, BYTES), tl.arange(0, 8)
    counts = tl.zeros((ROWS,), tl.int32)
    for first in tl.range(0, width // 8, BYTES):
        inside = present[:, None] & (first + byte < d)[None, :]
        held = tl.load(rows_ptr + row[:, None] * stride + (first + byte)[None, :], mask=inside, other=0)
        bits = (held.to(tl.int32)[:, :, None] >> bit[None, None, :]) & 1  # [ROWS, BYTES, 8]
        flat = tl.reshape(bits, (ROWS, 8 * BYTES))
        counts += tl.sum(flat, 1)
        column = 8 * first + tl.arange(0, 8 * BYTES)
        wanted = present[:, None] & (column < width)[None, :]
        tl.store(unpacked_ptr + row[:, None] * width + column[None, :], flat.to(tl.int8), mask=wanted)
    tl.store(counts_ptr + row, counts, mask=present)
