"""Convert rows to the form for the start (cuda/form.py): ranges of columns, then float16 rows, then squared norms.

    range      minimum, maximum and sum of each column, as float64. CHUNKS programs process each block of STEP columns,
               and each program reads every CHUNKS-th tile of ROWS rows
    form       (x - centre) * scale or, if the metric is angular, x divided by its norm, after subtracting its mean if
               the metric is centred; norm and mean take one more pass over the row each. A program processes ROWS
               rows in steps of STEP columns
    squares    squared norms of rows of the form, as float32. A program processes ROWS rows

All other numbers are float64, since rows may be far from the origin. Columns beyond d are zeros.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.exact.cuda.kernels.rows.value import widened
from tonari.metrics.kernels.instructions import sqrt


@triton.jit
def load_step(points_ptr, row, present, stride, column, d):
    """Return STEP columns of some rows as float64, [ROWS, STEP], with zeros beyond the last row and column."""
    inside = present[:, None] & (column < d)[None, :]
    return widened(tl.load(points_ptr + row[:, None] * stride + column[None, :], mask=inside, other=0)).to(tl.float64)


@triton.jit(do_not_specialize=["n", "chunks"])
def range_kernel(
    # input
    points_ptr,
    # outputs: float64 [chunk][d]
    low_ptr, high_ptr, sum_ptr,
    # shapes
    n, d, stride, chunks,
    # constants
    ROWS: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """Write the minimum, maximum and sum of STEP columns over the tiles of a chunk."""
    program = tl.program_id(0)
    chunk = program % chunks
    column = program // chunks * STEP + tl.arange(0, STEP)
    low = tl.full([ROWS, STEP], float("inf"), tl.float64)
    high = -low
    total = tl.zeros([ROWS, STEP], tl.float64)
    for tile in tl.range(chunk, tl.cdiv(n, ROWS), chunks):
        row = tl.cast(tile, tl.int64) * ROWS + tl.arange(0, ROWS)
        present = row < n
        x = load_step(points_ptr, row, present, stride, column, d)
        low = tl.minimum(low, tl.where(present[:, None], x, float("inf")))
        high = tl.maximum(high, tl.where(present[:, None], x, float("-inf")))
        total += x
    out = chunk.to(tl.int64) * d + column
    tl.store(low_ptr + out, tl.min(low, 0), mask=column < d)
    tl.store(high_ptr + out, tl.max(high, 0), mask=column < d)
    tl.store(sum_ptr + out, tl.sum(total, 0), mask=column < d)


@triton.jit(do_not_specialize=["n"])
def form_kernel(
    # inputs
    points_ptr,
    centre_ptr,  # float64 [d]
    scale_ptr,  # float64 [1]
    # output: float16 [n][width]
    rows_ptr,
    # shapes
    n, d, stride, width,
    # constants
    ANGULAR: tl.constexpr, CENTRED: tl.constexpr, ROWS: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """Write the form of ROWS rows; only rows that are not ANGULAR use the centre and the scale."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    present = row < n
    step = tl.arange(0, STEP)
    mean = tl.zeros([ROWS], tl.float64)
    norm = mean
    if ANGULAR:
        if CENTRED:
            for at in tl.range(0, d, STEP):
                mean += tl.sum(load_step(points_ptr, row, present, stride, at + step, d), 1)
            mean = mean / tl.cast(d, tl.float64)
        for at in tl.range(0, d, STEP):
            x = load_step(points_ptr, row, present, stride, at + step, d) - mean[:, None]
            norm += tl.sum(tl.where((at + step < d)[None, :], x * x, 0.0), 1)
        norm = sqrt(norm)
    else:
        scale = tl.load(scale_ptr)
    for at in tl.range(0, width, STEP):
        column = at + step
        x = load_step(points_ptr, row, present, stride, column, d)
        if ANGULAR:
            x = tl.where((norm > 0)[:, None], (x - mean[:, None]) / tl.where(norm > 0, norm, 1.0)[:, None], 0.0)
        else:
            x = (x - tl.load(centre_ptr + column, mask=column < d, other=0.0)[None, :]) * scale
        # A row after the last one is read as zeros; minus the centre and scaled, these could overflow float16.
        x = tl.where(present[:, None] & (column < d)[None, :], x, 0.0).to(tl.float32).to(tl.float16)
        out = rows_ptr + row[:, None] * width + column[None, :]
        tl.store(out, x, mask=present[:, None] & (column < width)[None, :])


@triton.jit(do_not_specialize=["n"])
def squares_kernel(
    # input: float16 [n][width]
    rows_ptr,
    # output: float32 [n]
    squares_ptr,
    # shapes
    n, width,
    # constants
    ROWS: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """Write the sums of squares of ROWS rows."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    step = tl.arange(0, STEP)
    total = tl.zeros([ROWS, STEP], tl.float32)
    for at in tl.range(0, width, STEP):
        inside = (row < n)[:, None] & (at + step < width)[None, :]
        x = tl.load(rows_ptr + row[:, None] * width + at + step[None, :], mask=inside, other=0.0).to(tl.float32)
        total += x * x
    tl.store(squares_ptr + row, tl.sum(total, 1), mask=row < n)
