"""Radix selection: find the k-th smallest key digit by digit, most significant first, then collect the answer.

The method is radix select (Alabi et al. 2012), with the early stop of AIR Top-k (Zhang et al., SC 2023): once all
values that share the digits found so far are wanted, the lower digits do not matter.

    pass p:   histogram[d] = number of values with the current prefix whose next digit is d  one read of the row
              digit = the d at which the running sum reaches the number of values still wanted
    ties:     equal keys are ordered by index, so the index of the last wanted one is found
    collect:  pairs at or below the k-th                                                      one more read

If there are many rows, one program does all of this for a row (radix_kernel), and collects in order of index. If there
are few, programs share a row (radix_parts.py).

    (prefix, wanted, share)   the digits found so far; the number of values with this prefix that are in the answer; the
                              number of all values with this prefix
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.select.cuda.kernels.registers.halving import at_or_below
from tonari.select.cuda.kernels.registers.keys import last_key, load_keys, to_keys
from tonari.select.cuda.kernels.registers.tiles import row_length


@triton.jit
def flip_sign(keys, WIDE: tl.constexpr):
    """Flip the sign bit of keys, so that their digits have the order of the keys; a second call restores the keys."""
    return keys ^ (-last_key(WIDE) - 1)


@triton.jit
def digit_histogram(
    row_ptr,
    begin,
    end,
    prefix,
    above,
    shift,
    INFINITE: tl.constexpr,
    LARGEST: tl.constexpr,
    WIDE: tl.constexpr,
    BITS: tl.constexpr,
    TILE: tl.constexpr,
):
    """Count how often each digit occurs in bits [shift, above) of the values in [begin, end); return the histogram.

    Only values whose bits from `above` up equal the prefix are counted; at the first digit, all values.
    """
    NUMBER_BITS: tl.constexpr = 64 if WIDE else 32
    width = above - shift
    histogram = tl.zeros([1 << BITS], tl.int32)
    for start in range(begin, end, TILE):
        ids = start + tl.arange(0, TILE)
        present = ids < end
        if start + TILE <= end:  # wide loads need no mask
            keys = to_keys(tl.load(row_ptr + ids), INFINITE, LARGEST, WIDE)  # [TILE]
        else:
            keys = load_keys(row_ptr + ids, present, INFINITE, LARGEST, WIDE)
        numbers = flip_sign(keys, WIDE)
        present = present & ((above == NUMBER_BITS) | (((numbers >> shift) >> width) == prefix))
        digits = ((numbers >> shift) & ((1 << width) - 1)).to(tl.int32)
        histogram += tl.histogram(digits, 1 << BITS, mask=present)
    return histogram


@triton.jit
def narrow(prefix, wanted, share, histogram, above, shift, WIDE: tl.constexpr, BITS: tl.constexpr):
    """Choose the digit in bits [shift, above), and return the new (prefix, wanted, share).

    If all values are wanted, choose the largest digit.
    """
    NUMBER_BITS: tl.constexpr = 64 if WIDE else 32
    width = above - shift
    bins = tl.arange(0, 1 << BITS)
    digit = tl.sum((tl.cumsum(histogram, 0) < wanted).to(tl.int32), 0)
    below = tl.sum(tl.where(bins < digit, histogram, 0), 0)
    count = tl.sum(tl.where(bins == digit, histogram, 0), 0)
    every = share == wanted
    digit = tl.where(every, (1 << width) - 1, digit)
    first = tl.where((digit >> (width - 1)) == 1, -1, 0)  # shifts are arithmetic, so the prefix is sign-extended too
    prefix = (tl.where(above == NUMBER_BITS, first, prefix) << width) | digit
    return prefix, tl.where(every, wanted, wanted - below), tl.where(every, share, count)


@triton.jit
def place_of_equal(
    row_ptr,
    begin,
    end,
    key,
    nth,
    INFINITE: tl.constexpr,
    LARGEST: tl.constexpr,
    WIDE: tl.constexpr,
    TILE: tl.constexpr,
):
    """Return the index of the nth value in [begin, end) that has the key; at least n values must have it."""
    start = begin + tl.zeros((), tl.int32)
    ids = start + tl.arange(0, TILE)
    equal = (load_keys(row_ptr + ids, ids < end, INFINITE, LARGEST, WIDE) == key) & (ids < end)
    found = tl.sum(equal.to(tl.int32), 0)
    while found < nth:
        nth -= found
        start += TILE
        ids = start + tl.arange(0, TILE)
        equal = (load_keys(row_ptr + ids, ids < end, INFINITE, LARGEST, WIDE) == key) & (ids < end)
        found = tl.sum(equal.to(tl.int32), 0)
    return tl.sum(tl.where(equal & (tl.cumsum(equal.to(tl.int32), 0) == nth), ids, 0), 0)


@triton.jit
def kth_pair_streamed(
    row_ptr,
    length,
    k,
    INFINITE: tl.constexpr,
    LARGEST: tl.constexpr,
    WIDE: tl.constexpr,
    BITS: tl.constexpr,
    TILE: tl.constexpr,
):
    """Return a (key, index) bound such that exactly k pairs of the row are at or below it; 1 <= k <= length."""
    above = tl.full((), 64 if WIDE else 32, tl.int32)
    prefix = last_key(WIDE) * 0
    wanted = k + tl.zeros((), tl.int32)
    share = wanted + 1
    while (above > 0) & (share != wanted):
        shift = tl.maximum(above - BITS, 0)
        histogram = digit_histogram(row_ptr, 0, length, prefix, above, shift, INFINITE, LARGEST, WIDE, BITS, TILE)
        prefix, wanted, share = narrow(prefix, wanted, share, histogram, above, shift, WIDE, BITS)
        above = shift
    rest = ((prefix * 0 + 1) << above) - 1
    key = flip_sign((prefix << above) | rest, WIDE)
    last = tl.full((), 0x7FFFFFFF, tl.int32)
    if share > wanted:  # more equal keys than wanted: their indices decide
        last = place_of_equal(row_ptr, 0, length, key, wanted, INFINITE, LARGEST, WIDE, TILE)
    return key, last


@triton.jit
def collect(
    row_ptr,
    length,
    key,
    last,
    out_bits_ptr,
    out_ids_ptr,
    INFINITE: tl.constexpr,
    LARGEST: tl.constexpr,
    WIDE: tl.constexpr,
    TILE: tl.constexpr,
):
    """Write the pairs at or below (key, last) in order of index; return the number of NaNs, whose key is LAST."""
    base = tl.zeros((), tl.int32)
    nans = tl.zeros((), tl.int32)
    for start in range(0, length, TILE):
        ids = start + tl.arange(0, TILE)
        present = ids < length
        bits = tl.load(row_ptr + ids, mask=present, other=0)  # [TILE]
        keys = to_keys(bits, INFINITE, LARGEST, WIDE)
        taken = present & at_or_below(keys, ids, key, last)
        at = base + tl.cumsum(taken.to(tl.int32), 0) - 1
        tl.store(out_bits_ptr + at, bits, mask=taken)
        tl.store(out_ids_ptr + at, ids, mask=taken)
        base += tl.sum(taken.to(tl.int32))
        nans += tl.sum((present & (keys == last_key(WIDE))).to(tl.int32))
    return nans


@triton.jit(do_not_specialize=["first_row", "n", "k"])
def radix_kernel(
    # inputs
    values_ptr,
    lengths_ptr,
    # outputs: [row][capacity] pairs, one count per row
    bits_ptr,
    ids_ptr,
    counts_ptr,
    nan_row_ptr,
    # shapes
    first_row,
    stride,
    n,
    k,
    capacity,
    # constants
    HAS_LENGTHS: tl.constexpr,
    CHECK_NAN: tl.constexpr,
    INFINITE: tl.constexpr,
    LARGEST: tl.constexpr,
    WIDE: tl.constexpr,
    BITS: tl.constexpr,
    TILE: tl.constexpr,
):
    """Find the k smallest pairs of a row with one program, and write them in order of index."""
    row = tl.program_id(0).to(tl.int64)
    row_ptr = values_ptr + row * stride
    length = row_length(lengths_ptr, row, n, HAS_LENGTHS)
    wanted = tl.minimum(k, length)
    key = last_key(WIDE)
    last = tl.full((), 0x7FFFFFFF, tl.int32)
    if wanted < length:
        if wanted > 0:
            key, last = kth_pair_streamed(row_ptr, length, wanted, INFINITE, LARGEST, WIDE, BITS, TILE)
    nans = collect(
        row_ptr, length, key, last, bits_ptr + row * capacity, ids_ptr + row * capacity, INFINITE, LARGEST, WIDE, TILE
    )
    tl.store(counts_ptr + row, wanted)
    if CHECK_NAN:
        if nans > 0:
            tl.atomic_min(nan_row_ptr, first_row + row.to(tl.int32))
