"""Copy some rows, in order, from page-locked host memory.

One program copies ROWS rows, in steps of COLUMNS words of each. Neighbouring threads read neighbouring words, since
long requests make the best use of the bus. For a negative row number, nothing is read.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["count", "words"])
def fetch_rows_kernel(
    # inputs: int32 [count]; words of the rows [n][words]
    numbers_ptr, rows_ptr,
    # output: [count][words]
    out_ptr,
    # shapes
    count, words,
    # constants
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    place = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    number = tl.load(numbers_ptr + place, mask=place < count, other=-1).to(tl.int64)
    for start in range(0, words, COLUMNS):
        column = start + tl.arange(0, COLUMNS)[None, :]
        wanted = (number >= 0)[:, None] & (column < words)
        read = tl.load(rows_ptr + number[:, None] * words + column, mask=wanted, other=0)
        tl.store(out_ptr + place[:, None] * words + column, read, mask=wanted)
