"""Compute exact values of some queries and every point of a slice.

    program        POINTS consecutive points, and some of the queries, in steps of four
    one step       a tile [POINTS, 16] of the points, used for four queries; each thread has LANES lanes of each query

Queries and points are widened (kernels/rows/widen.py): padded to whole steps of 16 columns, with means subtracted. The
kernel is bound by float64 arithmetic: three operations per query, point and column, each rounded. If the cosine of a
query and any of the points exceeds 1/2, the program reads the points again, and computes the values of such close pairs
from their squared chords.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.exact.cuda.kernels.rows.value import (
    add_chord,
    add_own_terms,
    add_terms,
    angular_value,
    cosine_of,
    fold,
    inverse_of,
    value_of,
)
from tonari.select.cuda.kernels.ordering.order import ascending, make_keys


@triton.jit
def squared_chord(query_ptrs, point_ptrs, width, query_inverse, point_inverse, close, POINTS: tl.constexpr):
    """Return the squared chords [POINTS] between the query and the points; undefined where not `close`."""
    lanes = tl.zeros([POINTS, 16], tl.float64)
    stop = tl.where(tl.max(close.to(tl.int32)) > 0, width, 0)
    for at in tl.range(0, stop, 16):
        x = tl.load(point_ptrs + at, mask=close[:, None]).to(tl.float64)  # [POINTS, 16]
        q = tl.load(query_ptrs + at)[None, :].to(tl.float64)  # [1, 16]
        lanes = add_chord(lanes, q, x, query_inverse, point_inverse[:, None])
    return fold(lanes, POINTS, False)


@triton.jit
def store_row(
    lanes, query_ptrs, point_ptrs, width, d, row, rows, point, count, first_id, query_norms_ptr, point_norms, own_ptr,
    out_ptr, out_stride,
    METRIC: tl.constexpr, DOUBLE: tl.constexpr, HAS_OWN: tl.constexpr, POINTS: tl.constexpr,
):  # fmt: skip
    """Add up the lanes (partial sums) of one query's pairs, and store the values or their sort keys."""
    present = point < tl.where(row < rows, count, 0)
    ids = first_id + point
    at = tl.minimum(row, rows - 1)
    if HAS_OWN:
        kept = ids != tl.load(own_ptr + at)
    else:
        kept = present
    folded = fold(lanes, POINTS, METRIC.maximum)
    if METRIC.angular:
        query_norm = tl.load(query_norms_ptr + at)
        cosine, close = cosine_of(folded, query_norm, point_norms)
        close = close & present
        square = squared_chord(
            query_ptrs, point_ptrs, width, inverse_of(query_norm), inverse_of(point_norms), close, POINTS
        )
        values = angular_value(cosine, close, square, d)
    else:
        values = ascending(value_of(folded, METRIC), METRIC.descending)
    out = tl.where(kept, values, float("inf")) if DOUBLE else make_keys(values, ids, kept)
    tl.store(out_ptr + row.to(tl.int64) * out_stride + point, out, mask=present)


@triton.jit
def add_step(lanes, query_ptrs, x, at, d, METRIC: tl.constexpr, TERM: tl.constexpr):
    """Add the terms of columns [at, at + 16) to the lanes (partial sums) of one query."""
    q = tl.load(query_ptrs + at)[None, :]  # [1, 16]
    if METRIC.own:
        lanes = add_own_terms(lanes, q, x, at + tl.arange(0, 16) < d, TERM)
    else:
        lanes = add_terms(lanes, q, x, METRIC, TERM)
    return lanes


@triton.jit(do_not_specialize=["rows", "count", "first_id", "d", "units", "out_stride", "parts", "rows_per_part"])
def dense_kernel(
    # inputs
    queries_ptr, query_norms_ptr, points_ptr, point_norms_ptr, own_ptr,
    # output: float64 [row][out_stride]
    out_ptr,
    # shapes
    rows, count, first_id, d, units, out_stride, parts, rows_per_part,
    # constants
    METRIC: tl.constexpr, TERM: tl.constexpr, DOUBLE: tl.constexpr, HAS_OWN: tl.constexpr, POINTS: tl.constexpr,
    LANES: tl.constexpr,
):  # fmt: skip
    """Write one entry for every (query, point) pair; `first_id` is the id of the first point.

    An entry is a sort key made of the float32 value and the point's id or, if DOUBLE, the float64 value itself.
    """
    width = units * LANES
    # Consecutive programs, which run at the same time, read the same points.
    begin = (tl.program_id(0) % parts) * rows_per_part
    end = tl.minimum(begin + rows_per_part, rows)
    point = (tl.program_id(0) // parts) * POINTS + tl.arange(0, POINTS)
    present = point < count
    column = tl.arange(0, 16)
    point_ptrs = points_ptr + (point.to(tl.int64) * width)[:, None] + column[None, :]
    point_norms = 0.0
    if METRIC.angular:
        point_norms = tl.load(point_norms_ptr + point, mask=present, other=0.0)
    for start in tl.range(begin, end, 4):
        row = tl.cast(start, tl.int32)
        # Steps after the last query compute its values once more, but do not store them.
        q0_ptrs = queries_ptr + row.to(tl.int64) * width + column
        q1_ptrs = queries_ptr + tl.minimum(row + 1, rows - 1).to(tl.int64) * width + column
        q2_ptrs = queries_ptr + tl.minimum(row + 2, rows - 1).to(tl.int64) * width + column
        q3_ptrs = queries_ptr + tl.minimum(row + 3, rows - 1).to(tl.int64) * width + column
        lanes0 = tl.zeros([POINTS, 16], tl.float64)
        lanes1 = lanes0
        lanes2 = lanes0
        lanes3 = lanes0
        for at in tl.range(0, width, 16):
            x = tl.load(point_ptrs + at, mask=present[:, None]).to(tl.float64)  # [POINTS, 16]
            lanes0 = add_step(lanes0, q0_ptrs, x, at, d, METRIC, TERM)
            lanes1 = add_step(lanes1, q1_ptrs, x, at, d, METRIC, TERM)
            lanes2 = add_step(lanes2, q2_ptrs, x, at, d, METRIC, TERM)
            lanes3 = add_step(lanes3, q3_ptrs, x, at, d, METRIC, TERM)
        store_row(
            lanes0, q0_ptrs, point_ptrs, width, d, row, rows, point, count, first_id, query_norms_ptr, point_norms,
            own_ptr, out_ptr, out_stride, METRIC, DOUBLE, HAS_OWN, POINTS,
        )  # fmt: skip
        store_row(
            lanes1, q1_ptrs, point_ptrs, width, d, row + 1, rows, point, count, first_id, query_norms_ptr, point_norms,
            own_ptr, out_ptr, out_stride, METRIC, DOUBLE, HAS_OWN, POINTS,
        )  # fmt: skip
        store_row(
            lanes2, q2_ptrs, point_ptrs, width, d, row + 2, rows, point, count, first_id, query_norms_ptr, point_norms,
            own_ptr, out_ptr, out_stride, METRIC, DOUBLE, HAS_OWN, POINTS,
        )  # fmt: skip
        store_row(
            lanes3, q3_ptrs, point_ptrs, width, d, row + 3, rows, point, count, first_id, query_norms_ptr, point_norms,
            own_ptr, out_ptr, out_stride, METRIC, DOUBLE, HAS_OWN, POINTS,
        )  # fmt: skip
