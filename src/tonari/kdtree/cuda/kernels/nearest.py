"""Compute the exact values of a block of points, and insert them into the list of one query's LIST nearest points.

list           ascending by (value, id), one entry per lane; an insertion moves the larger entries up by one lane
value          the bits of the returned value, as an integer: nonnegative floats are in the order of their bits
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.kdtree.cuda.kernels.bounds import limit_of
from tonari.metrics.kernels.instructions import sqrt
from tonari.metrics.kernels.terms import of_distance

NO_ID = tl.constexpr(0x7FFFFFFF)


@triton.jit
def exact_values(query, points, D: tl.constexpr, METRIC: tl.constexpr, DOUBLE: tl.constexpr):
    """Compute the returned values of points from D tensors of coordinates, as bits in the order of the values."""
    lanes = ()
    for j in tl.static_range(min(D, 16)):
        t = query[j].to(tl.float64) - points[j].to(tl.float64)
        total = t * t if METRIC.squares else of_distance(tl.abs(t), METRIC)
        for i in tl.static_range(j + 16, D, 16):
            t = query[i].to(tl.float64) - points[i].to(tl.float64)
            if METRIC.squares:
                total = total + t * t
            elif METRIC.maximum:
                total = tl.maximum(total, tl.abs(t))
            else:
                total = total + of_distance(tl.abs(t), METRIC)
        lanes = lanes + (total,)
    # Add 16 lanes pairwise, to 8, 4, 2 and 1. Lanes beyond the last dimension would be zeros, which change nothing.
    for half in tl.static_range(4):
        joined = ()
        for j in tl.static_range(min(D, 8 >> half)):
            total = lanes[j]
            if j + (8 >> half) < min(D, 16 >> half):
                other = lanes[j + (8 >> half)]
                total = tl.maximum(total, other) if METRIC.maximum else total + other
            joined = joined + (total,)
        lanes = joined
    value = lanes[0]
    if METRIC.root:
        value = sqrt(value)
    if DOUBLE:
        bits = value.to(tl.int64, bitcast=True)
    else:
        bits = value.to(tl.float32).to(tl.int32, bitcast=True)
    return bits


@triton.jit
def nearest_of(values, ids):
    """Return the smallest (value, id) pair of all lanes."""
    value = tl.min(values)
    return value, tl.min(tl.where(values == value, ids, NO_ID))


@triton.jit
def keep_nearest(
    values, ids, limit, found, numbers, k,
    D: tl.constexpr, METRIC: tl.constexpr, DOUBLE: tl.constexpr, LIST: tl.constexpr, WIDTH: tl.constexpr,
    NOTHING: tl.constexpr,
):  # fmt: skip
    """Insert the points with ids `numbers` and exact values `found` into the list; return the new list and limit."""
    slot = tl.arange(0, LIST)
    last = tl.min(tl.where(slot >= k - 1, values, NOTHING))
    last_id = tl.min(tl.where(slot == k - 1, ids, NO_ID))
    value, number = nearest_of(found, numbers)
    while (value < NOTHING) & ((value < last) | ((value == last) & (number < last_id))):
        before = (values < value) | ((values == value) & (ids < number))
        left = tl.gather(values, tl.maximum(slot - 1, 0), 0)
        left_id = tl.gather(ids, tl.maximum(slot - 1, 0), 0)
        first = (slot == 0) | (left < value) | ((left == value) & (left_id < number))
        values = tl.where(before, values, tl.where(first, value, left))
        ids = tl.where(before, ids, tl.where(first, number, left_id))
        found = tl.where((found == value) & (numbers == number), NOTHING, found)
        last = tl.min(tl.where(slot >= k - 1, values, NOTHING))
        last_id = tl.min(tl.where(slot == k - 1, ids, NO_ID))
        value, number = nearest_of(found, numbers)
    if last < NOTHING:
        limit = limit_of(last.to(tl.float64 if DOUBLE else tl.float32, bitcast=True), D, METRIC, WIDTH)
    return values, ids, limit
