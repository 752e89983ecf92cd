"""Find the BEST centres nearest to each row, almost exactly, on tensor cores.

    program    compares QUERIES rows, contiguous in memory or gathered by number, with all centres in tiles of CENTRES
    score      query term + centre term - 2 <q, c>, at least 0, as a float32, whose bits have the order of integers; the
               lowest bits are replaced by the index of the tile of centres
    state      the two smallest keys of each column over all tiles; at the end, the BEST smallest keys of each row

Centres whose indices differ by multiples of CENTRES share a column, which keeps only its two nearest, and centres whose
scores differ only in the replaced bits may be swapped. Clusters only suggest likely neighbours, so higher precision
would not pay off.
"""

from __future__ import annotations

import triton
import triton.language as tl

_LAST = tl.constexpr(0x7FFFFFFF)


@triton.jit(do_not_specialize=["rows", "centres", "tile_bits"])
def near_kernel(
    # inputs
    rows_ptr, order_ptr, query_terms_ptr, centres_ptr, centre_terms_ptr,
    # output: [row][BEST]
    near_ptr,
    # shapes
    rows, centres, tile_bits,
    # constants
    D: tl.constexpr, STEP: tl.constexpr, ORDERED: tl.constexpr, QUERIES: tl.constexpr, CENTRES: tl.constexpr,
    BEST: tl.constexpr,
):  # fmt: skip
    """Write the indices of the centres nearest to each row, nearest first; if ORDERED, only for the rows in `order`."""
    slot = tl.program_id(0).to(tl.int64) * QUERIES + tl.arange(0, QUERIES)
    present = slot < rows
    query = slot
    if ORDERED:
        query = tl.load(order_ptr + slot, mask=present, other=0)
    query_terms = tl.load(query_terms_ptr + query, mask=present, other=0.0)
    column = tl.arange(0, CENTRES)
    step = tl.arange(0, STEP)
    query_ptrs = rows_ptr + query[:, None] * D + step[None, :]
    tiles = (1 << tile_bits) - 1
    least = tl.full([QUERIES, CENTRES], _LAST, tl.int32)
    second = least
    if STEP >= D:  # all columns fit into one step: the rows stay in registers
        inside = (step < D)[None, :]
        q = tl.load(query_ptrs, mask=present[:, None] & inside, other=0.0)  # [QUERIES, STEP]
    for tile in tl.range(0, tl.cdiv(centres, CENTRES)):
        centre = tile * CENTRES + column
        centre_present = centre < centres
        centre_ptrs = centres_ptr + centre[:, None].to(tl.int64) * D + step[None, :]
        if STEP >= D:
            x = tl.load(centre_ptrs, mask=centre_present[:, None] & inside, other=0.0)  # [CENTRES, STEP]
            product = tl.dot(q, tl.trans(x))  # [QUERIES, CENTRES]
        else:
            product = tl.zeros([QUERIES, CENTRES], tl.float32)
            for start in tl.range(0, D, STEP):
                inside_step = start + step < D
                part = tl.load(query_ptrs + start, mask=present[:, None] & inside_step[None, :], other=0.0)
                x = tl.load(centre_ptrs + start, mask=centre_present[:, None] & inside_step[None, :], other=0.0)
                product = tl.dot(part, tl.trans(x), product)
        terms = tl.load(centre_terms_ptr + centre, mask=centre_present, other=0.0)
        score = tl.maximum(query_terms[:, None] + terms[None, :] - 2.0 * product, 0.0)
        key = (score.to(tl.int32, bitcast=True) & ~tiles) | tile
        key = tl.where(centre_present[None, :], key, _LAST)
        if BEST > 1:
            second = tl.minimum(second, tl.maximum(least, key))
        least = tl.minimum(least, key)
    out_ptrs = near_ptr + slot * BEST
    for best in tl.range(BEST):
        key, nearest = tl.min(least, axis=1, return_indices=True)
        tl.store(out_ptrs + best, ((key & tiles) * CENTRES + nearest).to(near_ptr.dtype.element_ty), mask=present)
        chosen = column[None, :] == nearest[:, None]
        least = tl.where(chosen, second, least)
        second = tl.where(chosen, _LAST, second)
