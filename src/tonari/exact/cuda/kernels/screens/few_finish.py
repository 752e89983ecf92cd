"""Compute the answers of a few queries from minima: choose groups, compute exact values, order them, certify.

`parts` programs share a row. Each makes the same choice of groups and computes the values of CHUNK candidates; the last
program to finish orders all candidates and writes the row:

    lower       minimum - (N E1 + r E2)                     of a tile of points, or of a group
    tiles       tiles whose `lower` is at most t1               at least `width`, or all tiles
    groups      their groups whose `lower` is at most t2        at least `width`, or all groups
    following   the smallest `lower` of all other tiles and groups, +inf if there are none
    values      of the members, by the definition (kernels/rows/value.py)
    rank        number of candidates before a candidate, in the order (returned value, id)
    proved      the certificate of the row (kernels/refine/certify.py)

To find t1 and t2, the `lower` values are divided into CHUNKS chunks, and at least `width` of the minima of the chunks
do not exceed the limit. So at least `width` values are at or below it (docs/exactness.md, "Hierarchical Partition"),
and few more, since adjacent numbers belong to different chunks. If a list has too little room, ties at the limit are
dropped first. Dropping an entry only lowers `following`.

Groups are in ascending order, so candidates ascend in id: the earlier of two candidates with equal values has the
smaller id. Padding candidates are last, with the value +inf. At least k candidates exist, because each group contains a
point.

Programs do not wait for each other. A counter, which kernels/screens/few.py sets to 0, identifies the last program.
Each program increments it after a barrier, when all its threads have written their values. The atomic addition acquires
and releases, so programs that increment it later see these values. The state of a row is written to memory that the
host reads, which may be pinned.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.exact.cuda.kernels.refine.certify import threshold_of
from tonari.exact.cuda.kernels.refine.groups import values_of
from tonari.select.cuda.kernels.ordering.order import ascending

_FLAGS = tl.constexpr(3)  # number of flags of the points, and of the queries


@triton.jit
def least_reached(lower, wanted, NUMBERS: tl.constexpr, CHUNKS: tl.constexpr):
    """Return a limit such that at least `wanted` of the [NUMBERS] values, and few more, are at or below it.

    The limit is +inf if there are fewer values.
    """
    tl.static_assert(NUMBERS % CHUNKS == 0)
    minima = tl.min(tl.reshape(lower, [NUMBERS // CHUNKS, CHUNKS]), 0)
    # Each thread holds all entries of axis 0, so this sum needs no exchange between threads.
    reached = tl.sum((minima[:, None] <= minima[None, :]).to(tl.int32), 0)
    return tl.min(tl.where(reached >= wanted, minima, float("inf")), 0)


@triton.jit
def list_taken(lower, numbers, limit, list_ptr, SLOTS: tl.constexpr):
    """List, in order, up to SLOTS of the `numbers` whose entry in `lower` is finite and at most `limit`.

    Return the length of the list, and the smallest `lower` of all entries that are not listed.
    """
    taken = ((lower <= limit) & (lower < float("inf"))).to(tl.int32)
    if tl.sum(taken, 0) > SLOTS:  # entries below the limit are listed before ties at the limit
        below = (lower < limit).to(tl.int32)
        equal = taken - below
        taken = below + tl.where(tl.cumsum(equal, 0) <= SLOTS - tl.sum(below, 0), equal, 0)
    place = tl.cumsum(taken, 0) - 1
    listed = (taken > 0) & (place < SLOTS)
    tl.store(list_ptr + place, numbers, mask=listed)
    tl.debug_barrier()  # all threads read the list next
    return tl.sum(listed.to(tl.int32), 0), tl.min(tl.where(listed, float("inf"), lower), 0)


@triton.jit
def bound_of(tile, present, norm, rest, e1_ptr, e2_ptr):
    """Return, for each of some tiles, the error bound to subtract from its minimum."""
    e1 = tl.load(e1_ptr + tile, mask=present, other=0.0)
    return norm * e1 + rest * tl.load(e2_ptr + tile, mask=present, other=0.0)


@triton.jit
def candidates(groups_ptr, numbers, group_count, n, GROUP: tl.constexpr):
    """Return the points at positions `numbers` of the list of candidates, and a mask of the positions that exist."""
    listed = numbers // GROUP < group_count
    group = tl.load(groups_ptr + numbers // GROUP, mask=listed, other=0)
    ids = group * GROUP + (numbers & (GROUP - 1))
    return ids, listed & (ids < n)


@triton.jit(do_not_specialize=["n", "tiles", "d", "units", "width", "k", "parts"])
def finish_few_kernel(
    # inputs: minima of tiles [row][tiles] and of groups [row][tiles * POINT_TILE / GROUP]; error bounds [tiles];
    # norm, rest and shift per row; scale; float64 rows, and their norms
    tile_minima_ptr, minima_ptr, e1_ptr, e2_ptr, norm_ptr, rest_ptr, shift_ptr, scale_ptr, widened_ptr, norms_ptr,
    points_ptr, point_flags_ptr, query_flags_ptr,
    # scratch: lists of tiles [program][SLOTS] and groups [program][ROOM]; values [row][ROOM * GROUP]; counters [row]
    tiles_ptr, groups_ptr, values_ptr, counters_ptr,
    # outputs: the k best [row][k]; whether rows are proved; the state, int64: flags of points and queries, proved rows
    distances_ptr, indices_ptr, proved_ptr, state_ptr,
    # shapes
    n, tiles, d, query_width, units, width, k, parts,
    # constants
    METRIC: tl.constexpr, TERM: tl.constexpr, DOUBLE: tl.constexpr, UNIT: tl.constexpr, TILES: tl.constexpr,
    SLOTS: tl.constexpr, ROOM: tl.constexpr, CHUNK: tl.constexpr, CHUNKS: tl.constexpr, GROUP: tl.constexpr,
    POINT_TILE: tl.constexpr, RANKED: tl.constexpr,
):  # fmt: skip
    PER_TILE: tl.constexpr = POINT_TILE // GROUP
    CANDIDATES: tl.constexpr = ROOM * GROUP
    program = tl.program_id(0).to(tl.int64)
    row = program // parts
    part = (program % parts).to(tl.int32)
    norm = tl.load(norm_ptr + row)
    rest = tl.load(rest_ptr + row)
    shift = tl.load(shift_ptr + row)
    scale = tl.load(scale_ptr)

    tile = tl.arange(0, TILES)
    inside = tile < tiles
    bound = bound_of(tile, inside, norm, rest, e1_ptr, e2_ptr)
    lower = tl.load(tile_minima_ptr + row * tiles + tile, mask=inside, other=float("inf")) - bound  # [TILES]
    limit = least_reached(lower, width, TILES, CHUNKS)
    tiles_ptr += program * SLOTS
    tile_count, following = list_taken(lower, tile, limit, tiles_ptr, SLOTS)

    at = tl.arange(0, SLOTS * PER_TILE)
    inside = at // PER_TILE < tile_count
    tile = tl.load(tiles_ptr + at // PER_TILE, mask=inside, other=0)
    group = tile * PER_TILE + at % PER_TILE
    bound = bound_of(tile, inside, norm, rest, e1_ptr, e2_ptr)
    lower = tl.load(minima_ptr + row * tiles * PER_TILE + group, mask=inside, other=float("inf")) - bound
    limit = least_reached(lower, width, SLOTS * PER_TILE, CHUNKS)
    groups_ptr += program * ROOM
    group_count, others = list_taken(lower, group, limit, groups_ptr, ROOM)
    following = tl.minimum(following, others)

    candidate = part * CHUNK + tl.arange(0, CHUNK)
    ids, present = candidates(groups_ptr, candidate, group_count, n, GROUP)
    row_ptrs = points_ptr + ids.to(tl.int64) * (units.to(tl.int64) * UNIT)
    query_ptrs = widened_ptr + row * query_width + tl.arange(0, 16)
    values = values_of(row_ptrs, query_ptrs, norms_ptr, row, present, d, METRIC, TERM, UNIT, CHUNK)
    values = ascending(values, METRIC.descending).to(values_ptr.dtype.element_ty)
    values_ptr += row * CANDIDATES
    tl.store(values_ptr + candidate, tl.where(present, values, float("inf")))
    tl.debug_barrier()
    before = tl.atomic_add(counters_ptr + row, 1, sem="acq_rel")
    if before == parts - 1:
        # All loads are issued first. They bypass the first-level cache, which may lack data that other
        # multiprocessors have written.
        every = tl.arange(0, CANDIDATES)
        other = tl.arange(0, RANKED)
        all_values = tl.load(values_ptr + every, cache_modifier=".cg")  # [CANDIDATES]
        theirs = tl.load(values_ptr + other, cache_modifier=".cg")  # [RANKED]
        all_ids, _ = candidates(groups_ptr, every, group_count, n, GROUP)
        flag = tl.arange(0, 4)
        is_flag = flag < _FLAGS
        point_flags = tl.load(point_flags_ptr + flag, mask=is_flag, other=0)
        query_flags = tl.load(query_flags_ptr + flag, mask=is_flag, other=0)
        count = group_count * GROUP
        rank = tl.zeros([CANDIDATES], tl.int32)
        for begin in range(0, count, RANKED):
            after = begin + RANKED + other
            later = tl.load(values_ptr + after, mask=after < count, other=float("inf"), cache_modifier=".cg")
            is_before = (begin + other)[:, None] < every[None, :]
            equal = (theirs[:, None] == all_values[None, :]) & is_before
            rank += tl.sum(((theirs[:, None] < all_values[None, :]) | equal).to(tl.int32), 0)
            theirs = later
        # Padding is not ranked: it stays after all candidates.
        rank = tl.where(every < count, rank, every)
        found = ascending(all_values, METRIC.descending)
        tl.store(distances_ptr + row * k + rank, found, mask=rank < k)
        tl.store(indices_ptr + row * k + rank, all_ids, mask=rank < k)

        kth = tl.sum(tl.where(rank == k - 1, found, 0.0), 0).to(tl.float64)
        threshold, judged = threshold_of(kth, shift, scale, d, METRIC, DOUBLE)
        all_taken = following == float("inf")
        proved = (judged & (following.to(tl.float64) > threshold)) | all_taken
        tl.store(proved_ptr + row, proved.to(tl.uint8))
        tl.store(state_ptr + 2 * _FLAGS + row, proved.to(tl.int64))
        if row == 0:
            tl.store(state_ptr + flag, point_flags, mask=is_flag)
            tl.store(state_ptr + _FLAGS + flag, query_flags, mask=is_flag)
