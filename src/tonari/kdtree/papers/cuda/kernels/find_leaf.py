"""FindLeafBatch of gieseke2014 (algorithm 2): find the next leaf of every query that a round takes from the queues.

    program        one query, one warp; a lane is a child of a node, as in the walk (kernels/search.py)
    stack          in global memory between rounds: for each level the key of the last entered child, or -1. The node on
                   each level follows from the indices in the keys of the levels above. The children of a node are
                   entered in ascending order of their keys, which are distinct, so the next child has the smallest
                   larger key
    limit          in global memory: the largest key whose box may contain a neighbour

Exact: recomputed keys are equal bit by bit, so a query enters the same nodes and leaves as in the walk, in the same
order. A query leaves a node at the first key above the limit: the keys of the other children are larger, and the limit
never grows.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.kdtree.cuda.kernels.bounds import child_keys, load_query


@triton.jit(do_not_specialize=["levels_1", "levels_2", "levels_3"])
def find_leaf_kernel(
    # inputs
    queries_ptr,
    queue_ptr,  # row numbers of the queries that need a next leaf
    boxes_ptr,
    limits_ptr,  # [query]
    # in and out: [query][LEVELS]
    stacks_ptr,
    # output: for each query in the queue the next leaf, or -1 if the query is finished
    leaves_ptr,
    # shapes
    levels_1, levels_2, levels_3,
    # constants
    TOP: tl.constexpr, D: tl.constexpr, METRIC: tl.constexpr, WIDTH: tl.constexpr, LEVELS: tl.constexpr,
):  # fmt: skip
    """Find the next leaf of one query, and store it with the query's new stack."""
    tl.static_assert(TOP < LEVELS, "the stack has a key for each level")
    at = tl.program_id(0)
    row = tl.load(queue_ptr + at)
    query = load_query(queries_ptr, row, D)
    limit = tl.load(limits_ptr + row)
    depth = tl.arange(0, LEVELS)
    stack_ptrs = stacks_ptr + row * LEVELS + depth
    stack = tl.load(stack_ptrs)  # [LEVELS]

    parent = tl.full([], 0, tl.int32)  # becomes the node above the last leaf
    for down in tl.static_range(TOP):
        key = tl.max(tl.where(depth == TOP - down, stack, -1))
        parent = parent * WIDTH + (key & (WIDTH - 1))
    fresh = tl.max(tl.where(depth == TOP, stack, -1)) < 0
    node = tl.where(fresh, 0, parent)
    level = tl.where(fresh, TOP, 0).to(tl.int32)
    leaf = tl.full([], -1, tl.int32)
    while (level >= 0) & (level <= TOP):
        begin = tl.where(level == 1, levels_1, tl.where(level == 2, levels_2, tl.where(level == 3, levels_3, 0)))
        keys = child_keys(query, boxes_ptr + begin, node, D, METRIC, WIDTH)
        last = tl.max(tl.where(depth == level, stack, -1))
        nearest = tl.min(tl.where(keys > last, keys, 0x7FFFFFFF))
        enters = nearest <= limit
        child = node * WIDTH + (nearest & (WIDTH - 1))
        stack = tl.where(enters & (depth == level), nearest, stack)
        leaf = tl.where(enters & (level == 0), child, leaf)
        node = tl.where(enters, child, node // WIDTH)
        level = tl.where(enters, level - 1, level + 1)
        stack = tl.where(enters & (depth == level), -1, stack)  # no child of the new node has been entered
    tl.store(stack_ptrs, stack)
    tl.store(leaves_ptr + at, leaf)
