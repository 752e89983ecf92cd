"""Sampled thresholds and compaction (matsumoto2015, sections III and V-A), on the GPU.

    sample    runs of RUN adjacent values, one at a random position in every stratum of the row. The threshold is a
              (key, index) pair with at least `rank` samples, and few more, at or below it. The index separates
              equal values. A sample spread over the row works for sorted rows as well as for random ones
    compact   the row is streamed once; pairs at or below the threshold are the row's survivors (kernels/compact.py)
    answer    the k smallest survivors, in order (kernels/finish.py); a row with fewer than k survivors, or more than
              the capacity, is first narrowed by radix selection

Rows that fit in registers need no sample: they are read once, and their k-th pair is found by bisection.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.select.cuda.kernels.finish import finish_row, keep_smallest, write_row
from tonari.select.cuda.kernels.radix import collect, kth_pair_streamed
from tonari.select.cuda.kernels.registers.halving import at_or_below, kth_pair
from tonari.select.cuda.kernels.registers.keys import last_key, to_keys
from tonari.select.cuda.kernels.registers.tiles import greatest, per_thread, places, row_length, tile_offsets


@triton.jit(do_not_specialize=["first_row", "stride", "n", "k"])
def resident_kernel(
    # inputs
    values_ptr, lengths_ptr,
    # scratch: [row][SIZE] pairs
    bits_ptr, ids_ptr,
    # outputs
    out_values_ptr, out_ids_ptr, nan_row_ptr,
    # shapes
    first_row, stride, n, k,
    # constants
    HAS_LENGTHS: tl.constexpr, CHECK_NAN: tl.constexpr, INFINITE: tl.constexpr, LARGEST: tl.constexpr,
    WIDE: tl.constexpr, MISSING: tl.constexpr, SORTED: tl.constexpr, T: tl.constexpr, A: tl.constexpr, V: tl.constexpr,
    SIZE: tl.constexpr,
):  # fmt: skip
    """Answer a row of at most A * T * V values, held in registers."""
    row = tl.program_id(0).to(tl.int64)
    length = row_length(lengths_ptr, row, n, HAS_LENGTHS)
    row_ptr = values_ptr + row * stride
    bits_ptr += row * SIZE
    ids_ptr += row * SIZE
    ids = tile_offsets(A, T, V)
    present = ids < length
    bits = tl.load(row_ptr + ids, mask=present, other=0)  # [T, A, V]
    if CHECK_NAN:
        is_nan = to_keys(bits, INFINITE, LARGEST, WIDE) == last_key(WIDE)
        if tl.sum(per_thread((present & is_nan).to(tl.int32)), 0) > 0:
            tl.atomic_min(nan_row_ptr, first_row + row.to(tl.int32))
    count = length
    most = k
    if SORTED:
        most = SIZE
    if length > most:
        count, _, _ = keep_smallest(bits, ids, present, k, most, bits_ptr, ids_ptr, INFINITE, LARGEST, WIDE)
    else:
        tl.store(bits_ptr + ids, bits, mask=present)
        tl.store(ids_ptr + ids, ids, mask=present)
    tl.debug_barrier()  # the next loads read pairs that other threads stored
    write_row(
        out_values_ptr + row * k, out_ids_ptr + row * k, row_ptr, bits_ptr, ids_ptr, count, k,
        SIZE, SORTED, MISSING, INFINITE, LARGEST, WIDE,
    )  # fmt: skip


@triton.jit
def sample_pairs(
    row_ptr, row, length, part, parts,
    A: tl.constexpr, T: tl.constexpr, RUN: tl.constexpr, INFINITE: tl.constexpr, LARGEST: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    """Load A * T runs, each at a random position in its stratum; return keys, ids and the mask of valid samples.

    All have shape [T, A, RUN].
    """
    strata = part * (A * T) + tile_offsets(A, T, 1)
    width = length // (parts * (A * T))
    # A multiplicative hash is random enough: a bad sample costs time, but changes no answer.
    mixed = strata.to(tl.uint32) * 0x9E3779B1 + row.to(tl.uint32) * 0x85EBCA6B
    mixed = (mixed ^ (mixed >> 15)) * 0x2C1B3C6D
    mixed = mixed ^ (mixed >> 13)
    room = tl.maximum(width - RUN, 0) + 1
    # Equal to tl.umulhi, which would link libdevice (metrics/kernels/instructions.py).
    jitter = ((mixed.to(tl.uint64) * room.to(tl.uint64)) >> 32).to(tl.int32)
    first = strata * width + jitter
    if RUN > 1:
        first = first // 4 * 4  # aligned to the 16 bytes of one load
    ids = first + tl.arange(0, RUN)[None, None, :]  # [T, A, RUN]
    present = ids < length
    keys = to_keys(tl.load(row_ptr + ids, mask=present, other=0), INFINITE, LARGEST, WIDE)
    return keys, ids, present


@triton.jit
def pair_of(keys, ids, kept):
    """Return the largest (key, index) pair under the mask `kept`."""
    LOWEST: tl.constexpr = -0x8000000000000000 if keys.dtype == tl.int64 else -0x80000000
    key = greatest(tl.where(kept, keys, LOWEST))
    last = greatest(tl.where(kept & (keys == key), ids, -1))
    return key, last


@triton.jit
def store_threshold(keys_ptr, ids_ptr, counts_ptr, row, key, last, everything, WIDE: tl.constexpr):
    """Store a row's threshold, or the largest pair if `everything` shall survive; set the row's survivor count to 0."""
    tl.store(keys_ptr + row, tl.where(everything, last_key(WIDE), key))
    tl.store(ids_ptr + row, tl.where(everything, 0x7FFFFFFF, last))
    tl.store(counts_ptr + row, 0)


@triton.jit(do_not_specialize=["n", "rank", "most"])
def sample_kernel(
    # inputs
    values_ptr, lengths_ptr,
    # outputs: [row][part][rank] pairs, or the row's threshold if SINGLE; the row's count of survivors, set to 0
    keys_ptr, ids_ptr, counts_ptr,
    # shapes
    stride, n, capacity, parts, rank, most,
    # constants
    HAS_LENGTHS: tl.constexpr, INFINITE: tl.constexpr, LARGEST: tl.constexpr, WIDE: tl.constexpr, SINGLE: tl.constexpr,
    T: tl.constexpr, A: tl.constexpr, RUN: tl.constexpr,
):  # fmt: skip
    """Draw one part of a row's sample and write its `rank` smallest pairs or, if SINGLE, the row's threshold."""
    program = tl.program_id(0)
    row = (program // parts).to(tl.int64)
    length = row_length(lengths_ptr, row, n, HAS_LENGTHS)
    keys, ids, present = sample_pairs(
        values_ptr + row * stride, row, length, program % parts, parts, A, T, RUN, INFINITE, LARGEST, WIDE
    )
    # Rows too short to need a threshold have samples beyond their end: these come last.
    keys = tl.where(present, keys, last_key(WIDE))
    ids = tl.where(present, ids, 0x7FFFFFFF)
    key, last = kth_pair(keys, ids, ids >= 0, rank, most)
    chosen = at_or_below(keys, ids, key, last)
    if SINGLE:
        key, last = pair_of(keys, ids, chosen)
        store_threshold(keys_ptr, ids_ptr, counts_ptr, row, key, last, length <= capacity, WIDE)
    else:
        at = places(chosen)
        chosen = chosen & (at < rank)
        tl.store(keys_ptr + program * rank + at, keys, mask=chosen)
        tl.store(ids_ptr + program * rank + at, ids, mask=chosen)


@triton.jit(do_not_specialize=["n", "count", "rank"])
def merge_samples_kernel(
    # inputs: [row][count] pairs
    sample_keys_ptr, sample_ids_ptr, lengths_ptr,
    # outputs: one pair per row; the row's count of survivors, set to 0
    keys_ptr, ids_ptr, counts_ptr,
    # shapes
    n, capacity, count, rank,
    # constants
    HAS_LENGTHS: tl.constexpr, WIDE: tl.constexpr, T: tl.constexpr, A: tl.constexpr, V: tl.constexpr,
):  # fmt: skip
    """Store the rank-th smallest pair of a row's sample, over all parts, as the threshold of the row."""
    row = tl.program_id(0).to(tl.int64)
    length = row_length(lengths_ptr, row, n, HAS_LENGTHS)
    slots = tile_offsets(A, T, V)
    present = slots < count
    keys = tl.load(sample_keys_ptr + row * count + slots, mask=present, other=0)  # [T, A, V]
    ids = tl.load(sample_ids_ptr + row * count + slots, mask=present, other=0)
    key, last = kth_pair(keys, ids, present, rank, rank)
    key, last = pair_of(keys, ids, present & at_or_below(keys, ids, key, last))
    store_threshold(keys_ptr, ids_ptr, counts_ptr, row, key, last, length <= capacity, WIDE)


@triton.jit(do_not_specialize=["n", "k"])
def answer_kernel(
    # inputs
    values_ptr, lengths_ptr,
    # inputs that are overwritten: [row][capacity] pairs, one count per row
    bits_ptr, ids_ptr, counts_ptr,
    # outputs: [row][k]
    out_values_ptr, out_ids_ptr,
    # shapes
    stride, n, k, capacity,
    # constants
    HAS_LENGTHS: tl.constexpr, INFINITE: tl.constexpr, LARGEST: tl.constexpr, WIDE: tl.constexpr, MISSING: tl.constexpr,
    SORTED: tl.constexpr, T: tl.constexpr, A: tl.constexpr, V: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    """Write the answer of a row from its survivors; if they are too few or too many, use radix selection."""
    row = tl.program_id(0).to(tl.int64)
    row_ptr = values_ptr + row * stride
    bits_ptr += row * capacity
    ids_ptr += row * capacity
    length = row_length(lengths_ptr, row, n, HAS_LENGTHS)
    wanted = tl.minimum(k, length)
    count = tl.load(counts_ptr + row)
    if (count < wanted) | (count > capacity):
        key, last = kth_pair_streamed(row_ptr, length, wanted, INFINITE, LARGEST, WIDE, 8, 512)
        collect(row_ptr, length, key, last, bits_ptr, ids_ptr, INFINITE, LARGEST, WIDE, 512)
        count = wanted
        tl.debug_barrier()  # the next loads read pairs that other threads stored
    finish_row(
        out_values_ptr + row * k, out_ids_ptr + row * k, row_ptr, bits_ptr, ids_ptr, count, k,
        T, A, V, SIZE, SORTED, MISSING, INFINITE, LARGEST, WIDE,
    )  # fmt: skip
