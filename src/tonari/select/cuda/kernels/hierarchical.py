"""Hierarchical Partition (tang2015 III-E, algorithm 4) on the GPU, without the paper's queue.

    list 0        the keys of the values
    list i + 1    minima of every G consecutive entries of list i; an entry's index is the number of its group
    bottom up     one streaming pass, which builds two lists at once if G is a power of two
    top down      one program per row: the k best entries of a list are the groups whose members are searched next

Let (key, group) be the largest minimum of the k groups that are searched. Each of the k groups has a minimum at or
below (key, group), so at least k members are at or below the bound (key, last member of that group). On random data,
few more than k of the k G members are. These are appended to a row's SLOTS slots in memory. When the slots are full,
bisection keeps about k of the smallest pairs, and the bound is lowered. A tile consists of groups from all over the
list, so that the bound falls quickly on sorted data as well.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.select.cuda.kernels.registers.halving import at_or_below, kth_pair
from tonari.select.cuda.kernels.registers.keys import last_key, load_keys, to_keys
from tonari.select.cuda.kernels.registers.tiles import places, row_length, tile_offsets, total


@triton.jit
def load_entries(
    ptrs, present, WHOLE: tl.constexpr, VALUES: tl.constexpr, INFINITE: tl.constexpr, LARGEST: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    """Load the keys of a list's entries. VALUES: the list is the row itself; WHOLE: all entries are present."""
    FORMAT: tl.constexpr = INFINITE if VALUES else 0
    if WHOLE:
        return to_keys(tl.load(ptrs), FORMAT, LARGEST and VALUES, WIDE)
    return load_keys(ptrs, present, FORMAT, LARGEST and VALUES, WIDE)


@triton.jit
def list_size(length, power):
    """Return the size of the list whose entries are minima of `power` values each; the computation cannot overflow."""
    return tl.where(length > 0, (length - 1) // power + 1, 0)


@triton.jit(do_not_specialize=["first_row", "n", "power"])
def minima_kernel(
    # inputs: a list, [row][entry]
    list_ptr, lengths_ptr,
    # outputs: the next list and the one after it, [row][entry]
    next_ptr, after_ptr, nan_row_ptr,
    # shapes
    first_row, stride, out_stride, n, power, tiles,
    # constants
    HAS_LENGTHS: tl.constexpr, CHECK_NAN: tl.constexpr, VALUES: tl.constexpr, INFINITE: tl.constexpr,
    LARGEST: tl.constexpr, WIDE: tl.constexpr, G: tl.constexpr, GROUPS: tl.constexpr, WIDTH: tl.constexpr,
    TWO: tl.constexpr,
):  # fmt: skip
    """Compute the minima of GROUPS groups, WIDTH members of each at once; if TWO, also the minima of the next list."""
    tl.static_assert(not TWO or (G == WIDTH and GROUPS % G == 0), "a group of minima is one program's")
    program = tl.program_id(0)
    row = (program // tiles).to(tl.int64)
    tile = program % tiles
    size = list_size(row_length(lengths_ptr, row, n, HAS_LENGTHS), power)
    groups = tile * GROUPS + tl.arange(0, GROUPS)
    count = list_size(size, G)
    members = tl.arange(0, WIDTH)[None, :]
    row_ptr = list_ptr + row * stride + tile.to(tl.int64) * (GROUPS * G)
    local = tl.arange(0, GROUPS)[:, None] * G + members
    nans = tl.zeros((), tl.int32)
    if (G == WIDTH) & ((tile + 1) * GROUPS <= size // G):
        keys = load_entries(row_ptr + local, True, True, VALUES, INFINITE, LARGEST, WIDE)  # [GROUPS, WIDTH]
        if CHECK_NAN:
            nans = tl.max((keys == last_key(WIDE)).to(tl.int32))
        minima = tl.min(keys, axis=1)
    else:
        left = tl.where(groups < count, size - groups * G, 0)[:, None]
        least = tl.zeros([GROUPS, WIDTH], tl.int64 if WIDE else tl.int32) + last_key(WIDE)
        for first in range(0, G, WIDTH):
            present = (first + members < G) & (first + members < left)
            keys = load_entries(row_ptr + first + local, present, False, VALUES, INFINITE, LARGEST, WIDE)
            if CHECK_NAN:
                nans = tl.maximum(nans, tl.max((present & (keys == last_key(WIDE))).to(tl.int32)))
            least = tl.minimum(least, keys)
        minima = tl.min(least, axis=1)
    tl.store(next_ptr + row * out_stride + groups, minima, mask=groups < count)
    if TWO:
        pairs = tile * (GROUPS // G) + tl.arange(0, GROUPS // G)
        minima = tl.min(tl.reshape(minima, [GROUPS // G, G]), axis=1)
        tl.store(after_ptr + row * out_stride + pairs, minima, mask=pairs < list_size(count, G))
    if CHECK_NAN:
        if nans > 0:
            tl.atomic_min(nan_row_ptr, first_row + row.to(tl.int32))


@triton.jit
def keep_best(
    slot_bits_ptr, slot_ids_ptr, held, k, most, out_ids_ptr,
    VALUES: tl.constexpr, INFINITE: tl.constexpr, LARGEST: tl.constexpr, WIDE: tl.constexpr, A: tl.constexpr,
    T: tl.constexpr, V: tl.constexpr,
):  # fmt: skip
    """Keep at least k and at most `most` of the smallest pairs in the slots, and write their indices to `out_ids_ptr`.

    Returns the number of pairs kept, and a (key, index) bound that they do not exceed. The slots hold `held` >= k
    pairs.
    """
    tl.debug_barrier()  # the next loads read pairs that other threads stored
    slots = tile_offsets(A, T, V)
    present = slots < held
    bits = tl.load(slot_bits_ptr + slots, mask=present, other=0)  # [T, A, V]
    ids = tl.load(slot_ids_ptr + slots, mask=present, other=0)
    tl.debug_barrier()  # all threads must have loaded their pairs before any slot is overwritten
    keys = to_keys(bits, INFINITE if VALUES else 0, LARGEST and VALUES, WIDE)
    key, last = kth_pair(keys, ids, present, k, most)
    chosen = present & at_or_below(keys, ids, key, last)
    at = places(chosen)
    tl.store(slot_bits_ptr + at, bits, mask=chosen)
    tl.store(out_ids_ptr + at, ids, mask=chosen)
    tl.debug_barrier()
    return total(chosen), key, last


@triton.jit
def offer_members(
    list_ptr, size, groups_ptr, groups, all_groups, key, last, slot_bits_ptr, slot_ids_ptr, k,
    COUNT: tl.constexpr, CHECK_NAN: tl.constexpr, VALUES: tl.constexpr, INFINITE: tl.constexpr, LARGEST: tl.constexpr,
    WIDE: tl.constexpr, G: tl.constexpr, A: tl.constexpr, T: tl.constexpr, V: tl.constexpr,
):  # fmt: skip
    """Append to the slots the members at or below (key, last) of the groups listed at `groups_ptr`, or of all groups.

    Returns the number of pairs in the slots, which include the k smallest members; the number of members read (if
    COUNT); and the number of NaNs among them (if CHECK_NAN).
    """
    TILE: tl.constexpr = A * T * V
    FORMAT: tl.constexpr = INFINITE if VALUES else 0
    PART: tl.constexpr = min((G + V - 1) // V * V, TILE)  # positions of a tile that one group takes, in whole runs of V
    SHARE: tl.constexpr = TILE // PART  # number of groups in a tile
    SPAN: tl.constexpr = (G + PART - 1) // PART  # number of tiles that one group takes
    tiles = (groups + SHARE - 1) // SHARE
    runs = tile_offsets(A, T, 1) * V
    within = runs // PART
    v = tl.arange(0, V)[None, None, :]
    held = tl.zeros((), tl.int32)
    offered = tl.zeros((), tl.int64)
    nans = tl.zeros((), tl.int32)
    for step in range(tiles * SPAN):
        tile = step // SPAN
        place = within * tiles + tile
        member = runs - within * PART + (step - tile * SPAN) * PART
        present = (within < SHARE) & (place < groups)
        group = place
        if all_groups == 0:
            group = tl.load(groups_ptr + place, mask=present, other=0)
        first = group * G
        present = present & (member + v < tl.minimum(G, size - first))
        ids = first + member + v
        bits = tl.load(list_ptr + ids, mask=present, other=0)  # [T, A, V]
        keys = to_keys(bits, FORMAT, LARGEST and VALUES, WIDE)
        chosen = present & at_or_below(keys, ids, key, last)
        found = total(chosen)
        if COUNT:
            offered += total(present)
        if CHECK_NAN:
            nans += total(present & (keys == last_key(WIDE)))
        if found > 0:
            at = held + places(chosen)
            tl.store(slot_bits_ptr + at, bits, mask=chosen)
            tl.store(slot_ids_ptr + at, ids, mask=chosen)
            held += found
            if held > TILE:  # the slots have no room for another tile
                held, key, last = keep_best(
                    slot_bits_ptr, slot_ids_ptr, held, k, k + k // 4, slot_ids_ptr,
                    VALUES, INFINITE, LARGEST, WIDE, 2 * A, T, V,
                )  # fmt: skip
    return held, offered, nans


@triton.jit(do_not_specialize=["first_row", "n", "k", "lists", "top", "power", "counted_top"])
def top_down_kernel(
    # inputs
    values_ptr, lengths_ptr, lists_ptr,
    # scratch, [row][slot]: kept entries of the current list, and the groups to search in the next list
    entries_ptr, entry_ids_ptr, groups_ptr,
    # outputs, [row][slot] and one per row
    slot_bits_ptr, slot_ids_ptr, counts_ptr, examined_ptr, nan_row_ptr,
    # shapes
    first_row, stride, lists_stride, n, k, lists, top, power, counted_top,
    # constants
    HAS_LENGTHS: tl.constexpr, COUNT: tl.constexpr, CHECK_NAN: tl.constexpr, INFINITE: tl.constexpr,
    LARGEST: tl.constexpr, WIDE: tl.constexpr, G: tl.constexpr, A: tl.constexpr, T: tl.constexpr, V: tl.constexpr,
):  # fmt: skip
    """Search a row's lists from the top, list number `lists`, down to the values.

    The top list begins at entry `top` of the row's lists, and each of its entries covers `power` values. All of its
    groups are searched. A row has 2 A T V slots, which in the end hold the k smallest pairs of the row and possibly
    more. `counted_top` is 1 if the counters include a list above the top, which is never built because it would have at
    most k entries. CHECK_NAN is set only if there are no lists, since otherwise NaN is detected while the lists are
    built.
    """
    SLOTS: tl.constexpr = 2 * A * T * V
    row = tl.program_id(0).to(tl.int64)
    length = row_length(lengths_ptr, row, n, HAS_LENGTHS)
    lists_ptr += row * lists_stride
    entries_ptr += row * SLOTS
    entry_ids_ptr += row * SLOTS
    groups_ptr += row * SLOTS
    start = tl.zeros((), tl.int64) + top
    span = tl.zeros((), tl.int32) + power
    key = last_key(WIDE)
    last = tl.full((), 0x7FFFFFFF, tl.int32)
    level = tl.zeros((), tl.int32) + lists
    groups = list_size(list_size(length, span), G)
    top_entries = groups * counted_top
    while (level > 0) & (list_size(length, span) <= k):  # a short row has fewer lists than a row of n values
        groups = list_size(length, span)
        top_entries = groups
        span = span // G
        start -= list_size(n, span)
        level -= 1
    examined = tl.where(length > k, top_entries, 0).to(tl.int64)
    all_groups = tl.full((), 1, tl.int32)
    for _list in range(level):
        held, offered, _ = offer_members(
            lists_ptr + start, list_size(length, span), groups_ptr, groups, all_groups, key, last,
            entries_ptr, entry_ids_ptr, k, COUNT, False, False, INFINITE, LARGEST, WIDE, G, A, T, V,
        )  # fmt: skip
        examined += offered
        # The k smallest entries are the groups to search in the next list. The largest of them bounds the members that
        # can be in the answer.
        wanted = tl.minimum(held, k)
        groups, key, last = keep_best(
            entries_ptr, entry_ids_ptr, held, wanted, wanted, groups_ptr,
            False, INFINITE, LARGEST, WIDE, 2 * A, T, V,
        )  # fmt: skip
        key = tl.where(groups < k, last_key(WIDE), key)
        last = tl.where(groups < k, 0x7FFFFFFF, tl.minimum((last.to(tl.int64) + 1) * G - 1, 0x7FFFFFFF)).to(tl.int32)
        all_groups = tl.zeros((), tl.int32)
        span = span // G
        start -= list_size(n, span)
    held, offered, nans = offer_members(
        values_ptr + row * stride, list_size(length, span), groups_ptr, groups, all_groups, key, last,
        slot_bits_ptr + row * SLOTS, slot_ids_ptr + row * SLOTS, k,
        COUNT, CHECK_NAN, True, INFINITE, LARGEST, WIDE, G, A, T, V,
    )  # fmt: skip
    tl.store(counts_ptr + row, held)
    if COUNT:
        tl.atomic_add(examined_ptr, examined + offered)
    if CHECK_NAN:
        if nans > 0:
            tl.atomic_min(nan_row_ptr, first_row + row.to(tl.int32))
