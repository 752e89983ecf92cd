"""The last step of a selection: find the k smallest of the at most CAPACITY survivors of each row, in order.

    kth_pair              if there are more than SIZE pairs, bisection keeps at least k and at most SIZE of them
    sorting network       of SIZE >= k pairs, a power of two
    values                from the keys; the row itself is read only for zeros and NaN

One program per row: CAPACITY pairs in registers as [T, A, V], then SIZE.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.select.cuda.kernels.registers.halving import at_or_below, kth_pair
from tonari.select.cuda.kernels.registers.keys import last_key, store_values, to_keys
from tonari.select.cuda.kernels.registers.network import sort_pairs
from tonari.select.cuda.kernels.registers.tiles import places, tile_offsets, total


@triton.jit
def keep_smallest(
    bits, ids, present, k, most, bits_ptr, ids_ptr, INFINITE: tl.constexpr, LARGEST: tl.constexpr, WIDE: tl.constexpr
):
    """Write at least k and at most `most` of the smallest pairs under the mask `present` to memory, in any order.

    Returns the number of pairs written, and a (key, index) pair that none of them exceeds.
    """
    keys = to_keys(bits, INFINITE, LARGEST, WIDE)
    key, last = kth_pair(keys, ids, present, k, most)
    chosen = present & at_or_below(keys, ids, key, last)
    at = places(chosen)
    tl.store(bits_ptr + at, bits, mask=chosen)
    tl.store(ids_ptr + at, ids, mask=chosen)
    return total(chosen), key, last


@triton.jit
def write_row(
    out_values_ptr, out_ids_ptr, row_ptr, bits_ptr, ids_ptr, count, k,
    SIZE: tl.constexpr, SORTED: tl.constexpr, MISSING: tl.constexpr, INFINITE: tl.constexpr, LARGEST: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    """Write the answer of a row from its `count` survivors in memory: count <= SIZE if SORTED, else count <= k."""
    at = tl.arange(0, SIZE)
    present = at < count
    keys = to_keys(tl.load(bits_ptr + at, mask=present, other=0), INFINITE, LARGEST, WIDE)
    keys = tl.where(present, keys, last_key(WIDE))
    ids = tl.load(ids_ptr + at, mask=present, other=0x7FFFFFFF)  # [SIZE]
    if SORTED:
        keys, ids = sort_pairs(keys, ids, SIZE)
    keys = tl.where(present, keys, tl.full((), MISSING, keys.dtype))
    store_values(out_values_ptr + at, row_ptr, keys, ids, at < k, present, INFINITE, LARGEST)
    tl.store(out_ids_ptr + at, tl.where(present, ids, -1), mask=at < k)


@triton.jit
def finish_row(
    out_values_ptr, out_ids_ptr, row_ptr, bits_ptr, ids_ptr, count, k,
    T: tl.constexpr, A: tl.constexpr, V: tl.constexpr, SIZE: tl.constexpr, SORTED: tl.constexpr, MISSING: tl.constexpr,
    INFINITE: tl.constexpr, LARGEST: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Write the answer of a row from its `count` <= T * A * V survivors in memory, which are overwritten."""
    most = k
    if SORTED:
        most = SIZE
    if count > most:
        slots = tile_offsets(A, T, V)
        present = slots < count
        bits = tl.load(bits_ptr + slots, mask=present, other=0)  # [T, A, V]
        ids = tl.load(ids_ptr + slots, mask=present, other=0)
        count, _, _ = keep_smallest(bits, ids, present, k, most, bits_ptr, ids_ptr, INFINITE, LARGEST, WIDE)
        tl.debug_barrier()  # write_row loads pairs that other threads stored
    write_row(
        out_values_ptr, out_ids_ptr, row_ptr, bits_ptr, ids_ptr, count, k,
        SIZE, SORTED, MISSING, INFINITE, LARGEST, WIDE,
    )  # fmt: skip


@triton.jit(do_not_specialize=["k"])
def finish_kernel(
    # inputs: [row][capacity] survivors, one count per row
    values_ptr, bits_ptr, ids_ptr, counts_ptr,
    # outputs, [row][k]
    out_values_ptr, out_ids_ptr,
    # shapes
    stride, k, capacity,
    # constants
    T: tl.constexpr, A: tl.constexpr, V: tl.constexpr, SIZE: tl.constexpr, SORTED: tl.constexpr, MISSING: tl.constexpr,
    INFINITE: tl.constexpr, LARGEST: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    finish_row(
        out_values_ptr + row * k, out_ids_ptr + row * k, values_ptr + row * stride,
        bits_ptr + row * capacity, ids_ptr + row * capacity, tl.load(counts_ptr + row), k,
        T, A, V, SIZE, SORTED, MISSING, INFINITE, LARGEST, WIDE,
    )  # fmt: skip
