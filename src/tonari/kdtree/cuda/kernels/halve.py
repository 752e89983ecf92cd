"""Make the last five splits of a tree: halve the points of a node, a run of 32 leaves, five times.

A launch makes one split of all nodes, and a program processes a node. At level l, the node has COUNT = 2^l segments of
LEAVES = 32 / 2^l leaves. In each segment, the program finds the dimension of largest variance, maps the values in this
dimension to steps,

    step = floor((value - low) / (high - low) * (2^BITS - 1))

finds the median step bit by bit, by counting smaller steps BITS times, and moves the points up to the median to the
left half and the others to the right half. Points are moved within `order`, without another buffer. Ties at the median
go to the left half, in the order of their positions, until it is full. A node with fewer points fills its leaves from
the left. Five levels take 0.2 ms, the time of sorting a single level (kernels/split.py) at any size.

Each level has its own variant of the kernel, so that the five are compiled at the same time; a single kernel for all
levels would take as long to compile as the five together.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["n", "leaf"])
def halve_kernel(
    # input
    rows_ptr,
    # input and output: [position]
    order_ptr,
    # shapes
    n, leaf,
    # constants
    D: tl.constexpr, LEAF: tl.constexpr, COUNT: tl.constexpr, LEAVES: tl.constexpr, BITS: tl.constexpr,
):  # fmt: skip
    """Halve the COUNT segments of a node, each of LEAVES leaves; LEAF is a power of two, at least `leaf`."""
    first = tl.program_id(0).to(tl.int64) * COUNT * LEAVES * leaf
    length: tl.constexpr = LEAVES * LEAF
    size = LEAVES * leaf
    value_type = rows_ptr.dtype.element_ty
    place = tl.arange(0, length)[None, :]
    at = first + tl.arange(0, COUNT)[:, None] * size + place
    present = (place < size) & (at < n)
    row = tl.load(order_ptr + at, mask=present, other=0).to(tl.int64)
    points = tl.maximum(tl.sum(present.to(tl.int32), axis=1), 1)

    most = tl.full([COUNT], -1, value_type)
    low = tl.zeros([COUNT], value_type)
    width = tl.zeros([COUNT], value_type)
    values = tl.zeros([COUNT, length], value_type)
    for dimension in tl.range(D):
        value = tl.load(rows_ptr + row * D + dimension, mask=present, other=0)
        gaps = tl.where(present, value - (tl.sum(value, axis=1) / points)[:, None], 0)
        spread = tl.sum(gaps * gaps, axis=1)
        wider = spread > most
        most = tl.where(wider, spread, most)
        least = tl.min(tl.where(present, value, float("inf")), axis=1)
        low = tl.where(wider, least, low)
        width = tl.where(wider, tl.max(tl.where(present, value, float("-inf")), axis=1) - least, width)
        values = tl.where(wider[:, None], value, values)
    last: tl.constexpr = (1 << BITS) - 1
    step = tl.where(present, values - low[:, None], 0) / tl.where(width > 0, width, 1)[:, None] * last
    step = tl.minimum(step, last).to(tl.int32)  # rounding may make the quotient exceed 1

    half = size // 2
    middle = tl.zeros([COUNT], tl.int32)
    for bit in tl.range(BITS):
        larger = middle + (1 << (BITS - 1 - bit))
        smaller = tl.sum((present & (step < larger[:, None])).to(tl.int32), axis=1)
        middle = tl.where(smaller < half, larger, middle)
    below = (present & (step < middle[:, None])).to(tl.int32)
    tied = (present & (step == middle[:, None])).to(tl.int32)
    room = (half - tl.sum(below, axis=1))[:, None]
    # One scan counts smaller and equal steps, in two halves of an integer; two scans would take longer to compile.
    tl.static_assert(length < 1 << 16)
    counts = tl.cumsum(below + (tied << 16), axis=1)
    rank = counts >> 16  # rank of a point among the equal steps of its segment
    left = (below > 0) | ((tied > 0) & (rank <= room))
    count = (counts & 0xFFFF) + tl.minimum(rank, room)  # points of the left half up to this position
    to = at - place + tl.where(left, count - 1, half + place - count)
    tl.debug_barrier()  # no position is overwritten before all threads have loaded
    tl.store(order_ptr + to, row, mask=present)
