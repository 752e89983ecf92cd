"""Lower bounds of the distance from a query to boxes and points, by differences of coordinates in single precision.

    lane           a child of a node (32 of them), or a point of a leaf
    key of a box   the bits of the bound, with the lowest five replaced by the child's index. The bits of nonnegative
                   floats have the same order as the floats, so one integer minimum over a warp finds the nearest
                   child; dropping the low bits can only lower the bound

:func:`limit_of` returns the threshold for these bounds, with a margin for every rounding error made here
(docs/kdtree.md).
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.metrics.kernels.terms import of_distance


@triton.jit
def add_difference(total, t, METRIC: tl.constexpr):
    """Add to a bound the term of one dimension; `t`, which may be negative, is the difference in this dimension."""
    if METRIC.squares:
        return tl.fma(t, t, total)
    if METRIC.maximum:
        return tl.maximum(total, tl.abs(t))
    return total + of_distance(tl.abs(t), METRIC)


@triton.jit
def load_query(rows_ptr, row, D: tl.constexpr):
    """Load the D values of one row as a tuple of scalars."""
    query = ()
    for i in tl.static_range(D):
        query = query + (tl.load(rows_ptr + row * D + i),)
    return query


@triton.jit
def child_keys(query, boxes_ptr, node, D: tl.constexpr, METRIC: tl.constexpr, WIDTH: tl.constexpr):
    """Compute the keys (bits of lower bounds) [WIDTH] of the boxes of a node's children for a query."""
    tl.static_assert((WIDTH & (WIDTH - 1)) == 0, "a child's number takes whole bits of its key")
    lane = tl.arange(0, WIDTH)
    box_ptrs = boxes_ptr + node.to(tl.int64) * (2 * D * WIDTH) + lane
    total = tl.zeros([WIDTH], tl.float32)
    for i in tl.static_range(D):
        low = tl.load(box_ptrs + 2 * i * WIDTH)  # [WIDTH]
        high = tl.load(box_ptrs + (2 * i + 1) * WIDTH)
        gap = tl.maximum(tl.maximum(low - query[i], query[i] - high), 0.0)
        total = add_difference(total, gap.to(tl.float32), METRIC)
    bits = total.to(tl.int32, bitcast=True)
    return (bits & ~(WIDTH - 1)) | lane


@triton.jit
def limit_of(value, D: tl.constexpr, METRIC: tl.constexpr, WIDTH: tl.constexpr):
    """Return the largest key that a box may have if it contains a point with a returned value of at most `value`."""
    if METRIC.root:
        reach = value * value
    else:
        reach = value
    # (D + 16) 2**-23 covers the errors of the sum, of its terms, of rounding `value` and of this computation; 1e-36
    # covers underflow.
    reach = (reach * (1.0 + (D + 16) * 1.1920929e-07) + 1e-36).to(tl.float32)
    reach = tl.minimum(reach * 1.000001, 3.0e38)
    return reach.to(tl.int32, bitcast=True) | (WIDTH - 1)
