"""Write form rows (form_rows.py) minus an origin in float64, for float64 products (exact/cuda/rows/contraction.py).

    z = x' - origin        x' as in kernels/rows/form_rows.py

One program writes ROWS rows, in blocks of T * V columns [ROWS, T, V], as the packing kernel reads them. The length |z|
is a float64 sum of squares. A row with an element beyond LIMIT, and an angular row whose squared norm is so small that
its products may underflow, becomes zeros of infinite length; so does a row that searches refuse, which also lowers a
flag.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.exact.cuda.kernels.rows.form_rows import less_mean, read_elements, row_factors
from tonari.exact.cuda.kernels.rows.pack import set_aside
from tonari.metrics.kernels.instructions import sqrt

_INFINITY = tl.constexpr(float("inf"))


@triton.jit(do_not_specialize=["n", "d", "stride", "first_row"])
def write_form_kernel(
    # inputs: rows of any dtype; in float64, centre [d], scale [1] and origin [d]
    rows_ptr, centre_ptr, scale_ptr, origin_ptr,
    # outputs: form rows [n][d] and lengths [n] in float64; three flags
    out_ptr, length_ptr, flags_ptr,
    # shapes
    n, d, stride,
    first_row,  # row number of the first row, for flags
    # constants
    METRIC: tl.constexpr,
    LIMIT: tl.constexpr,  # largest magnitude of a form element
    STEP: tl.constexpr,  # divides d and stride, so that loads can be wide
    ROWS: tl.constexpr, T: tl.constexpr, V: tl.constexpr,
):  # fmt: skip
    d = d // STEP * STEP
    stride = stride // STEP * STEP
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    row_axis = row[:, None, None]
    local = tl.arange(0, T)[None, :, None] * V + tl.arange(0, V)[None, None, :]
    present = row < n
    mean, varies, factor, lossy = row_factors(
        rows_ptr, scale_ptr, row, local, n, d, stride, METRIC, ROWS, T, V
    )  # fmt: skip

    squares = tl.zeros([ROWS, T], tl.float64)
    lost = tl.zeros([ROWS, T], tl.int32)
    for start in range(0, d, T * V):
        column = start + local
        inside = column < d
        x, sound = read_elements(rows_ptr, row_axis, column, n, d, stride, METRIC.nonnegative)  # [ROWS, T, V]
        if METRIC.squares:
            x = x - tl.load(centre_ptr + column, mask=inside, other=0.0)
        if METRIC.centred:
            x = less_mean(x, column, mean, varies, d)
        form = x * factor[:, None, None]
        fits = tl.abs(form) <= LIMIT
        z = tl.where(fits, form, 0.0) - tl.load(origin_ptr + column, mask=inside, other=0.0)
        lost += tl.sum(((sound & fits) == 0).to(tl.int32), 2)
        squares += tl.sum(z * z, 2)
        tl.store(out_ptr + row_axis * d + column, z, mask=(row_axis < n) & inside)

    beyond = (lossy | (tl.sum(lost, 1) > 0)) & present
    if tl.max(beyond.to(tl.int32), 0) > 0:
        set_aside(
            rows_ptr, out_ptr, flags_ptr, row, local, beyond, n, d, stride, d, first_row,
            METRIC.nonnegative, ROWS, T, V,
        )  # fmt: skip
    length = tl.where(beyond, _INFINITY, sqrt(tl.sum(squares, 1)))
    tl.store(length_ptr + row, length, mask=present)
