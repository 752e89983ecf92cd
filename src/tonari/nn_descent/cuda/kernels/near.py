"""The centres nearest to each row, nearly exactly, on matrix units: all centres are met, the BEST of them stay.

    program    QUERIES rows, neighbours in memory or gathered by number, against all centres, CENTRES at a time
    score      query term + centre term - 2 <q, c>, at least 0, as a float32 whose bits ascend as integers do; the
               lowest of them give way to the number of the tile of centres
    state      the two least of each column over all tiles; then BEST times the least of each row

Of centres a multiple of CENTRES apart the two nearest stay; scores that differ by less than the bits given away may
change places. Clusters are a guess at where neighbours are: more would be lost time.
"""

from __future__ import annotations

import triton
import triton.language as tl

_LAST = tl.constexpr(0x7FFFFFFF)


@triton.jit(do_not_specialize=["rows", "centres", "tile_bits"])
def near_kernel(
    # inputs
    rows_ptr,
    order_ptr,
    query_terms_ptr,
    centres_ptr,
    centre_terms_ptr,
    # output: [row][BEST]
    near_ptr,
    # shapes
    rows,
    centres,
    tile_bits,
    # constants
    D: tl.constexpr,
    STEP: tl.constexpr,
    ORDERED: tl.constexpr,
    QUERIES: tl.constexpr,
    CENTRES: tl.constexpr,
    BEST: tl.constexpr,
):
    """Numbers of each row's nearest centres, the nearest first; ORDERED: of the rows that `order` names."""
    slots = tl.program_id(0).to(tl.int64) * QUERIES + tl.arange(0, QUERIES)
    wanted = slots < rows
    query = slots
    if ORDERED:
        query = tl.load(order_ptr + slots, mask=wanted, other=0)
    query_terms = tl.load(query_terms_ptr + query, mask=wanted, other=0.0)
    columns = tl.arange(0, CENTRES)
    steps = tl.arange(0, STEP)
    query_rows = rows_ptr + query[:, None] * D + steps[None, :]
    tiles = (1 << tile_bits) - 1
    least = tl.full([QUERIES, CENTRES], _LAST, tl.int32)
    second = least
    if STEP >= D:  # the rows stay where they are
        inside = (steps < D)[None, :]
        q = tl.load(query_rows, mask=wanted[:, None] & inside, other=0.0)
    for tile in tl.range(0, tl.cdiv(centres, CENTRES)):
        centre = tile * CENTRES + columns
        there = centre < centres
        centre_rows = centres_ptr + centre[:, None].to(tl.int64) * D + steps[None, :]
        if STEP >= D:
            x = tl.load(centre_rows, mask=there[:, None] & inside, other=0.0)
            product = tl.dot(q, tl.trans(x))
        else:
            product = tl.zeros([QUERIES, CENTRES], tl.float32)
            for column in tl.range(0, D, STEP):
                left = column + steps < D
                part = tl.load(query_rows + column, mask=wanted[:, None] & left[None, :], other=0.0)
                x = tl.load(centre_rows + column, mask=there[:, None] & left[None, :], other=0.0)
                product = tl.dot(part, tl.trans(x), product)
        terms = tl.load(centre_terms_ptr + centre, mask=there, other=0.0)
        score = tl.maximum(query_terms[:, None] + terms[None, :] - 2.0 * product, 0.0)
        key = (score.to(tl.int32, bitcast=True) & ~tiles) | tile
        key = tl.where(there[None, :], key, _LAST)
        if BEST > 1:
            second = tl.minimum(second, tl.maximum(least, key))
        least = tl.minimum(least, key)
    out = near_ptr + slots * BEST
    for best in tl.range(BEST):
        key, column = tl.min(least, axis=1, return_indices=True)
        tl.store(out + best, ((key & tiles) * CENTRES + column).to(near_ptr.dtype.element_ty), mask=wanted)
        taken = columns[None, :] == column[:, None]
        least = tl.where(taken, second, least)
        second = tl.where(taken, _LAST, second)
