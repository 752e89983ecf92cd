"""Compaction: append the values at or below a row's threshold to its survivors, in one read of the row.

The row is read in tiles [T, A, V]. A tile needs one sum over its mask of survivors, and one atomic addition if it has
any. The threshold is a (key, index) pair. If EXACT, the keys of all values are computed and compared with it. Otherwise
the bits of a value are compared after a single xor (comparable_bits), which can keep a few values above the threshold.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.select.cuda.kernels.registers.halving import at_or_below
from tonari.select.cuda.kernels.registers.keys import comparable_bits, to_keys
from tonari.select.cuda.kernels.registers.tiles import per_thread, places, row_length, tile_offsets


@triton.jit
def passes(
    bits, ids, key, last, EXACT: tl.constexpr, INFINITE: tl.constexpr, LARGEST: tl.constexpr, WIDE: tl.constexpr
):
    """Return a mask of the values at or below the threshold: `key`, and `last`, the largest index with this key."""
    if EXACT:
        return at_or_below(to_keys(bits, INFINITE, LARGEST, WIDE), ids, key, last)
    flip, limit = comparable_bits(key, INFINITE, LARGEST, WIDE, bits.dtype.primitive_bitwidth)
    return (bits.to(limit.dtype) ^ flip) <= limit - (ids > last).to(limit.dtype)


@triton.jit
def magnitudes(bits, WIDE: tl.constexpr):
    """Return, for NaN detection, the largest magnitude among the bits of each thread's values; int32 or int64 [T]."""
    MAGNITUDE: tl.constexpr = (1 << (bits.dtype.primitive_bitwidth - 1)) - 1
    return tl.max(tl.max(bits & MAGNITUDE, 2), 1).to(tl.int64 if WIDE else tl.int32)


@triton.jit(do_not_specialize=["first_row", "n"])
def compact_kernel(
    # inputs
    values_ptr, lengths_ptr, threshold_keys_ptr, threshold_ids_ptr,
    # outputs: [row][capacity] pairs, one count per row
    bits_ptr, ids_ptr, counts_ptr, nan_row_ptr,
    # shapes
    first_row, stride, n, capacity, parts, chunk,
    # constants
    HAS_LENGTHS: tl.constexpr, CHECK_NAN: tl.constexpr, INFINITE: tl.constexpr, LARGEST: tl.constexpr,
    WIDE: tl.constexpr, EXACT: tl.constexpr, T: tl.constexpr, A: tl.constexpr, V: tl.constexpr,
):  # fmt: skip
    """Append the values of a chunk up to the threshold to the survivors of its row; count those beyond the capacity."""
    program = tl.program_id(0)
    row = (program // parts).to(tl.int64)
    row_ptr = values_ptr + row * stride
    bits_ptr += row * capacity
    ids_ptr += row * capacity
    begin = (program % parts) * chunk
    end = tl.minimum(begin + chunk, row_length(lengths_ptr, row, n, HAS_LENGTHS))
    key = tl.load(threshold_keys_ptr + row)
    last = tl.load(threshold_ids_ptr + row)
    magnitude = tl.zeros([T], key.dtype)
    for start in range(begin, end, T * A * V):
        ids = start + tile_offsets(A, T, V)
        if start + A * T * V <= end:  # wide loads need no mask
            bits = tl.load(row_ptr + ids)  # [T, A, V]
            chosen = passes(bits, ids, key, last, EXACT, INFINITE, LARGEST, WIDE)
        else:
            present = ids < end
            bits = tl.load(row_ptr + ids, mask=present, other=0)
            chosen = present & passes(bits, ids, key, last, EXACT, INFINITE, LARGEST, WIDE)
        if CHECK_NAN:
            magnitude = tl.maximum(magnitude, magnitudes(bits, WIDE))
        found = tl.sum(per_thread(chosen.to(tl.int32)), 0)
        if found > 0:
            at = tl.atomic_add(counts_ptr + row, found, sem="relaxed") + places(chosen)
            chosen = chosen & (at < capacity)
            tl.store(bits_ptr + at, bits, mask=chosen)
            tl.store(ids_ptr + at, ids, mask=chosen)
    if CHECK_NAN:
        if tl.max(magnitude, 0) > INFINITE:
            tl.atomic_min(nan_row_ptr, first_row + row.to(tl.int32))
