"""ProcessAllBuffers of gieseke2014 (algorithms 3, 4): compare the queries in each leaf's buffer with the leaf's points.

    program        one warp: up to TILE queries of one leaf, and a loop over the leaf's blocks of BLOCK points
    screen         [TILE, BLOCK] sums of direct differences in single precision, column by column: each point is loaded
                   once for the tile. A query whose sums all exceed its limit skips the block
    refine         for each other query, one after another: exact float64 values of the block's points, summed in the
                   order of exact/cuda/kernels/rows/value.py, then rounded, and inserted into its list
                   (kernels/nearest.py)
    list           k values and ids, stored in the result, and in registers while points are inserted. The limit
                   follows from the k-th value (kernels/bounds.py)

Exact: a skipped point is farther than the k-th known value. A query is in only one buffer, so no two programs write to
the same list. Launch with ``fused=False``.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.kdtree.cuda.kernels.bounds import add_difference, load_query
from tonari.kdtree.cuda.kernels.nearest import NO_ID, exact_values, keep_nearest


@triton.jit
def refine_block(
    row, limit, block, queries_ptr, own_ptr, rows_ptr, ids_ptr, distances_ptr, indices_ptr, k,
    D: tl.constexpr, METRIC: tl.constexpr, DOUBLE: tl.constexpr, BLOCK: tl.constexpr, LIST: tl.constexpr,
    WIDTH: tl.constexpr, HAS_OWN: tl.constexpr, NOTHING: tl.constexpr,
):  # fmt: skip
    """Insert the points of a block into the list of one query; return the query's new limit."""
    slot = tl.arange(0, LIST)
    query = load_query(queries_ptr, row, D)
    own = -1
    if HAS_OWN:
        own = tl.load(own_ptr + row).to(tl.int32)
    column_ptrs = rows_ptr + block * (D * BLOCK) + tl.arange(0, BLOCK)
    points = ()
    for i in tl.static_range(D):
        points = points + (tl.load(column_ptrs + i * BLOCK),)  # [BLOCK]
    numbers = tl.load(ids_ptr + block * BLOCK + tl.arange(0, BLOCK))
    found = exact_values(query, points, D, METRIC, DOUBLE)
    found = tl.where(numbers != own, found, NOTHING)
    kept = tl.load(distances_ptr + row * k + slot, mask=slot < k, other=float("inf"))
    values = kept.to(tl.int64 if DOUBLE else tl.int32, bitcast=True)
    ids = tl.load(indices_ptr + row * k + slot, mask=slot < k, other=-1)
    ids = tl.where(ids < 0, NO_ID, ids)
    values, ids, limit = keep_nearest(
        values, ids, limit, found, numbers, k, D, METRIC, DOUBLE, LIST, WIDTH, NOTHING
    )  # fmt: skip
    kept = values.to(tl.float64 if DOUBLE else tl.float32, bitcast=True)
    tl.store(distances_ptr + row * k + slot, kept, mask=slot < k)
    tl.store(indices_ptr + row * k + slot, tl.where(ids == NO_ID, -1, ids), mask=slot < k)
    return limit


@triton.jit(do_not_specialize=["k", "blocks"])
def process_kernel(
    # inputs
    queries_ptr,
    own_ptr,  # for each query the row number of its own point, or None
    queue_ptr,  # row numbers of the waiting queries, leaf by leaf
    begins_ptr,  # [tile]: the position of its first query in the queue
    counts_ptr,  # [tile]: the count of its queries
    leaves_ptr,  # [tile]: the leaf of its queries
        rows_ptr, ids_ptr,
    # in and out: [query][k], [query]
    distances_ptr, indices_ptr, limits_ptr,
    # shapes
    k,
    blocks,  # blocks per leaf
    # constants
    D: tl.constexpr, METRIC: tl.constexpr, DOUBLE: tl.constexpr, BLOCK: tl.constexpr, LIST: tl.constexpr,
    WIDTH: tl.constexpr, TILE: tl.constexpr, HAS_OWN: tl.constexpr,
):  # fmt: skip
    """Compare a tile of queries with the points of their leaf, and update their lists and limits."""
    NOTHING: tl.constexpr = 0x7FF0000000000000 if DOUBLE else 0x7F800000
    tile = tl.program_id(0)
    place_ptr = queue_ptr + tl.load(begins_ptr + tile)
    leaf = tl.load(leaves_ptr + tile).to(tl.int64)
    each = tl.arange(0, TILE)
    present = each < tl.load(counts_ptr + tile)
    rows = tl.load(place_ptr + each, mask=present, other=0)  # [TILE]
    limits = tl.load(limits_ptr + rows, mask=present, other=-1)  # no point is within the limit of an absent query
    for block in tl.range(leaf * blocks, (leaf + 1) * blocks):
        column_ptrs = rows_ptr + block * (D * BLOCK) + tl.arange(0, BLOCK)
        total = tl.zeros([TILE, BLOCK], rows_ptr.dtype.element_ty)
        for i in tl.static_range(D):
            q = tl.load(queries_ptr + rows * D + i)  # [TILE]
            x = tl.load(column_ptrs + i * BLOCK)  # [BLOCK]
            total = add_difference(total, q[:, None] - x[None, :], METRIC)
        near = total.to(tl.float32).to(tl.int32, bitcast=True) <= limits[:, None]
        pending = tl.max(near.to(tl.int32), axis=1)  # [TILE]
        turn = tl.min(tl.where(pending > 0, each, TILE))
        while turn < TILE:
            limit = refine_block(
                tl.load(place_ptr + turn), tl.max(tl.where(each == turn, limits, -1)), block,
                queries_ptr, own_ptr, rows_ptr, ids_ptr, distances_ptr, indices_ptr, k,
                D, METRIC, DOUBLE, BLOCK, LIST, WIDTH, HAS_OWN, NOTHING,
            )  # fmt: skip
            limits = tl.where(each == turn, limit, limits)
            pending = tl.where(each == turn, 0, pending)
            turn = tl.min(tl.where(pending > 0, each, TILE))
        tl.debug_barrier()  # loads of the next block read the stores of other threads
    tl.store(limits_ptr + rows, limits, mask=present)
