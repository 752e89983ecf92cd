"""Compare points with the members of near clusters on tensor cores; keep BEST members per (point, cluster).

    program    compares QUERIES points that share a near cluster with its members in tiles of MEMBERS
    score      query term + member term - 2 <q, x>, at least 0, as a float32, whose bits have the order of integers; the
               lowest 11 bits are replaced by the member's position among the compared members
    state      the two smallest keys of each column over all tiles; at the end, the BEST smallest keys of each row

Members whose scores differ by less than a relative 2**-12 may be swapped, and each column keeps only its two best
members. This is enough, because lists are longer than k and rounds order them exactly.
"""

from __future__ import annotations

import triton
import triton.language as tl

_NUMBERS = tl.constexpr((1 << 11) - 1)
_SCORES = tl.constexpr(-(1 << 11))
_LAST = tl.constexpr(0x7FFFFFFF)


@triton.jit
def member_range(bounds_ptr, cluster, at, limit):
    """Return the positions [begin, end) of a cluster's members to compare: all, or `limit` members around `at`."""
    begin = tl.load(bounds_ptr + cluster)
    end = tl.load(bounds_ptr + cluster + 1)
    begin = tl.maximum(begin, tl.minimum(at - limit // 2, end - limit))
    return begin, tl.minimum(end, begin + limit)


@triton.jit(do_not_specialize=["clusters", "probes", "first", "limit"])
def scan_kernel(
    # inputs
    rows_ptr, query_terms_ptr, member_terms_ptr, order_ptr, bounds_ptr, pairs_ptr, pair_bounds_ptr, tile_bounds_ptr,
    tile_clusters_ptr,
    # outputs: [pair][BEST]
    scores_ptr, ids_ptr,
    # shapes
    clusters, probes, first, limit,
    # constants
    D: tl.constexpr, STEP: tl.constexpr, QUERIES: tl.constexpr, MEMBERS: tl.constexpr, BEST: tl.constexpr,
):  # fmt: skip
    """Write the best members for each pair of a point and a near cluster, in the order of (point, cluster)."""
    tl.static_assert(STEP >= D or D % STEP == 0, "steps of columns are loaded without a mask")
    program = tl.program_id(0)
    cluster = tl.load(tile_clusters_ptr + program)
    if cluster < clusters:
        begin = tl.load(pair_bounds_ptr + cluster) + (program - tl.load(tile_bounds_ptr + cluster)) * QUERIES
        end = tl.load(pair_bounds_ptr + cluster + 1)
        slot = begin + tl.arange(0, QUERIES)
        present = slot < end
        pair = tl.load(pairs_ptr + slot, mask=present, other=0)
        place = first + pair // probes
        query = tl.load(order_ptr + place)
        query_terms = tl.load(query_terms_ptr + query)
        step = tl.arange(0, STEP)
        query_ptrs = rows_ptr + query[:, None] * D + step[None, :]
        if STEP >= D:  # short rows: the points stay in registers, and loads of members overlap with products
            q = tl.load(query_ptrs, mask=(step < D)[None, :], other=0.0)  # [QUERIES, STEP]
        # Only `limit` members of a very large cluster are compared: those around these points, if they are members
        # themselves.
        low, high = member_range(bounds_ptr, cluster, tl.min(tl.where(present, place, 1 << 30)), limit)
        least = tl.full([QUERIES, MEMBERS], _LAST, tl.int32)
        second = tl.full([QUERIES, MEMBERS], _LAST, tl.int32)
        column = tl.arange(0, MEMBERS)
        for at in tl.range(low, high, MEMBERS):
            member_present = at + column < high
            member = tl.load(order_ptr + at + column, mask=member_present, other=0)
            member_ptrs = rows_ptr + member[:, None] * D + step[None, :]
            if STEP >= D:
                x = tl.load(member_ptrs, mask=(step < D)[None, :], other=0.0)  # [MEMBERS, STEP]
                product = tl.dot(q, tl.trans(x))  # [QUERIES, MEMBERS]
            else:
                product = tl.zeros([QUERIES, MEMBERS], tl.float32)
                for start in tl.range(0, D, STEP):
                    part = tl.load(query_ptrs + start)
                    x = tl.load(member_ptrs + start)
                    product = tl.dot(part, tl.trans(x), product)
            terms = tl.load(member_terms_ptr + member)
            score = tl.maximum(query_terms[:, None] + terms[None, :] - 2.0 * product, 0.0)
            allowed = member_present[None, :] & (member[None, :] != query[:, None])
            number = (at - low).to(tl.int32) + column
            bits = score.to(tl.int32, bitcast=True) & _SCORES
            key = tl.where(allowed, bits | number[None, :], _LAST)
            second = tl.minimum(second, tl.maximum(least, key))
            least = tl.minimum(least, key)
        ranks = tl.arange(0, BEST)
        best = tl.full([QUERIES, BEST], _LAST, tl.int32)
        for rank in tl.range(BEST):
            key = tl.min(least, axis=1)
            best = tl.where(ranks[None, :] == rank, key[:, None], best)
            chosen = least == key[:, None]
            least = tl.where(chosen, second, least)
            second = tl.where(chosen, _LAST, second)
        # One load and one store for all ranks, so that their latency is paid once.
        found = (best != _LAST) & present[:, None]
        member = tl.load(order_ptr + low + (best & _NUMBERS), mask=found, other=-1)
        out_at = pair.to(tl.int64)[:, None] * BEST + ranks[None, :]
        tl.store(ids_ptr + out_at, member.to(tl.int32), mask=present[:, None])
        score = tl.where(found, best.to(tl.float32, bitcast=True), float("inf"))
        tl.store(scores_ptr + out_at, score, mask=present[:, None])
