"""Selection from few long rows: a row is cut into parts, and one program holds a part in registers.

    part     a program reads a part of a row once, and writes at least k and at most `keep` of its smallest pairs
    lists    the same for the pairs kept from the parts of a row, while these are too many for one program
    answer   the k smallest of the remaining pairs, in order; directly from the values if a row fits into one program

Pairs are written in order of their columns, part after part, so the position of a pair decides between equal keys. A
program therefore holds only keys, and finds its k-th pair by bisection (registers/halving.py). It needs no atomic
operations. It needs no sample, which might not represent the row, and its time hardly depends on the values.

A part's list has `keep` slots: keys, and columns `columns_at` elements behind them. An empty slot has the key LAST and
the column EMPTY. NaN also has the key LAST, but a real column. The search for the k-th pair may count an empty slot as
a pair, but this never displaces a NaN that belongs to the answer: the list of a row's first part begins with k pairs,
unless the whole row has fewer than k values.
"""

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.standard import _sum_combine

from tonari.select.cuda.kernels.registers.halving import at_or_below, smallest_at_least
from tonari.select.cuda.kernels.registers.keys import last_key, store_values, to_keys
from tonari.select.cuda.kernels.registers.network import sort_pairs
from tonari.select.cuda.kernels.registers.tiles import row_length, tile_offsets, total

EMPTY = tl.constexpr(0x7FFFFFFF)


@triton.jit
def places_in_order(mask):
    """Return the rank of each element of the mask among these elements, in order of their offsets."""
    ones = mask.to(tl.int32)  # [T, A, V]
    runs = tl.reduce(ones, 2, _sum_combine)
    upto = tl.associative_scan(runs, 0, _sum_combine)
    rounds = tl.reduce(runs, 0, _sum_combine)  # [A]
    before = upto - runs + (tl.associative_scan(rounds, 0, _sum_combine) - rounds)[None, :]
    return tl.associative_scan(ones, 2, _sum_combine) - 1 + before[:, :, None]


@triton.jit
def last_of_equal(keys, offsets, key, k, most, below):
    """Return the last offset at which a pair with the key `key` is kept, so that a tile keeps at least k pairs.

    A tile keeps at most `most` pairs: those with smaller keys, and those with the key `key` up to the returned offset.
    `below`, which is at least k, is the number of pairs with keys at or below `key`. All of these are kept if `below`
    does not exceed `most`.
    """
    last = tl.full((), EMPTY, tl.int32)
    if below > most:
        less = total(keys < key)
        low = tl.zeros((), tl.int32)
        high = tl.full((), keys.numel - 1, tl.int32)
        while (low < high) & (below > most):
            middle = (low + high) >> 1
            count = less + total((keys == key) & (offsets <= middle))
            enough = count >= k
            high = tl.where(enough, middle, high)
            low = tl.where(enough, low, middle + 1)
            below = tl.where(enough, count, below)
        last = high
    return last


@triton.jit
def bound_of_tile(keys, offsets, k, most, NARROW: tl.constexpr):
    """Return a (key, offset) bound such that at least k and at most `most` pairs of a tile are at or below it.

    The tile must have at least k pairs. NARROW: keys have at most 16 bits and are often equal, so each key is packed
    with its offset into one 31-bit number.
    """
    LAST: tl.constexpr = 0x7FFF  # stands for the key LAST, and exceeds all other keys
    everywhere = tl.full(keys.shape, 1, tl.int1)
    if NARROW:
        tl.static_assert(keys.numel <= 1 << 15)
        number, _ = smallest_at_least((tl.minimum(keys, LAST) << 15) | offsets, everywhere, k, most)
        key = number >> 15
        key = tl.where(key == LAST, last_key(False), key)
        last = number & 0x7FFF
    else:
        key, below = smallest_at_least(keys, everywhere, k, most)
        last = last_of_equal(keys, offsets, key, k, most, below)
    return key, last


@triton.jit
def fill_list(list_ptr, columns_at, first, keep, WIDE: tl.constexpr, T: tl.constexpr):
    """Mark the slots of a part's list as empty, from slot `first` up to `keep`."""
    KEY: tl.constexpr = tl.int64 if WIDE else tl.int32
    for start in range(first, keep, T):
        slots = start + tl.arange(0, T)
        tl.store(list_ptr + slots, last_key(WIDE), mask=slots < keep)
        tl.store(list_ptr + columns_at + slots, tl.full((), EMPTY, KEY), mask=slots < keep)


@triton.jit
def bound_of_values(
    row_ptr, begin, end, k, most, nan_row_ptr, row, CHECK_NAN: tl.constexpr, INFINITE: tl.constexpr,
    LARGEST: tl.constexpr, WIDE: tl.constexpr, NARROW: tl.constexpr, T: tl.constexpr, A: tl.constexpr, V: tl.constexpr,
):  # fmt: skip
    """Return a (key, offset) bound such that at least k and at most `most` values in [begin, end) are at or below it.

    If the range has at most `most` values, all of them are at or below the bound.
    """
    offsets = tile_offsets(A, T, V)
    if begin + T * A * V <= end:  # wide loads need no mask
        keys = to_keys(tl.load(row_ptr + begin + offsets), INFINITE, LARGEST, WIDE)
    else:
        present = begin + offsets < end
        keys = to_keys(tl.load(row_ptr + begin + offsets, mask=present, other=0), INFINITE, LARGEST, WIDE)
        keys = tl.where(present, keys, last_key(WIDE))
    if CHECK_NAN:
        if total((begin + offsets < end) & (keys == last_key(WIDE))) > 0:
            tl.atomic_min(nan_row_ptr, row.to(tl.int32))
    key = last_key(WIDE)
    last = tl.full((), EMPTY, tl.int32)
    if end - begin > most:
        key, last = bound_of_tile(keys, offsets, k, most, NARROW)
    return key, last


@triton.jit
def bound_of_lists(
    lists_ptr, begin, end, k, most, WIDE: tl.constexpr, NARROW: tl.constexpr, T: tl.constexpr, A: tl.constexpr,
    V: tl.constexpr,
):  # fmt: skip
    """Return a (key, offset) bound such that at least k and at most `most` pairs of [begin, end) are at or below it."""
    offsets = tile_offsets(A, T, V)
    inside = begin + offsets < end
    keys = tl.load(lists_ptr + begin + offsets, mask=inside, other=last_key(WIDE))
    return bound_of_tile(keys, offsets, k, most, NARROW)


@triton.jit
def collect_values(
    row_ptr, begin, end, key, last, out_ptr, columns_at, INFINITE: tl.constexpr, LARGEST: tl.constexpr,
    WIDE: tl.constexpr, T: tl.constexpr, B: tl.constexpr, V: tl.constexpr,
):  # fmt: skip
    """Write the pairs at or below (key, last) in one part of a row, in order of column; return their count."""
    count = tl.zeros((), tl.int32)
    for start in range(begin, end, T * B * V):
        columns = start + tile_offsets(B, T, V)
        present = columns < end
        keys = to_keys(tl.load(row_ptr + columns, mask=present, other=0), INFINITE, LARGEST, WIDE)
        chosen = present & at_or_below(keys, columns - begin, key, last)
        at = count + places_in_order(chosen)
        tl.store(out_ptr + at, keys, mask=chosen)
        tl.store(out_ptr + columns_at + at, columns.to(keys.dtype), mask=chosen)
        count += total(chosen)
    return count


@triton.jit
def collect_lists(
    lists_ptr, begin, end, columns_at, key, last, out_ptr, out_columns_at, WIDE: tl.constexpr, T: tl.constexpr,
    B: tl.constexpr, V: tl.constexpr,
):  # fmt: skip
    """Write the pairs at or below (key, last) in the slots [begin, end), in order of column; return their count."""
    count = tl.zeros((), tl.int32)
    for start in range(begin, end, T * B * V):
        slots = start + tile_offsets(B, T, V)
        present = slots < end
        keys = tl.load(lists_ptr + slots, mask=present, other=last_key(WIDE))
        chosen = present & at_or_below(keys, slots - begin, key, last)
        columns = tl.load(lists_ptr + columns_at + slots, mask=chosen, other=EMPTY)
        chosen = chosen & (columns != EMPTY)
        at = count + places_in_order(chosen)
        tl.store(out_ptr + at, keys, mask=chosen)
        tl.store(out_ptr + out_columns_at + at, columns, mask=chosen)
        count += total(chosen)
    return count


@triton.jit(do_not_specialize=["n", "k", "parts", "keep", "columns_at"])
def part_kernel(
    # inputs
    values_ptr, lengths_ptr,
    # outputs: [row][part] lists
    lists_ptr, nan_row_ptr,
    # shapes
    stride, n, k, parts, keep, columns_at,
    # constants
    HAS_LENGTHS: tl.constexpr, CHECK_NAN: tl.constexpr, INFINITE: tl.constexpr, LARGEST: tl.constexpr,
    WIDE: tl.constexpr, NARROW: tl.constexpr, T: tl.constexpr, A: tl.constexpr, B: tl.constexpr, V: tl.constexpr,
):  # fmt: skip
    """Write at least k and at most `keep` of the smallest pairs in one part of a row; all, if it has at most `keep`."""
    program = tl.program_id(0)
    row = (program // parts).to(tl.int64)
    row_ptr = values_ptr + row * stride
    begin = (program % parts) * (T * A * V)
    end = tl.minimum(begin + T * A * V, row_length(lengths_ptr, row, n, HAS_LENGTHS))
    key, last = bound_of_values(
        row_ptr, begin, end, k, keep, nan_row_ptr, row, CHECK_NAN, INFINITE, LARGEST, WIDE, NARROW, T, A, V
    )
    list_ptr = lists_ptr + program.to(tl.int64) * keep
    count = collect_values(row_ptr, begin, end, key, last, list_ptr, columns_at, INFINITE, LARGEST, WIDE, T, B, V)
    fill_list(list_ptr, columns_at, count, keep, WIDE, T)


@triton.jit(do_not_specialize=["lists_at", "out_at", "width", "columns_at", "k", "parts", "keep", "out_columns_at"])
def lists_kernel(
    # inputs, from `lists_at` on: the lists of each row, `width` slots per row. Outputs, from `out_at` on: lists
    # [row][part].
    lists_ptr,
    # shapes
    lists_at, out_at, width, columns_at, k, parts, keep, out_columns_at,
    # constants
    WIDE: tl.constexpr, NARROW: tl.constexpr, T: tl.constexpr, A: tl.constexpr, B: tl.constexpr, V: tl.constexpr,
):  # fmt: skip
    """Write at least k and at most `keep` of the smallest pairs in the slots of one part of a row."""
    program = tl.program_id(0)
    begin = (program % parts) * (T * A * V)
    end = tl.minimum(begin + T * A * V, width)
    out_ptr = lists_ptr + out_at + program.to(tl.int64) * keep
    lists_ptr += lists_at + (program // parts).to(tl.int64) * width
    key, last = bound_of_lists(lists_ptr, begin, end, k, keep, WIDE, NARROW, T, A, V)
    count = collect_lists(lists_ptr, begin, end, columns_at, key, last, out_ptr, out_columns_at, WIDE, T, B, V)
    fill_list(out_ptr, out_columns_at, count, keep, WIDE, T)


@triton.jit(do_not_specialize=["n", "k", "lists_at", "width", "columns_at", "packed_at"])
def parts_answer_kernel(
    # inputs: bits of the values, and lengths of the rows. lists_ptr: lists of `width` slots per row from `lists_at` on;
    # scratch memory for SIZE pairs per row from `packed_at` on
    values_ptr, lengths_ptr, lists_ptr,
    # outputs
    out_values_ptr, out_columns_ptr, nan_row_ptr,
    # shapes
    stride, n, k, lists_at, width, columns_at, packed_at,
    # constants
    HAS_LENGTHS: tl.constexpr, CHECK_NAN: tl.constexpr, INFINITE: tl.constexpr, LARGEST: tl.constexpr,
    WIDE: tl.constexpr, NARROW: tl.constexpr, MISSING: tl.constexpr, SORTED: tl.constexpr, LISTS: tl.constexpr,
    SIZE: tl.constexpr, T: tl.constexpr, A: tl.constexpr, B: tl.constexpr, V: tl.constexpr,
):  # fmt: skip
    """Write the answer of a row: from its lists if LISTS, else from all its values, which must fit into one tile."""
    row = tl.program_id(0).to(tl.int64)
    row_ptr = values_ptr + row * stride
    length = row_length(lengths_ptr, row, n, HAS_LENGTHS)
    wanted = tl.minimum(k, length)
    most = k
    if SORTED:
        most = SIZE
    packed_ptr = lists_ptr + packed_at + row * (2 * SIZE)
    if LISTS:
        lists_ptr += lists_at + row * width
        key, last = bound_of_lists(lists_ptr, 0, width, k, most, WIDE, NARROW, T, A, V)
        count = collect_lists(lists_ptr, 0, width, columns_at, key, last, packed_ptr, SIZE, WIDE, T, B, V)
    else:
        key, last = bound_of_values(
            row_ptr, 0, length, k, most, nan_row_ptr, row, CHECK_NAN, INFINITE, LARGEST, WIDE, NARROW, T, A, V
        )
        count = collect_values(row_ptr, 0, length, key, last, packed_ptr, SIZE, INFINITE, LARGEST, WIDE, T, B, V)
    tl.debug_barrier()  # the next loads read pairs that other threads stored
    places = tl.arange(0, SIZE)
    keys = tl.load(packed_ptr + places, mask=places < count, other=last_key(WIDE))
    columns = tl.load(packed_ptr + SIZE + places, mask=places < count, other=EMPTY).to(tl.int32)
    if SORTED:
        keys, columns = sort_pairs(keys, columns, SIZE)
    present = places < wanted
    keys = tl.where(present, keys, tl.full((), MISSING, keys.dtype))
    store_values(out_values_ptr + row * k + places, row_ptr, keys, columns, places < k, present, INFINITE, LARGEST)
    tl.store(out_columns_ptr + row * k + places, tl.where(present, columns, -1), mask=places < k)
