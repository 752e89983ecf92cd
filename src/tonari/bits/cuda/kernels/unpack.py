"""A kernel that unpacks rows of bits to an int8 value per bit, and counts the set bits of each row.

    unpacked[i, 8 b + j]  =  bit j of byte b of row i        0 or 1;  `width` columns, 0 beyond 8 d
    counts[i]             =  sum of row i of `unpacked`

A program unpacks ROWS rows in steps of BYTES bytes. The order of bits within a byte does not matter, as long as it is
the same for queries and points, because bits are only counted.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["rows"])
def unpack_kernel(
    # input: bytes of packed rows
    rows_ptr,
    # outputs: bits as int8, counts of set bits as int32
    unpacked_ptr, counts_ptr,
    # shapes
    rows, d, stride, width,
    # constants
    ROWS: tl.constexpr, BYTES: tl.constexpr,
):  # fmt: skip
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
