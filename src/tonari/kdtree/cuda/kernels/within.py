"""Find all points within the limit of every query by walking the tree: one warp per query, as in kernels/search.py.

    node, leaf    as in the walk for the k nearest, but the limit does not change. Therefore the order of children does
                  not matter, and no child is compared twice
    hits          the points within the limit, written one after another from the query's first position in the output
                  up to the end of its room; hits beyond the room are only counted

Exact: all skipped points are farther than the limit (kernels/bounds.py), and the exact values of all other points are
compared with it. Launch with ``fused=False``.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.kdtree.cuda.kernels.bounds import add_difference, child_keys, limit_of, load_query
from tonari.kdtree.cuda.kernels.nearest import exact_values


@triton.jit
def scan_leaf(
    query, hits, reach, limit, leaf, rows_ptr, ids_ptr, own, blocks, values_ptr, found_ptr, room,
    D: tl.constexpr, METRIC: tl.constexpr, DOUBLE: tl.constexpr, LISTED: tl.constexpr, LATER: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Write and count the points of a leaf that are within the limit; return the query's number of hits so far."""
    for block in tl.range(leaf.to(tl.int64) * blocks, (leaf.to(tl.int64) + 1) * blocks):
        at = block * BLOCK + tl.arange(0, BLOCK)
        column_ptrs = rows_ptr + block * (D * BLOCK) + tl.arange(0, BLOCK)
        points = ()
        total = tl.zeros([BLOCK], rows_ptr.dtype.element_ty)
        for i in tl.static_range(D):
            x = tl.load(column_ptrs + i * BLOCK)  # [BLOCK]
            points = points + (x,)
            total = add_difference(total, query[i] - x, METRIC)
        near = total.to(tl.float32).to(tl.int32, bitcast=True) <= reach
        if tl.max(near.to(tl.int32)) > 0:
            numbers = tl.load(ids_ptr + at)
            values = exact_values(query, points, D, METRIC, DOUBLE)
            inside = near & (values <= limit)
            if LATER:
                inside = inside & (numbers > own)
            else:
                inside = inside & (numbers != own)
            hit = inside.to(tl.int32)
            if LISTED:
                place = hits + tl.cumsum(hit, 0) - hit
                chosen = inside & (place < room)
                tl.store(values_ptr + place, values, mask=chosen)
                tl.store(found_ptr + place, numbers, mask=chosen)
            hits += tl.sum(hit, 0)
    return hits


@triton.jit
def visit(
    query, hits, reach, limit, node, level_ptrs, rows_ptr, ids_ptr, own, blocks, values_ptr, found_ptr, room,
    LEVEL: tl.constexpr, D: tl.constexpr, METRIC: tl.constexpr, DOUBLE: tl.constexpr, LISTED: tl.constexpr,
    LATER: tl.constexpr, BLOCK: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Search the subtree of a node; return the query's number of hits so far. The children of level 0 are leaves."""
    keys = child_keys(query, level_ptrs[LEVEL], node, D, METRIC, WIDTH)
    nearest = tl.min(keys)
    while nearest <= reach:
        child = node * WIDTH + (nearest & (WIDTH - 1))
        if LEVEL == 0:
            hits = scan_leaf(
                query, hits, reach, limit, child, rows_ptr, ids_ptr, own, blocks, values_ptr, found_ptr, room,
                D, METRIC, DOUBLE, LISTED, LATER, BLOCK,
            )  # fmt: skip
        else:
            hits = visit(
                query, hits, reach, limit, child, level_ptrs, rows_ptr, ids_ptr, own, blocks, values_ptr, found_ptr,
                room, LEVEL - 1, D, METRIC, DOUBLE, LISTED, LATER, BLOCK, WIDTH,
            )  # fmt: skip
        keys = tl.where(keys == nearest, 0x7FFFFFFF, keys)
        nearest = tl.min(keys)
    return hits


@triton.jit(do_not_specialize=["room", "levels_1", "levels_2", "levels_3"])
def within_kernel(
    # inputs
    queries_ptr,
    order_ptr,  # row numbers of the queries, in the order of the search
    limits_ptr,
    own_ptr,  # for each query the row number of its own point, or None
    rows_ptr, ids_ptr, boxes_ptr,
    # outputs: the bits of the hits' values and their ids, from the query's first position on; the number of hits
    begins_ptr, values_ptr, found_ptr, counts_ptr,
    # shapes
    room,
    blocks,  # blocks per leaf
    levels_1,  # offsets of the boxes of levels 1, 2, 3
    levels_2, levels_3,
    # constants
    TOP: tl.constexpr, D: tl.constexpr, METRIC: tl.constexpr, DOUBLE: tl.constexpr, LISTED: tl.constexpr,
    BLOCK: tl.constexpr, WIDTH: tl.constexpr, HAS_OWN: tl.constexpr, LATER: tl.constexpr,
):  # fmt: skip
    """Find or count the points within one query's limit, except its own point and, if LATER, the points before it."""
    level_ptrs = (boxes_ptr, boxes_ptr + levels_1, boxes_ptr + levels_2, boxes_ptr + levels_3)
    row = tl.load(order_ptr + tl.program_id(0))
    query = load_query(queries_ptr, row, D)
    own = -1
    if HAS_OWN:
        own = tl.load(own_ptr + row).to(tl.int32)
    value = tl.load(limits_ptr + row)
    # Values that are not negative are compared by their bits, which have the same order. No point is within a negative
    # limit.
    reach = tl.where(value < 0, -1, limit_of(value, D, METRIC, WIDTH))
    limit = value.to(tl.int64 if DOUBLE else tl.int32, bitcast=True)
    if LISTED:
        begin = tl.load(begins_ptr + row)
        values_ptr += begin
        found_ptr += begin
    hits = visit(
        query, tl.full([], 0, tl.int32), reach, limit, tl.full([], 0, tl.int32), level_ptrs, rows_ptr, ids_ptr, own,
        blocks, values_ptr, found_ptr, room, TOP, D, METRIC, DOUBLE, LISTED, LATER, BLOCK, WIDTH,
    )  # fmt: skip
    tl.store(counts_ptr + row, hits)
