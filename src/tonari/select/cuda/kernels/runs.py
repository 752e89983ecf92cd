"""Sort the pairs of a row when they are too many for one network: sorted runs, which are then merged in pairs.

    sort_runs   sort runs of RUN pairs, each by a network in registers
    merge       merge two runs of `span` pairs each; a program computes TILE positions of the result

A program finds its input by the merge path (Odeh, Green, Mwassi, Shmueli and Birk 2012). Let `place` be the first
position of its tile in the result. A binary search finds the number `first` of pairs before `place` that belong to the
first run; the others belong to the second. A network then merges the next TILE pairs of each run and keeps the TILE
smallest. No two pairs are equal.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.select.cuda.kernels.registers.keys import last_key, store_values, to_keys
from tonari.select.cuda.kernels.registers.network import keep_smaller, sort_pairs


@triton.jit
def sort_runs_kernel(
    # inputs: [row][capacity] pairs, one count per row
    bits_ptr, ids_ptr, counts_ptr,
    # outputs: [row][capacity] pairs
    keys_ptr, out_ids_ptr,
    # shapes
    capacity, runs,
    # constants
    INFINITE: tl.constexpr, LARGEST: tl.constexpr, WIDE: tl.constexpr, RUN: tl.constexpr,
):  # fmt: skip
    """Sort run number `program % runs` of a row."""
    program = tl.program_id(0)
    row = (program // runs).to(tl.int64)
    count = tl.load(counts_ptr + row)
    begin = (program % runs) * RUN
    if begin < count:
        at = begin + tl.arange(0, RUN)
        present = at < count
        keys = to_keys(tl.load(bits_ptr + row * capacity + at, mask=present, other=0), INFINITE, LARGEST, WIDE)
        keys = tl.where(present, keys, last_key(WIDE))
        ids = tl.load(ids_ptr + row * capacity + at, mask=present, other=0x7FFFFFFF)  # [RUN]
        keys, ids = sort_pairs(keys, ids, RUN)
        tl.store(keys_ptr + row * capacity + at, keys, mask=present)
        tl.store(out_ids_ptr + row * capacity + at, ids, mask=present)


@triton.jit
def merge_path(keys_a_ptr, ids_a_ptr, size_a, keys_b_ptr, ids_b_ptr, size_b, place):
    """Return the number of pairs from run a among the first `place` pairs after merging the ascending runs a and b."""
    low = tl.maximum(0, place - size_b)
    high = tl.minimum(place, size_a)
    while low < high:
        middle = (low + high) // 2
        other = place - 1 - middle
        key_a, key_b = tl.load(keys_a_ptr + middle), tl.load(keys_b_ptr + other)
        id_a, id_b = tl.load(ids_a_ptr + middle), tl.load(ids_b_ptr + other)
        before = (key_a < key_b) | ((key_a == key_b) & (id_a < id_b))
        low = tl.where(before, middle + 1, low)
        high = tl.where(before, high, middle)
    return low


@triton.jit
def load_run(keys_ptr, ids_ptr, at, size, WIDE: tl.constexpr):
    """Load pairs of a run; beyond its end, pairs that sort last."""
    present = at < size
    keys = tl.load(keys_ptr + at, mask=present, other=0)
    return tl.where(present, keys, last_key(WIDE)), tl.load(ids_ptr + at, mask=present, other=0x7FFFFFFF)


@triton.jit(do_not_specialize=["k", "span"])
def merge_kernel(
    # inputs: [row][capacity] pairs in runs of `span`, one count per row
    values_ptr, counts_ptr, keys_ptr, ids_ptr,
    # outputs: [row][capacity] pairs in runs of 2 span; if FINAL, [row][k] values and indices
    out_keys_ptr, out_ids_ptr,
    # shapes
    stride, k, capacity, span, tiles,
    # constants
    FINAL: tl.constexpr, MISSING: tl.constexpr, INFINITE: tl.constexpr, LARGEST: tl.constexpr, WIDE: tl.constexpr,
    TILE: tl.constexpr,
):  # fmt: skip
    """Fill tile number `program % tiles` of a row."""
    program = tl.program_id(0)
    row = (program // tiles).to(tl.int64)
    count = tl.load(counts_ptr + row)
    begin = (program % tiles) * TILE
    start = begin * 0
    if not FINAL:
        start = begin // (2 * span) * (2 * span)
    keys_ptr += row * capacity + start
    ids_ptr += row * capacity + start
    size_a = tl.minimum(tl.maximum(count - start, 0), span)
    size_b = tl.minimum(tl.maximum(count - start - span, 0), span)
    place = tl.minimum(begin - start, size_a + size_b)
    first = merge_path(keys_ptr, ids_ptr, size_a, keys_ptr + span, ids_ptr + span, size_b, place)
    slots = tl.arange(0, TILE)
    keys_a, ids_a = load_run(keys_ptr, ids_ptr, first + slots, size_a, WIDE)  # [TILE]
    keys_b, ids_b = load_run(
        keys_ptr + span, ids_ptr + span, place - first + TILE - 1 - slots, size_b, WIDE
    )  # run b in descending order, as keep_smaller requires
    keys, ids = keep_smaller(keys_a, ids_a, keys_b, ids_b, TILE)
    at = begin + slots
    present = at < count
    if FINAL:
        keys = tl.where(present, keys, tl.full((), MISSING, keys.dtype))
        row_ptr = values_ptr + row * stride
        store_values(out_keys_ptr + row * k + at, row_ptr, keys, ids, at < k, present, INFINITE, LARGEST)
        tl.store(out_ids_ptr + row * k + at, tl.where(present, ids, -1), mask=at < k)
    else:
        tl.store(out_keys_ptr + row * capacity + at, keys, mask=present)
        tl.store(out_ids_ptr + row * capacity + at, ids, mask=present)
