"""Find the k nearest points of every query by walking the tree: one warp per query, whose state is in registers.

    program       one query, one warp; queries are in leaf order, so that adjacent programs share leaves in the cache
    node          the boxes of its 32 children, one per lane. The nearest child that may contain a neighbour is entered
                  first; each of the others is compared with the threshold again before it is entered. This is the
                  traversal of gieseke2014 (section 2.1), 32-way instead of binary; its stack is one vector of keys per
                  level
    leaf          blocks of 64 points, two per lane: direct differences in single precision; if any point is near
                  enough, exact float64 values, summed in the order of exact/cuda/kernels/rows/value.py, then rounded
    list          the LIST nearest so far, ascending by (value, id), one per lane; insertion shifts the tail up a lane

    given up      a query that is not finished after `most_visits` nodes and leaves is marked, and its list is
                  meaningless

Exact: all skipped points are farther than the k-th known value (kernels/bounds.py). Launch with ``fused=False``.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.kdtree.cuda.kernels.bounds import add_difference, child_keys, load_query
from tonari.kdtree.cuda.kernels.nearest import NO_ID, exact_values, keep_nearest


@triton.jit
def scan_leaf(
    query, values, ids, limit, leaf, rows_ptr, ids_ptr, own, k, blocks,
    D: tl.constexpr, METRIC: tl.constexpr, DOUBLE: tl.constexpr, BLOCK: tl.constexpr, LIST: tl.constexpr,
    WIDTH: tl.constexpr, NOTHING: tl.constexpr,
):  # fmt: skip
    """Compare a query with the points of a leaf, and insert near points; return the updated list and limit."""
    for block in tl.range(leaf.to(tl.int64) * blocks, (leaf.to(tl.int64) + 1) * blocks):
        at = block * BLOCK + tl.arange(0, BLOCK)
        column_ptrs = rows_ptr + block * (D * BLOCK) + tl.arange(0, BLOCK)
        points = ()
        total = tl.zeros([BLOCK], rows_ptr.dtype.element_ty)
        for i in tl.static_range(D):
            x = tl.load(column_ptrs + i * BLOCK)  # [BLOCK]
            points = points + (x,)
            total = add_difference(total, query[i] - x, METRIC)
        near = total.to(tl.float32).to(tl.int32, bitcast=True) <= limit
        if tl.max(near.to(tl.int32)) > 0:
            numbers = tl.load(ids_ptr + at)
            found = exact_values(query, points, D, METRIC, DOUBLE)
            found = tl.where(near & (numbers != own), found, NOTHING)
            values, ids, limit = keep_nearest(
                values, ids, limit, found, numbers, k, D, METRIC, DOUBLE, LIST, WIDTH, NOTHING
            )
    return values, ids, limit


@triton.jit
def visit(
    query, values, ids, limit, visits, left, node, level_ptrs, rows_ptr, ids_ptr, own, k, blocks,
    LEVEL: tl.constexpr, D: tl.constexpr, METRIC: tl.constexpr, DOUBLE: tl.constexpr, BLOCK: tl.constexpr,
    LIST: tl.constexpr, WIDTH: tl.constexpr, NOTHING: tl.constexpr, COUNT: tl.constexpr, BOUNDED: tl.constexpr,
):  # fmt: skip
    """Search the subtree of a node; return the updated list, limit and visits. The children of level 0 are leaves.

    BOUNDED: visit at most `left` more nodes and leaves; then lower the limit so far that no child is near enough.
    """
    keys = child_keys(query, level_ptrs[LEVEL], node, D, METRIC, WIDTH)
    if COUNT:
        visits += tl.where(tl.arange(0, 2) == 1, 1, 0)
    if BOUNDED:
        left -= 1
    nearest = tl.min(keys)
    while nearest <= limit:
        child = node * WIDTH + (nearest & (WIDTH - 1))
        if LEVEL == 0:
            values, ids, limit = scan_leaf(
                query, values, ids, limit, child, rows_ptr, ids_ptr, own, k, blocks,
                D, METRIC, DOUBLE, BLOCK, LIST, WIDTH, NOTHING,
            )  # fmt: skip
            if COUNT:
                visits += tl.where(tl.arange(0, 2) == 0, 1, 0)
            if BOUNDED:
                left -= 1
        else:
            values, ids, limit, visits, left = visit(
                query, values, ids, limit, visits, left, child, level_ptrs, rows_ptr, ids_ptr, own, k, blocks,
                LEVEL - 1, D, METRIC, DOUBLE, BLOCK, LIST, WIDTH, NOTHING, COUNT, BOUNDED,
            )  # fmt: skip
        if BOUNDED:
            limit = tl.where(left > 0, limit, -1)  # a limit of -1 excludes every child, as keys are at least 0
        keys = tl.where(keys == nearest, 0x7FFFFFFF, keys)
        nearest = tl.min(keys)
    return values, ids, limit, visits, left


@triton.jit(do_not_specialize=["k", "most_visits", "levels_1", "levels_2", "levels_3"])
def search_kernel(
    # inputs
    queries_ptr,
    order_ptr,  # row numbers of the queries, in the order of the search
    own_ptr,  # for each query the row number of its own point, or None
    rows_ptr, ids_ptr, boxes_ptr,
    # outputs: [query][k]
    distances_ptr, indices_ptr,
    visits_ptr,  # [query][2]: counts of visited leaves and nodes; or None
    given_up_ptr,  # [query], uint8: set to 1 for a query that is given up; or None
    # shapes
    k,
    most_visits,  # most nodes and leaves that a query may visit
    blocks,  # blocks per leaf
    levels_1,  # offsets of the boxes of levels 1, 2, 3
    levels_2, levels_3,
    # constants
    TOP: tl.constexpr, D: tl.constexpr, METRIC: tl.constexpr, DOUBLE: tl.constexpr, BLOCK: tl.constexpr,
    LIST: tl.constexpr, WIDTH: tl.constexpr, HAS_OWN: tl.constexpr, COUNT: tl.constexpr, BOUNDED: tl.constexpr,
):  # fmt: skip
    """Find the k nearest points of one query, and write them in order."""
    NOTHING: tl.constexpr = 0x7FF0000000000000 if DOUBLE else 0x7F800000
    slot = tl.arange(0, LIST)
    level_ptrs = (boxes_ptr, boxes_ptr + levels_1, boxes_ptr + levels_2, boxes_ptr + levels_3)
    row = tl.load(order_ptr + tl.program_id(0))
    query = load_query(queries_ptr, row, D)
    own = -1
    if HAS_OWN:
        own = tl.load(own_ptr + row).to(tl.int32)
    values = tl.full([LIST], NOTHING, tl.int64 if DOUBLE else tl.int32)
    ids = tl.full([LIST], NO_ID, tl.int32)
    limit = tl.full([], 3.0e38, tl.float32).to(tl.int32, bitcast=True) | (WIDTH - 1)
    visits = tl.zeros([2], tl.int32)
    left = tl.full([], 0, tl.int32) + most_visits
    values, ids, limit, visits, left = visit(
        query, values, ids, limit, visits, left, tl.full([], 0, tl.int32), level_ptrs, rows_ptr, ids_ptr, own, k,
        blocks, TOP, D, METRIC, DOUBLE, BLOCK, LIST, WIDTH, NOTHING, COUNT, BOUNDED,
    )  # fmt: skip
    found = values.to(tl.float64 if DOUBLE else tl.float32, bitcast=True)
    tl.store(distances_ptr + row * k + slot, found, mask=slot < k)
    tl.store(indices_ptr + row * k + slot, tl.where(ids == NO_ID, -1, ids), mask=slot < k)
    if COUNT:
        tl.store(visits_ptr + row * 2 + tl.arange(0, 2), visits)
    if BOUNDED:
        tl.store(given_up_ptr + row, tl.full([], 1, tl.uint8), mask=left <= 0)
