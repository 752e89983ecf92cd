"""Copy the points to their leaves, and compute the boxes around them level by level.

A program of `place_kernel` copies a leaf in blocks of BLOCK points, column by column, as warps read them in a search. A
program of `enclose_kernel` computes a node on a higher level: each of its boxes belongs to a child, and encloses the
WIDTH boxes of that child.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["n", "blocks"])
def place_kernel(
    # inputs
    rows_ptr, order_ptr,
    # outputs: ids [position], points [block, dimension, position], boxes [node, dimension, side, child]
    ids_ptr, placed_ptr, boxes_ptr,
    # shapes
    n, blocks,
    # constants
    D: tl.constexpr, BLOCK: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Copy the points of a leaf to their places, padded with ids -1 and coordinates +inf, and store the leaf's box."""
    leaf = tl.program_id(0).to(tl.int64)
    box_ptr = boxes_ptr + leaf // WIDTH * D * 2 * WIDTH + leaf % WIDTH
    lanes = tl.arange(0, BLOCK)
    for dimension in tl.range(D):
        low = tl.full([], float("inf"), rows_ptr.dtype.element_ty)
        high = -low
        for block in tl.range(leaf * blocks, (leaf + 1) * blocks):
            present = block * BLOCK + lanes < n
            row = tl.load(order_ptr + block * BLOCK + lanes, mask=present, other=-1)
            tl.store(ids_ptr + block * BLOCK + lanes, row.to(tl.int32))
            value = tl.load(rows_ptr + row.to(tl.int64) * D + dimension, mask=present, other=float("inf"))
            tl.store(placed_ptr + (block * D + dimension) * BLOCK + lanes, value)
            low = tl.minimum(low, tl.min(value, axis=0))
            high = tl.maximum(high, tl.max(tl.where(present, value, float("-inf")), axis=0))
        tl.store(box_ptr + dimension * 2 * WIDTH, low)
        tl.store(box_ptr + (dimension * 2 + 1) * WIDTH, high)


@triton.jit(do_not_specialize=["below", "children", "begin"])
def enclose_kernel(
    # input and output: [node, dimension, side, child]
    boxes_ptr,
    # shapes
    below, children, begin,
    # constants
    D: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Store a node's boxes, one for each child, which encloses all boxes of the child.

    The node's level begins at node `begin`; the level of its children begins at node `below` and has `children` nodes.
    """
    node = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, WIDTH)
    child = node * WIDTH + lanes
    present = child < children
    inner = (below + child)[:, None] * D * 2 * WIDTH + lanes[None, :]
    outer = (begin + node) * D * 2 * WIDTH + lanes
    for dimension in tl.range(D):
        at = dimension * 2 * WIDTH
        low = tl.load(boxes_ptr + inner + at, mask=present[:, None], other=float("inf"))
        high = tl.load(boxes_ptr + inner + at + WIDTH, mask=present[:, None], other=float("inf"))
        highest = tl.max(tl.where(high < float("inf"), high, float("-inf")), axis=1)  # +inf: an absent child
        tl.store(boxes_ptr + outer + at, tl.min(low, axis=1))
        tl.store(boxes_ptr + outer + at + WIDTH, tl.where(present, highest, float("inf")))
