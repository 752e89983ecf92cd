"""Collect the candidates of points for a round: their reverse neighbours, and the neighbours of their neighbours.

    program    ROWS points, with SLOTS candidates each: ROOM reverse neighbours, then the first BREADTH entries in the
               lists of the first HUBS neighbours and of the ROOM reverse neighbours; these neighbours are called hubs
    kept       candidates whose hub or entry is NEW (pairs of an old hub and an old entry have been compared before),
               except the point itself and the ids in its own list
    order      by a hash of the id, a bijection on 32 bits. Equal ids become adjacent, and if there are more than WIDTH
               distinct ids, a pseudo-random but deterministic subset is kept

wang2021 (section 4.1) samples lists, compares their members with each other and inserts the results into the lists of
both, under locks. Here a point reads the lists of other points and writes only its own row.
"""

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.standard import _log2, _sum_combine

_NONE = tl.constexpr(0x7FFFFFFF)  # key of a missing id: no id below 2**30 has this hash
_HASH = tl.constexpr(0x9E3779B1)
_BACK = tl.constexpr(0xE8B2F51)  # the inverse of _HASH modulo 2**32
_TOP = tl.constexpr(-0x80000000)  # flipping this bit maps unsigned order to signed order


@triton.jit
def exchange(cube, BIT: tl.constexpr, BITS: tl.constexpr):
    """Exchange every two keys that are 2**BIT positions apart if they are out of order.

    The sum of a pair minus one of its keys is the other key.
    """
    # Not tl.sum, which Triton would compile again for every axis.
    partner = tl.reduce(cube, BITS - BIT, _sum_combine, keep_dims=True) - cube
    upper = tl.reshape(tl.arange(0, 2), [1] * (BITS - BIT) + [2] + [1] * BIT) == 1
    return tl.where((cube > partner) != upper, partner, cube)


@triton.jit
def merge_runs(cube, size, BITS: tl.constexpr):
    """Sort bitonic runs of 2**size keys, every second one in descending order.

    The keys of those runs are complemented while they are sorted. This is a function because Triton translates the body
    of a loop twice, but a function only once.
    """
    down = -((tl.reshape(tl.arange(0, 1 << BITS), [1] + [2] * BITS) >> size) & 1)
    cube = cube ^ down
    for bit in tl.static_range(BITS - 1, -1, -1):
        if bit < size:
            cube = exchange(cube, bit, BITS)
    return cube ^ down


@triton.jit
def sort_rows(keys, ROWS: tl.constexpr, SLOTS: tl.constexpr):
    """Sort each row of int32 keys, ascending, by a bitonic network (Batcher 1968) on a hypercube of side 2.

    Positions 2**bit apart are compared along one axis. The steps are in a loop, because LLVM takes seconds to compile
    them unrolled for 1024 slots.
    """
    BITS: tl.constexpr = _log2(SLOTS)
    cube = tl.reshape(keys, [ROWS] + [2] * BITS)
    for size in tl.range(1, BITS + 1):
        cube = merge_runs(cube, size, BITS)
    return tl.reshape(cube, [ROWS, SLOTS])


@triton.jit(do_not_specialize=["first", "rows", "boundary"])
def candidates_kernel(
    # inputs
    order_ptr, entries_ptr, reverse_ptr,
    # scratch: int32 [row][SLOTS]
    sorted_ptr,
    # output: int32 [row][SIZE + WIDTH]
    out_ptr,
    # shapes
    first, rows, boundary,
    # constants
    SIZE: tl.constexpr, HUBS: tl.constexpr, ROOM: tl.constexpr, BREADTH: tl.constexpr, WIDTH: tl.constexpr,
    SLOTS: tl.constexpr, ROWS: tl.constexpr, ACROSS: tl.constexpr, NEW: tl.constexpr, ID: tl.constexpr,
):  # fmt: skip
    """Write, for each point, the ids in its list, followed by the ids of its candidates."""
    tl.static_assert(ROOM + (HUBS + ROOM) * BREADTH <= SLOTS)
    tl.static_assert((NEW & ID) == 0)
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    present = row < rows
    point = tl.load(order_ptr + first + row, mask=present, other=0)  # [ROWS, 1]
    slot = tl.arange(0, SLOTS)[None, :]
    # The hub of each slot. The reverse neighbours, in the first ROOM slots, are candidates themselves and also hubs.
    hub_slot = slot - ROOM
    hub = hub_slot // BREADTH
    listed = (hub_slot >= 0) & (hub < HUBS) & present
    turned = ((hub_slot < 0) | ((hub >= HUBS) & (hub < HUBS + ROOM))) & present
    neighbour = tl.load(entries_ptr + point * SIZE + hub, mask=listed, other=-1)  # [ROWS, SLOTS]
    back = tl.load(reverse_ptr + point * ROOM + tl.where(hub_slot < 0, slot, hub - HUBS), mask=turned, other=-1)
    neighbour = tl.where(turned, back, neighbour)
    followed = (hub_slot >= 0) & (neighbour >= 0)
    at = (neighbour & ID).to(tl.int64) * SIZE + hub_slot % BREADTH
    entry = tl.load(entries_ptr + at, mask=followed, other=-1)  # [ROWS, SLOTS]
    fresh = ((neighbour | entry) & NEW) != 0
    met = (hub_slot < 0) & (neighbour >= 0)
    id = tl.where(hub_slot < 0, neighbour, entry) & ID
    eligible = (met | (followed & (entry >= 0) & fresh)) & (id != point)
    if ACROSS:
        eligible = eligible & ((id < boundary) != (point < boundary))
    out_ptrs = out_ptr + row * (SIZE + WIDTH)
    own_count = tl.zeros([ROWS, 1], tl.int32)
    for column in tl.range(SIZE):
        own = tl.load(entries_ptr + point * SIZE + column, mask=present, other=-1)
        own_id = own & ID
        eligible = eligible & ((own < 0) | (id != own_id))
        tl.store(out_ptrs + own_count, own_id, mask=own >= 0)
        own_count += (own >= 0).to(tl.int32)
    hashed = (id.to(tl.uint32) * _HASH).to(tl.int32, bitcast=True) ^ _TOP
    ordered = sort_rows(tl.where(eligible, hashed, _NONE), ROWS, SLOTS)
    scratch_ptrs = sorted_ptr + row * SLOTS + slot
    tl.store(scratch_ptrs, ordered, mask=present)
    tl.debug_barrier()
    before = tl.load(scratch_ptrs - 1, mask=(slot > 0) & present, other=_NONE)
    single = (ordered != _NONE) & ((slot == 0) | (ordered != before))
    position = tl.cumsum(single.to(tl.int32), 1) - 1
    chosen = single & (position < WIDTH)
    id = ((ordered ^ _TOP).to(tl.uint32, bitcast=True) * _BACK).to(tl.int32, bitcast=True)
    tl.store(out_ptrs + own_count + position, id, mask=chosen)
