"""One round of splits: find each segment's dimension of largest variance, then compute a sort key for each point.

A segment is a run of positions that the round cuts in two. `spread_kernel` reads SAMPLES evenly spaced points of each
segment; its programs process SEGMENTS segments and loop over the dimensions. `key_kernel` gives position i the key
(int32)

    segment << bits | floor((value - low) / (high - low) * steps)

Keys have the order of (segment, value), except that values of the same step are equal. A split need not be the exact
median, because boxes are computed from the points that they contain. (gieseke2014, section 3.3, splits at exact
medians, on the host.)
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["segments", "last"], do_not_specialize_on_alignment=["bounds_ptr"])
def spread_kernel(
    # inputs
    rows_ptr, order_ptr, bounds_ptr,
    # outputs: [segment]
    widest_ptr, low_ptr, high_ptr,
    # shapes
    segments, last,
    # constants
    D: tl.constexpr, SAMPLES: tl.constexpr, SEGMENTS: tl.constexpr,
):  # fmt: skip
    """Find, from a sample, each segment's dimension of largest variance, and the smallest and largest value there."""
    segment = tl.program_id(0) * SEGMENTS + tl.arange(0, SEGMENTS)
    present = segment < segments
    begin = tl.load(bounds_ptr + segment, mask=present, other=0)
    size = tl.load(bounds_ptr + segment + 1, mask=present, other=0) - begin
    at = begin[:, None] + tl.arange(0, SAMPLES)[None, :].to(tl.int64) * size[:, None] // SAMPLES
    # The last leaves may begin after the last point, so positions are clipped to the last point.
    row_at = tl.load(order_ptr + tl.minimum(at, last)).to(tl.int64) * D
    widest = tl.zeros([SEGMENTS], tl.int32)
    most = tl.full([SEGMENTS], -1, rows_ptr.dtype.element_ty)
    for dimension in tl.range(D):
        values = tl.load(rows_ptr + row_at + dimension)  # [SEGMENTS, SAMPLES]
        gaps = values - (tl.sum(values, axis=1) / SAMPLES)[:, None]
        spread = tl.sum(gaps * gaps, axis=1)
        wider = spread > most
        most = tl.where(wider, spread, most)
        widest = tl.where(wider, dimension, widest)
    values = tl.load(rows_ptr + row_at + widest[:, None])
    tl.store(widest_ptr + segment, widest, mask=present)
    tl.store(low_ptr + segment, tl.min(values, axis=1), mask=present)
    tl.store(high_ptr + segment, tl.max(values, axis=1), mask=present)


@triton.jit(do_not_specialize=["n", "segments", "halvings", "bits"], do_not_specialize_on_alignment=["bounds_ptr"])
def key_kernel(
    # inputs
    rows_ptr, order_ptr, bounds_ptr, widest_ptr, low_ptr, high_ptr,
    # output: [position]
    keys_ptr,
    # shapes
    n, segments, halvings, bits,
    # constants
    D: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Compute the sort key of each position; a binary search of `halvings` steps finds the position's segment."""
    position = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    present = position < n
    segment = tl.zeros([BLOCK], tl.int32)
    beyond = tl.zeros([BLOCK], tl.int32) + segments
    for _ in tl.range(halvings):
        middle = (segment + beyond) // 2
        right = tl.load(bounds_ptr + middle) <= position
        segment = tl.where(right, middle, segment)
        beyond = tl.where(right, beyond, middle)
    row = tl.load(order_ptr + position, mask=present, other=0).to(tl.int64)
    value = tl.load(rows_ptr + row * D + tl.load(widest_ptr + segment))  # [BLOCK]
    low = tl.load(low_ptr + segment)
    width = tl.load(high_ptr + segment) - low
    most = (1 << bits) - 1
    step = (value - low) / tl.where(width > 0, width, 1.0) * most
    step = tl.minimum(tl.maximum(step, 0.0), most).to(tl.int32)
    tl.store(keys_ptr + position, (segment << bits) | step, mask=present)
