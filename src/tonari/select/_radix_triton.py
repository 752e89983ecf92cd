"""Radix selection: the k-th smallest key digit by digit, most significant first, then one pass that collects.

Alabi et al. 2012 (radix select), with the early stop of AIR Top-k (Zhang et al., SC 2023): once all that share the
prefix are wanted, the lower digits do not matter.

    pass p:   histogram[d] = values with the prefix found so far whose next digit is d        one read of the row
              digit = the d at which the running sum reaches what is still wanted
    equal keys are told apart by the digits of their index, in the same way
    collect:  pairs at or below the k-th, in order of index                                   one more read

One program per row; tiles of TILE keys; histograms of 2 ** BITS bins and as many again for values that do not take
part, so that no mask is needed.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.select._halving_triton import at_or_below
from tonari.select._keys_triton import last_key, load_keys, to_keys
from tonari.select._tiles_triton import row_length


@triton.jit
def digit_histogram(
    row_ptr,
    length,
    prefix,
    key,
    above,
    shift,
    BY_INDEX: tl.constexpr,
    INFINITE: tl.constexpr,
    LARGEST: tl.constexpr,
    WIDE: tl.constexpr,
    BITS: tl.constexpr,
    TILE: tl.constexpr,
):
    """How many have which digit in bits [shift, above), of those whose bits from `above` on are the prefix.

    BY_INDEX: digits of the index, where keys equal `key`. An `above` of all bits stands for no prefix.
    """
    BINS: tl.constexpr = 2 * (1 << BITS)
    NUMBER_BITS: tl.constexpr = 64 if WIDE and not BY_INDEX else 32
    width = above - shift
    histogram = tl.zeros([BINS], tl.int32)
    for start in range(0, length, TILE):
        ids = start + tl.arange(0, TILE)
        present = ids < length
        keys = load_keys(row_ptr + ids, present, INFINITE, LARGEST, WIDE)
        if BY_INDEX:
            present = present & (keys == key)
            numbers = ids
        else:
            numbers = keys ^ (-last_key(WIDE) - 1)  # the sign flipped: unsigned order
        present = present & ((above == NUMBER_BITS) | (((numbers >> shift) >> width) == prefix))
        digits = ((numbers >> shift) & ((1 << width) - 1)).to(tl.int32)
        histogram += tl.histogram(tl.where(present, digits, BINS - 1), BINS)
    return histogram


@triton.jit
def choose_digit(histogram, wanted, BITS: tl.constexpr):
    """The digit that the wanted-th smallest has, how many lie below it, and how many share it."""
    bins = tl.arange(0, 2 * (1 << BITS))
    real = bins < (1 << BITS)
    upto = tl.cumsum(tl.where(real, histogram, 0), 0)
    digit = tl.sum((real & (upto < wanted)).to(tl.int32))
    below = tl.sum(tl.where(bins < digit, histogram, 0))
    return digit, below, tl.sum(tl.where(bins == digit, histogram, 0))


@triton.jit
def digits_of_kth(
    row_ptr,
    length,
    wanted,
    key,
    BY_INDEX: tl.constexpr,
    INFINITE: tl.constexpr,
    LARGEST: tl.constexpr,
    WIDE: tl.constexpr,
    BITS: tl.constexpr,
    TILE: tl.constexpr,
):
    """The greatest number with the prefix at which exactly the wanted ones, or only equal ones, remain.

    Also how many of those that share the prefix are wanted, and how many there are.
    """
    NUMBER_BITS: tl.constexpr = 64 if WIDE and not BY_INDEX else 32
    above = tl.full((), NUMBER_BITS, tl.int32)
    prefix = above * 0
    if not BY_INDEX:
        prefix = key * 0
    share = wanted + 1
    while (above > 0) & (share != wanted):
        shift = tl.maximum(above - BITS, 0)
        histogram = digit_histogram(
            row_ptr, length, prefix, key, above, shift, BY_INDEX, INFINITE, LARGEST, WIDE, BITS, TILE
        )
        digit, below, share = choose_digit(histogram, wanted, BITS)
        width = above - shift
        first = tl.where((digit >> (width - 1)) == 1, -1, 0)  # shifts are arithmetic: so is the prefix
        prefix = (tl.where(above == NUMBER_BITS, first, prefix) << width) | digit
        wanted -= below
        above = shift
    rest = ((prefix * 0 + 1) << above) - 1
    return (prefix << above) | rest, wanted, share


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
    """A pair that exactly k of the row's do not exceed; 1 <= k <= length."""
    number, wanted, share = digits_of_kth(
        row_ptr, length, k, last_key(WIDE), False, INFINITE, LARGEST, WIDE, BITS, TILE
    )
    key = number ^ (-last_key(WIDE) - 1)
    last = tl.full((), 0x7FFFFFFF, tl.int32)
    if share > wanted:  # equal keys remain: their indices decide
        last, _, _ = digits_of_kth(row_ptr, length, wanted, key, True, INFINITE, LARGEST, WIDE, BITS, TILE)
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
    """Write the pairs at or below (key, last) in order of index; how many keys were LAST, as those of NaN are."""
    base = tl.zeros((), tl.int32)
    strange = tl.zeros((), tl.int32)
    for start in range(0, length, TILE):
        ids = start + tl.arange(0, TILE)
        present = ids < length
        bits = tl.load(row_ptr + ids, mask=present, other=0)
        keys = to_keys(bits, INFINITE, LARGEST, WIDE)
        taken = present & at_or_below(keys, ids, key, last)
        at = base + tl.cumsum(taken.to(tl.int32), 0) - 1
        tl.store(out_bits_ptr + at, bits, mask=taken)
        tl.store(out_ids_ptr + at, ids, mask=taken)
        base += tl.sum(taken.to(tl.int32))
        strange += tl.sum((present & (keys == last_key(WIDE))).to(tl.int32))
    return strange


@triton.jit(do_not_specialize=["first_row", "n", "k"])
def radix_kernel(
    # inputs
    values_ptr,
    lengths_ptr,
    # outputs, [row][capacity] and one per row
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
    row = tl.program_id(0).to(tl.int64)
    row_ptr = values_ptr + row * stride
    length = row_length(lengths_ptr, row, n, HAS_LENGTHS)
    wanted = tl.minimum(k, length)
    key = last_key(WIDE)
    last = tl.full((), 0x7FFFFFFF, tl.int32)
    if wanted < length:
        if wanted > 0:
            key, last = kth_pair_streamed(row_ptr, length, wanted, INFINITE, LARGEST, WIDE, BITS, TILE)
    strange = collect(
        row_ptr, length, key, last, bits_ptr + row * capacity, ids_ptr + row * capacity, INFINITE, LARGEST, WIDE, TILE
    )
    tl.store(counts_ptr + row, wanted)
    if CHECK_NAN:
        if strange > 0:
            tl.atomic_min(nan_row_ptr, first_row + row.to(tl.int32))
