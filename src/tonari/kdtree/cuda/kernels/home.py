"""Find the first leaf of every query by descending from the root, always into the nearest child.

A program processes BLOCK queries one after another; each lane handles a child of the node, as in the search. Queries
are afterwards sorted by their first leaf, so that queries that need the same points are adjacent. The queries of a leaf
are like a buffer of gieseke2014 that is filled only once.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.kdtree.cuda.kernels.bounds import child_keys, load_query


@triton.jit(do_not_specialize=["count", "levels_1", "levels_2", "levels_3"])
def home_kernel(
    # inputs
    queries_ptr, boxes_ptr,
    # output: [query]
    leaves_ptr,
    # shapes
    count, levels_1, levels_2, levels_3,
    # constants
    TOP: tl.constexpr, D: tl.constexpr, METRIC: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Store the index of each query's first leaf."""
    level_ptrs = (boxes_ptr, boxes_ptr + levels_1, boxes_ptr + levels_2, boxes_ptr + levels_3)
    begin = tl.program_id(0).to(tl.int64) * BLOCK
    for row in tl.range(begin, tl.minimum(begin + BLOCK, count)):
        query = load_query(queries_ptr, row, D)
        node = tl.full([], 0, tl.int32)
        for down in tl.static_range(TOP + 1):
            nearest = tl.min(child_keys(query, level_ptrs[TOP - down], node, D, METRIC, WIDTH))
            node = node * WIDTH + (nearest & (WIDTH - 1))
        tl.store(leaves_ptr + row, node)
