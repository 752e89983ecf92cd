"""Packing: original rows -> form rows -> rounded rows, with measured rounding errors (docs/exactness.md).

One program packs ROWS rows; for points, these are a tile of the screen. It goes through the columns once, in blocks of
T * V (kernels/rows/form_rows.py): load, form in float64, round, store, and add to the row's sums

    size         |x'|, from float64 squares             for elementwise metrics: the sum or maximum of `size` and
    difference   |x' - x^|                              `difference` of metrics/kernels/terms.py

Blocks do not stay in memory. The angular metrics need a row's norm first and read the rows twice, correlation three
times; later passes find the rows in the cache.

For int8, with y the form element x' in float32, h is y rounded to the nearest whole number, halves up. If y is not
whole, the measured y - h may have a relative error of 2^-24, which the factor ROUNDED covers. A row of integers that
fit in one byte, with |x'|^2 <= 2^24, has no error at all: its products and scores are whole numbers that float32
represents.

Conversions to and from float64 are the slowest instructions here (16 per clock and multiprocessor), so for products the
rounding error is measured in float32. With y the form element x' in float32 and h = y rounded to float16, y - h is
exact (both are multiples of y's last bit, and |y - h| <= |y|), so that |x' - h| <= |y - h| + 2^-24 |x'|. Four squares
of y - h are added in float32, within 6 u, and these sums are added in float64.

Rows that cannot be packed are rare: only their elements are read again, to set flags and to clear their values.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.exact.cuda.kernels.rows.form_rows import (
    is_finite,
    is_sound,
    less_mean,
    load_elements,
    row_factors,
)
from tonari.exact.cuda.kernels.screens.record import COUNTED
from tonari.metrics.kernels.instructions import floor, sqrt

_NO_ROW = tl.constexpr(2**62)
_INFINITY = tl.constexpr(float("inf"))
_HUGE = tl.constexpr(1e30)  # magnitude of the score of a point beyond range: kHuge of native/exact/form.hpp
_UNIT = tl.constexpr(2.0**-24)
TINY = tl.constexpr(2.0**-100)  # added to every bound: exceeds its loss to underflow
_FLUSH = tl.constexpr(2.0**-60)  # elements of magnitude below this are packed as 0 in float32
ROUNDED = tl.constexpr(1 + 2.0**-20)  # factor that covers the rounding errors of computing a bound
_RATIO = tl.constexpr(2.0**-24 + 2.0**-34)  # relative error of x' in float32, and of x' and its norm in float64
_LOST = tl.constexpr(2.0**-64)  # exceeds the norm of 2^20 elements whose squares underflow in float32
_NORMAL = tl.constexpr(2.0**-1022)  # the smallest normal float64

# Times 2 |x|: exceeds the error of rounding |x|^2 to float32, for a point that is packed exactly.
_STEP = tl.constexpr(2.0**-11)
_DOUBLE_RATIO = tl.constexpr(2.0**-50)


@triton.jit
def round_up(x):
    """Round float64 values up to float32 values; they must be in the range of float32."""
    rounded = x.to(tl.float32)
    bits = rounded.to(tl.int32, bitcast=True)
    above = (bits + tl.where(rounded >= 0, 1, -1)).to(tl.float32, bitcast=True)
    return tl.where(rounded.to(tl.float64) < x, above, rounded)


@triton.jit
def round_down(x):
    """Round float64 values down to float32 values; they must be in the range of float32."""
    return -round_up(-x)


@triton.jit
def joined(total, block, MAXIMUM: tl.constexpr):
    """Return partial norms (sums or maxima, [ROWS, T]) after adding a block of magnitudes [ROWS, T, V]."""
    if MAXIMUM:
        result = tl.maximum(total, tl.max(block, 2))
    else:
        result = total + tl.sum(block, 2)
    return result


@triton.jit
def norm_of(parts, METRIC: tl.constexpr):
    """Return the norms of rows [ROWS] from partial sums of squares, partial sums or partial maxima [ROWS, T]."""
    if METRIC.maximum:
        norm = tl.max(parts, 1)
    elif METRIC.elementwise:
        norm = tl.sum(parts, 1)
    else:
        norm = sqrt(tl.sum(parts, 1))
    return norm


@triton.jit
def any_of(mask):
    """Return 1 for each row in which any element of a mask [ROWS, T, V] is set, else 0; int32 [ROWS]."""
    return tl.max(tl.max(mask.to(tl.int32), 2), 1)


@triton.jit
def note(flag_ptr, row, bad):
    """Set a flag to the row number of this program's first bad row if the flag is larger."""
    tl.atomic_min(flag_ptr, tl.min(tl.where(bad > 0, row, _NO_ROW), 0))


@triton.jit
def load_with_centre(rows_ptr, centre_ptr, row, column, n, d, stride, METRIC: tl.constexpr):
    """Load stored elements [ROWS, T, V], and the elements of the centre, which are 0 unless the metric subtracts it."""
    centre = 0.0
    if METRIC.squares:
        centre = tl.load(centre_ptr + column, mask=column < d, other=0.0)
    return load_elements(rows_ptr, row, column, n, d, stride), centre


@triton.jit
def form_of(elements, centre, column, d, mean, varies, factor, METRIC: tl.constexpr, LIMIT: tl.constexpr,
            INT8: tl.constexpr = False):  # fmt: skip
    """Return form elements [ROWS, T, V] and an int32 mask of refused and unpackable elements, which become 0."""
    sound = is_sound(elements, METRIC.nonnegative)
    x = tl.where(sound, elements, 0).to(tl.float64)
    if METRIC.squares:
        x = x - centre
    if METRIC.centred:
        x = less_mean(x, column, mean, varies, d)
    form = x * factor[:, None, None]
    fits = (tl.abs(form + 0.5) if INT8 else tl.abs(form)) <= LIMIT  # the range of int8 is -128 to 127
    if METRIC.degree == 0:  # a term of two tiny elements may be large, as in canberra: none may underflow
        fits = fits & ((x == 0) | (tl.abs(form) >= _NORMAL))
    return tl.where(fits, form, 0.0), ((sound & fits) == 0).to(tl.int32)


@triton.jit
def whole_numbers(elements, centre, factor):
    """Return a mask, int32 [ROWS, T, V], of the elements that the form turns into whole numbers without rounding."""
    x, centre = elements.to(tl.float64), tl.cast(centre, tl.float64)
    return ((x == floor(x)) & (centre == floor(centre)) & (factor[:, None, None] == 1)).to(tl.int32)


@triton.jit
def product_errors(size, difference, d, PRECISION: tl.constexpr):
    """Return a bound on |x' - x^| from `size` and `difference`, and gamma, the relative error of sums of products."""
    difference = difference * ROUNDED + size * _RATIO + _LOST
    columns = tl.cast(d, tl.float64)
    units = 4 * columns + 64
    if PRECISION == "int8":
        units = columns * 0 + 16  # the sum is exact; only its conversion to float32 rounds
    if PRECISION == "split":
        # The large products, one per column, are added last, so that few additions round large sums. For short rows, a
        # bound that does not depend on this order is smaller.
        units = tl.where(d > 32, 4.05 * (columns + 64), 16 * columns) + 64
    return difference, gamma_of(units)


@triton.jit
def gamma_of(units):
    """Return n / (1 - 2 n) for n = `units` 2^-24: the relative error of a sum with `units` rounding errors."""
    n = tl.minimum(units * _UNIT, 0.25)
    return n / (1 - 2 * n)


@triton.jit
def store_query_terms(norm_ptr, rest_ptr, shift_ptr, row, present, packed, beyond, norm, remainder, term):
    """Store each query's two factors on the error terms of the screen, and its score term for the certificate."""
    tl.store(norm_ptr + row, tl.where(packed, round_up(norm), 0.0), mask=present)
    tl.store(rest_ptr + row, tl.where(packed, round_up(remainder), 0.0), mask=present)
    tl.store(shift_ptr + row, tl.where(beyond, _INFINITY, term), mask=present)


@triton.jit
def note_refused(
    rows_ptr, flags_ptr, row, local, n, d, stride, first_row,
    NONNEGATIVE: tl.constexpr, ROWS: tl.constexpr, T: tl.constexpr, V: tl.constexpr,
):  # fmt: skip
    """Set the flags of rows with values that searches refuse."""
    infinite = tl.zeros([ROWS], tl.int32)
    large = tl.zeros([ROWS], tl.int32)
    negative = tl.zeros([ROWS], tl.int32)
    row_axis = row[:, None, None]
    for start in range(0, d, T * V):
        x = load_elements(rows_ptr, row_axis, start + local, n, d, stride)  # [ROWS, T, V]
        infinite |= any_of(is_finite(x) == 0)
        if x.dtype == tl.float64:
            large |= any_of(is_finite(x) & (tl.abs(x) > 1e150))
        if NONNEGATIVE:
            negative |= any_of(x < 0)
    note(flags_ptr, first_row + row, infinite)
    note(flags_ptr + 1, first_row + row, large)
    note(flags_ptr + 2, first_row + row, negative)


@triton.jit
def set_aside(
    rows_ptr, values_ptr, flags_ptr, row, local, beyond, n, d, stride, width, first_row,
    NONNEGATIVE: tl.constexpr, ROWS: tl.constexpr, T: tl.constexpr, V: tl.constexpr,
):  # fmt: skip
    """Set the flags of rows that could not be packed because of invalid input, and clear all `beyond` rows."""
    note_refused(rows_ptr, flags_ptr, row, local, n, d, stride, first_row, NONNEGATIVE, ROWS, T, V)
    row_axis = row[:, None, None]
    tl.debug_barrier()  # other threads may have stored the values that are cleared next
    for start in range(0, width, T * V):
        column = start + local
        cleared = beyond[:, None, None] & (column < width)
        zeros = tl.zeros([ROWS, T, V], values_ptr.dtype.element_ty)
        tl.store(values_ptr + row_axis * width + column, zeros, mask=cleared)


@triton.jit(do_not_specialize=["n", "height", "d", "stride", "first_row"])
def pack_kernel(
    rows_ptr, centre_ptr, scale_ptr,
    # outputs: values [height][width]; for points, low per row, and e1 and e2 per program; for queries, norm, rest and
    # shift per row; flags
    values_ptr, low_ptr, e1_ptr, e2_ptr, norm_ptr, rest_ptr, shift_ptr, flags_ptr,
    # shapes
    n, height, d, stride, width,
    first_row,  # row number of the first row, for flags
    # constants
    METRIC: tl.constexpr,
    SIZE: tl.constexpr,  # SIZE, DIFFERENCE: the functions `size` and `difference` of an elementwise metric
    DIFFERENCE: tl.constexpr, PRECISION: tl.constexpr, POINTS: tl.constexpr,
    LIMIT: tl.constexpr,  # largest magnitude of a form element
    STEP: tl.constexpr,  # divides d and stride, so that loads can be wide
    ROWS: tl.constexpr, T: tl.constexpr, V: tl.constexpr,
):  # fmt: skip
    PRODUCTS: tl.constexpr = PRECISION != "float32"
    d = d // STEP * STEP
    stride = stride // STEP * STEP
    if PRECISION == "float32":
        width = d
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    row_axis = row[:, None, None]
    local = tl.arange(0, T)[None, :, None] * V + tl.arange(0, V)[None, None, :]
    present = row < n
    mean, varies, factor, lossy = row_factors(
        rows_ptr, scale_ptr, row, local, n, d, stride, METRIC, ROWS, T, V
    )  # fmt: skip

    sizes = tl.zeros([ROWS, T], tl.float64)
    differences = tl.zeros([ROWS, T], tl.float64)
    lost = tl.zeros([ROWS, T], tl.int32)
    rounded_off = tl.zeros([ROWS, T], tl.int32)
    INT8: tl.constexpr = PRECISION == "int8"
    end = width if PRECISION == "float16" or INT8 else d
    for start in range(0, end, T * V):
        column = start + local
        elements, centre = load_with_centre(rows_ptr, centre_ptr, row_axis, column, n, d, stride, METRIC)
        # [ROWS, T, V]
        form, lost_here = form_of(elements, centre, column, d, mean, varies, factor, METRIC, LIMIT, INT8)
        lost += tl.sum(lost_here, 2)
        if PRODUCTS:
            y = form.to(tl.float32)
            if INT8:
                first = floor(y + 0.5).to(tl.int8)
                whole = whole_numbers(elements, centre, factor) | (column >= d).to(tl.int32)
                rounded_off += tl.sum(1 - whole, 2)
            else:
                first = y.to(tl.float16)
            rest = y - first.to(tl.float32)
            if PRECISION == "split":
                second = rest.to(tl.float16)
                rest = rest - second.to(tl.float32)
                if not POINTS:
                    second = -(second + second)
            if not INT8 and not POINTS:
                first = -(first + first)  # this is exact, so the scores of (row, point) and (point, row) are equal
            if PRECISION == "split":
                # Small products come first, because the rounding error of an addition is relative to the sum so far.
                out_ptrs = values_ptr + row_axis * width + column
                inside = (row_axis < height) & (column < d)
                tl.store(out_ptrs, second, mask=inside)
                tl.store(out_ptrs + d, first if POINTS else second, mask=inside)
                tl.store(out_ptrs + 2 * d, second if POINTS else first, mask=inside)
                tl.store(out_ptrs + 3 * d, first, mask=inside)
            else:
                tl.store(values_ptr + row_axis * width + column, first, mask=(row_axis < height) & (column < width))
            sizes += tl.sum(form * form, 2)
            differences += tl.sum(rest * rest, 2).to(tl.float64)
        else:
            y = tl.where(tl.abs(form) < _FLUSH, 0.0, form).to(tl.float32)
            tl.store(values_ptr + row_axis * width + column, y, mask=(row_axis < height) & (column < d))
            sizes = joined(sizes, SIZE(form), METRIC.maximum)
            differences = joined(differences, DIFFERENCE(form, y.to(tl.float64)), METRIC.maximum)
    if PRECISION == "split":
        for start in range(4 * d, width, T * V):
            column = start + local
            zeros = tl.zeros([ROWS, T, V], tl.float16)
            tl.store(values_ptr + row_axis * width + column, zeros, mask=(row_axis < height) & (column < width))

    beyond = (lossy | (tl.sum(lost, 1) > 0)) & present
    if tl.max(beyond.to(tl.int32), 0) > 0:
        set_aside(
            rows_ptr, values_ptr, flags_ptr, row, local, beyond, n, d, stride, width, first_row,
            METRIC.nonnegative, ROWS, T, V,
        )  # fmt: skip

    size = norm_of(sizes, METRIC)
    difference = norm_of(differences, METRIC)
    term = size * 0
    if METRIC.squares:
        term = tl.sum(sizes, 1)
    if PRODUCTS:
        difference, gamma = product_errors(size, difference, d, PRECISION)
        if INT8:
            exact = (tl.sum(rounded_off, 1) == 0) & (term <= COUNTED)
            difference = tl.where(exact, 0.0, difference)
            gamma = tl.where(exact, 0.0, gamma)
    else:
        difference += size * _DOUBLE_RATIO
        difference *= METRIC.stretch
        gamma = gamma_of(tl.cast(d, tl.float64) + 64)
    rounded = size + difference  # at least |x^|
    packed = present & (beyond == 0)
    rounding = (difference + gamma * rounded) * ROUNDED + TINY

    if POINTS:
        if PRODUCTS:
            own = gamma * term + TINY
            e1 = 2 * difference
            # Bounds of queries packed exactly omit gamma, so points that are not packed exactly must include it.
            if INT8:
                e1 += 2 * gamma * rounded * ROUNDED
            e2 = 2 * rounded + TINY
        else:
            own = rounding * (1 + 2 * gamma)
            e1 = term + 1
            e2 = term
        low = tl.where(packed, round_down(term - own), tl.where(present, -_HUGE, _INFINITY))
        tl.store(low_ptr + row, low)
        tl.store(e1_ptr + tl.program_id(0), tl.max(tl.where(packed, round_up(e1), 0.0), 0))
        tl.store(e2_ptr + tl.program_id(0), tl.max(tl.where(packed, round_up(e2), 0.0), 0))
    else:
        if PRODUCTS:
            norm = size * ROUNDED + TINY
            remainder = rounding
            if INT8:
                remainder += tl.where(exact, 0.0, _STEP)
        else:
            norm = rounding
            remainder = term
        store_query_terms(norm_ptr, rest_ptr, shift_ptr, row, present, packed, beyond, norm, remainder, term)
