"""Convert rows to float64, pad them with zeros and, for correlation, subtract means, to compute exact values.

    program   ROWS rows, a tile [ROWS, 16] per step
    output    whole steps of 16 columns, so that readers need no mask; for angular metrics also the norms sqrt(S(x * x))

For correlation, a constant row becomes zeros. The output may be float32 if this represents every element exactly.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.exact.cuda.kernels.rows.value import fold, less_mean, load_lanes, means, widened
from tonari.metrics.kernels.instructions import sqrt


@triton.jit
def widen_rows(
    rows_ptr, out_ptr, norms_ptr, row, present, d, units, steps,
    ANGULAR: tl.constexpr, CENTRED: tl.constexpr, UNIT: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Widen the rows with the row numbers `row`, int32 [ROWS]."""
    long_row = row.to(tl.int64)
    row_ptrs = rows_ptr + long_row * (units.to(tl.int64) * UNIT)
    out_ptrs = out_ptr + (long_row * (steps.to(tl.int64) * 16))[:, None] + tl.arange(0, 16)[None, :]
    if CENTRED:
        mean, differs = means(row_ptrs, d, present, ROWS, UNIT)
    squares = tl.zeros([ROWS, 16], tl.float64)
    for at in tl.range(0, steps * 16, 16):
        x = widened(load_lanes(row_ptrs, at, d, present, UNIT, True)).to(tl.float64)  # [ROWS, 16]
        if CENTRED:
            x = tl.where(differs[:, None], less_mean(x, mean, at, d), 0.0)
        squares += x * x
        tl.store(out_ptrs + at, x.to(out_ptr.dtype.element_ty), mask=present[:, None])
    if ANGULAR:
        tl.store(norms_ptr + row, sqrt(fold(squares, ROWS, False)), mask=present)


@triton.jit(do_not_specialize=["rows", "d", "units", "steps"])
def widen_kernel(
    # input
    rows_ptr,
    # outputs: widened rows [row][16 * steps]; for angular metrics, their norms [row] in float64
    out_ptr, norms_ptr,
    # shapes
    rows, d, units, steps,
    # constants
    ANGULAR: tl.constexpr, CENTRED: tl.constexpr, UNIT: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    widen_rows(rows_ptr, out_ptr, norms_ptr, row, row < rows, d, units, steps, ANGULAR, CENTRED, UNIT, ROWS)
