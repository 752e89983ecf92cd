"""Compute exact values of the members of candidate groups, whose rows are gathered.

    program        CHUNK candidates of one query, each an arbitrary row of the points
    one step       a tile [CHUNK, 16] of their columns: four lanes per thread, so that four threads read the 64 bytes
                   (float32) of one candidate; the loads of four steps are in flight at once
    query          float64 rows of whole steps (kernels/rows/widen.py), read by every program of the row
    angles         candidates whose cosine exceeds 1/2 are read once more, for the chord

The output is ordered afterwards: keys (select/cuda/kernels/ordering/order.py), or float64 values in ascending order of
id.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.exact.cuda.kernels.rows.groups import member_column
from tonari.exact.cuda.kernels.rows.value import (
    add_chord,
    add_own_terms,
    add_terms,
    angular_value,
    cosine_of,
    fold,
    inverse_of,
    less_mean,
    load_lanes,
    means,
    value_of,
    widened,
)
from tonari.metrics.kernels.instructions import sqrt
from tonari.select.cuda.kernels.ordering.order import ascending, make_keys


@triton.jit
def candidates(
    groups_ptr, own_ptr, row, numbers, width, groups_stride, n,
    HAS_OWN: tl.constexpr, GROUP: tl.constexpr, POINT_TILE: tl.constexpr,
):  # fmt: skip
    """Return the points at positions `numbers` of a row's candidates, and a mask of the positions that exist."""
    tl.static_assert((GROUP & (GROUP - 1)) == 0)
    slot = numbers // GROUP
    group = tl.load(groups_ptr + row * groups_stride + slot, mask=slot < width, other=-1)
    # A bit mask, not a remainder: from a remainder of a remainder, Triton 3.6 wrongly infers that all ids are even, and
    # emits loads that are wider than the alignment of rows.
    ids = member_column(tl.maximum(group, 0), numbers & (GROUP - 1), GROUP, POINT_TILE)
    present = (group >= 0) & (ids >= 0) & (ids < n)  # ids in the padding of the last tile may overflow and be negative
    if HAS_OWN:
        present = present & (ids != tl.load(own_ptr + row))
    return ids, present


@triton.jit
def add_step(
    lanes, squares, query_ptrs, x, mean, at, d, METRIC: tl.constexpr, TERM: tl.constexpr, LAST: tl.constexpr
):  # fmt: skip
    """Add the terms of columns [at, at + 16) to the lanes (partial sums); angular metrics also add to `squares`."""
    x = widened(x).to(tl.float64)
    if METRIC.centred:
        if LAST:
            x = less_mean(x, mean, at, d)
        else:
            x -= mean[:, None]
    if METRIC.angular:
        squares += x * x
    q = tl.load(query_ptrs + at)[None, :]  # [1, 16]
    if METRIC.own:
        lanes = add_own_terms(lanes, q, x, at + tl.arange(0, 16) < d, TERM)
    else:
        lanes = add_terms(lanes, q, x, METRIC, TERM)
    return lanes, squares


@triton.jit
def add_chord_step(lanes, query_ptrs, x, mean, query_inverse, point_inverse, at, d, METRIC: tl.constexpr):
    """Add the terms of columns [at, at + 16) to the lanes (partial sums) of squared chords."""
    x = widened(x).to(tl.float64)
    if METRIC.centred:
        x = less_mean(x, mean, at, d)
    q = tl.load(query_ptrs + at)[None, :]  # [1, 16]
    return add_chord(lanes, q, x, query_inverse, point_inverse[:, None])


@triton.jit
def squared_chord(
    row_ptrs, query_ptrs, mean, query_inverse, point_inverse, close, d,
    METRIC: tl.constexpr, UNIT: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """Return squared chords [CHUNK], undefined for candidates that are not `close`; reads nothing if none is close."""
    lanes = tl.zeros([CHUNK, 16], tl.float64)
    stop = tl.where(tl.max(close.to(tl.int32)) > 0, d, 0)
    batches = stop // 64 * 64
    for at in tl.range(0, batches, 64):
        x0 = load_lanes(row_ptrs, at, d, close, UNIT, False)  # [CHUNK, 16]
        x1 = load_lanes(row_ptrs, at + 16, d, close, UNIT, False)
        x2 = load_lanes(row_ptrs, at + 32, d, close, UNIT, False)
        x3 = load_lanes(row_ptrs, at + 48, d, close, UNIT, False)
        lanes = add_chord_step(lanes, query_ptrs, x0, mean, query_inverse, point_inverse, at, d, METRIC)
        lanes = add_chord_step(lanes, query_ptrs, x1, mean, query_inverse, point_inverse, at + 16, d, METRIC)
        lanes = add_chord_step(lanes, query_ptrs, x2, mean, query_inverse, point_inverse, at + 32, d, METRIC)
        lanes = add_chord_step(lanes, query_ptrs, x3, mean, query_inverse, point_inverse, at + 48, d, METRIC)
    for at in tl.range(batches, stop, 16):
        x = load_lanes(row_ptrs, at, d, close, UNIT, True)
        lanes = add_chord_step(lanes, query_ptrs, x, mean, query_inverse, point_inverse, at, d, METRIC)
    return fold(lanes, CHUNK, False)


@triton.jit
def values_of(
    row_ptrs, query_ptrs, norms_ptr, row, present, d,
    METRIC: tl.constexpr, TERM: tl.constexpr, UNIT: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """Return the float64 values [CHUNK] of a query and some points; values of absent points are undefined.

    `query_ptrs` [16] points to the first 16 columns of the widened query. Only angular metrics load the norm of query
    `row`.
    """
    mean = 0.0
    if METRIC.centred:
        mean, differs = means(row_ptrs, d, present, CHUNK, UNIT)
    lanes = tl.zeros([CHUNK, 16], tl.float64)
    squares = lanes
    # Without a candidate, nothing is read. Loads are issued for four steps at once; the remaining steps are loaded one
    # by one.
    stop = tl.where(tl.max(present.to(tl.int32)) > 0, d, 0)
    batches = stop // 64 * 64
    for at in tl.range(0, batches, 64):
        x0 = load_lanes(row_ptrs, at, d, present, UNIT, False)  # [CHUNK, 16]
        x1 = load_lanes(row_ptrs, at + 16, d, present, UNIT, False)
        x2 = load_lanes(row_ptrs, at + 32, d, present, UNIT, False)
        x3 = load_lanes(row_ptrs, at + 48, d, present, UNIT, False)
        lanes, squares = add_step(lanes, squares, query_ptrs, x0, mean, at, d, METRIC, TERM, False)
        lanes, squares = add_step(lanes, squares, query_ptrs, x1, mean, at + 16, d, METRIC, TERM, False)
        lanes, squares = add_step(lanes, squares, query_ptrs, x2, mean, at + 32, d, METRIC, TERM, False)
        lanes, squares = add_step(lanes, squares, query_ptrs, x3, mean, at + 48, d, METRIC, TERM, False)
    for at in tl.range(batches, stop, 16):
        x = load_lanes(row_ptrs, at, d, present, UNIT, True)
        lanes, squares = add_step(lanes, squares, query_ptrs, x, mean, at, d, METRIC, TERM, True)

    folded = fold(lanes, CHUNK, METRIC.maximum)
    if METRIC.angular:
        query_norm = tl.load(norms_ptr + row)
        point_norm = sqrt(fold(squares, CHUNK, False))
        if METRIC.centred:
            point_norm = tl.where(differs, point_norm, 0.0)
        cosine, close = cosine_of(folded, query_norm, point_norm)
        close = close & present
        square = squared_chord(
            row_ptrs, query_ptrs, mean, inverse_of(query_norm), inverse_of(point_norm), close, d, METRIC, UNIT, CHUNK
        )
        values = angular_value(cosine, close, square, d)
    else:
        values = value_of(folded, METRIC)
    return values


@triton.jit(do_not_specialize=["width", "groups_stride", "columns", "chunks", "n"])
def members_kernel(
    # inputs
    groups_ptr, own_ptr,
    # output: int32 [row][columns]
    ids_ptr,
    # shapes
    width, groups_stride, columns, chunks, n,
    # constants
    HAS_OWN: tl.constexpr, GROUP: tl.constexpr, POINT_TILE: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """Write the row number of every candidate, and 2**31 - 1 at positions without a candidate."""
    program = tl.program_id(0)
    row = (program // chunks).to(tl.int64)
    numbers = (program % chunks) * CHUNK + tl.arange(0, CHUNK)
    ids, present = candidates(groups_ptr, own_ptr, row, numbers, width, groups_stride, n, HAS_OWN, GROUP, POINT_TILE)
    count = width * GROUP
    tl.store(ids_ptr + row * columns + numbers, tl.where(present, ids, 0x7FFFFFFF), mask=numbers < count)


@triton.jit(do_not_specialize=["d", "units", "width", "groups_stride", "columns", "chunks", "n"])
def refine_kernel(
    # inputs
    queries_ptr, norms_ptr, points_ptr, groups_ptr, own_ptr,
    ids_ptr,  # [row][columns]
    # output: float64 [row][columns]
    out_ptr,
    # shapes
    d, query_width, units, width, groups_stride, columns, chunks, n,
    # constants
    METRIC: tl.constexpr, TERM: tl.constexpr, LISTED: tl.constexpr, HAS_OWN: tl.constexpr, GROUP: tl.constexpr,
    POINT_TILE: tl.constexpr, UNIT: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """Write one entry for every (query, candidate) pair.

    An entry is a sort key made of the float32 value and the point's id or, if LISTED, the float64 value of a point
    listed in `ids_ptr`.
    """
    program = tl.program_id(0)
    row = (program // chunks).to(tl.int64)
    numbers = (program % chunks) * CHUNK + tl.arange(0, CHUNK)
    count = width * GROUP
    if LISTED:
        ids = tl.load(ids_ptr + row * columns + numbers, mask=numbers < count, other=0x7FFFFFFF)  # [CHUNK]
        present = ids < 0x7FFFFFFF
    else:
        ids, present = candidates(
            groups_ptr, own_ptr, row, numbers, width, groups_stride, n, HAS_OWN, GROUP, POINT_TILE
        )
    row_ptrs = points_ptr + ids.to(tl.int64) * (units.to(tl.int64) * UNIT)
    query_ptrs = queries_ptr + row * query_width + tl.arange(0, 16)
    values = values_of(row_ptrs, query_ptrs, norms_ptr, row, present, d, METRIC, TERM, UNIT, CHUNK)
    values = ascending(values, METRIC.descending)
    out = tl.where(present, values, float("inf")) if LISTED else make_keys(values, ids, present)
    tl.store(out_ptr + row * columns + numbers, out, mask=numbers < count)
