"""Radix selection: the k-th smallest key digit by digit, most significant first, then one pass that collects.

The method is radix select (Alabi et al. 2012), with the early stop of AIR Top-k (Zhang et al., SC 2023): once all
values that share the prefix are wanted, the lower digits do not matter.

    pass p:   histogram[d] = values with the current prefix whose next digit is d             one read of the row
              digit = the d at which the running sum reaches the number still wanted
    ties:     equal keys are ordered by index, so the index of the last wanted one is found
    collect:  pairs at or below the k-th                                                      one more read

If there are many rows, one program does all of this for a row (radix_kernel), and collects in order of index. If there
are few, `parts` programs share a row, `chunk` values each, and every pass is a launch (digit_kernel): the programs add
their counts in memory, and every program of the next pass derives the same state from them.

    (prefix, wanted, share)   the digits so far; the number of values that are wanted among those with this prefix; the
                              number of values with this prefix
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.select.cuda.kernels.halving import at_or_below
from tonari.select.cuda.kernels.keys import last_key, load_keys, to_keys
from tonari.select.cuda.kernels.tiles import row_length


@triton.jit
def flip_sign(keys, WIDE: tl.constexpr):
    """Convert keys to numbers whose digits have the order of the keys, and back."""
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
    """Compute the histogram of the digit in bits [shift, above) over the values in [begin, end).

    Only values whose bits from `above` up equal the prefix are counted; if `above` is the number of bits, all values.
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
    """Return (prefix, wanted, share) after the digit in bits [shift, above): the largest digit if all are wanted."""
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
    """Return the index of the nth value in [begin, end) that has the key; there must be at least n."""
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
    """Return a pair that exactly k pairs of the row do not exceed; 1 <= k <= length."""
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
    """Reduce a row to its k smallest pairs with one program."""
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


@triton.jit
def state_before(
    prefixes_ptr,
    shares_ptr,
    histograms_ptr,
    row,
    rows,
    length,
    k,
    digit,
    WIDE: tl.constexpr,
    BITS: tl.constexpr,
):
    """Return (prefix, wanted, share) of a row before digit number `digit`, from the results of the previous launch.

    States are [digit][row], with two counts each; histograms are [digit][row][bin]. If all values are wanted from the
    start, the prefix becomes all ones, which no key exceeds.
    """
    NUMBER_BITS: tl.constexpr = 64 if WIDE else 32
    prefix = last_key(WIDE) * 0
    wanted = tl.minimum(k, length) + tl.zeros((), tl.int32)
    share = tl.where(wanted < length, wanted + 1, wanted)
    if digit > 0:
        at = (digit - 1) * rows + row
        histogram = tl.load(histograms_ptr + at * (1 << BITS) + tl.arange(0, 1 << BITS))  # [2**BITS]
        above = NUMBER_BITS - (digit - 1) * BITS
        prefix, wanted, share = narrow(
            tl.load(prefixes_ptr + at),
            tl.load(shares_ptr + 2 * at),
            tl.load(shares_ptr + 2 * at + 1),
            histogram,
            above,
            tl.maximum(above - BITS, 0),
            WIDE,
            BITS,
        )
    return prefix, wanted, share


@triton.jit(do_not_specialize=["n", "k", "rows", "digit"])
def digit_kernel(
    # inputs
    values_ptr,
    lengths_ptr,
    # states and histograms of all digits, see state_before; the histograms start at 0
    prefixes_ptr,
    shares_ptr,
    histograms_ptr,
    # shapes
    stride,
    n,
    k,
    rows,
    parts,
    chunk,
    digit,
    # constants
    HAS_LENGTHS: tl.constexpr,
    INFINITE: tl.constexpr,
    LARGEST: tl.constexpr,
    WIDE: tl.constexpr,
    BITS: tl.constexpr,
    TILE: tl.constexpr,
):
    """Add `chunk` values of a row to the histogram of one digit."""
    program = tl.program_id(0)
    row = (program // parts).to(tl.int64)
    part = program % parts
    length = row_length(lengths_ptr, row, n, HAS_LENGTHS)
    prefix, wanted, share = state_before(
        prefixes_ptr, shares_ptr, histograms_ptr, row, rows, length, k, digit, WIDE, BITS
    )
    at = digit * rows + row
    if part == 0:
        tl.store(prefixes_ptr + at, prefix)
        tl.store(shares_ptr + 2 * at, wanted)
        tl.store(shares_ptr + 2 * at + 1, share)
    if share != wanted:
        above = (64 if WIDE else 32) - digit * BITS
        begin = part * chunk
        histogram = digit_histogram(
            values_ptr + row * stride, begin, tl.minimum(begin + chunk, length), prefix,
            above, tl.maximum(above - BITS, 0), INFINITE, LARGEST, WIDE, BITS, TILE,
        )  # fmt: skip
        bins = tl.arange(0, 1 << BITS)
        tl.atomic_add(histograms_ptr + at * (1 << BITS) + bins, histogram, mask=histogram > 0, sem="relaxed")


@triton.jit(do_not_specialize=["n", "k", "rows", "digits"])
def equals_kernel(
    # inputs
    values_ptr,
    lengths_ptr,
    # states and histograms of all digits
    prefixes_ptr,
    shares_ptr,
    histograms_ptr,
    # outputs: [row][part]
    equals_ptr,
    # shapes
    stride,
    n,
    k,
    rows,
    parts,
    chunk,
    digits,
    # constants
    HAS_LENGTHS: tl.constexpr,
    INFINITE: tl.constexpr,
    LARGEST: tl.constexpr,
    WIDE: tl.constexpr,
    BITS: tl.constexpr,
    TILE: tl.constexpr,
):
    """Count the values of a chunk that equal the k-th, for rows in which only some of the equal values are wanted."""
    program = tl.program_id(0)
    row = (program // parts).to(tl.int64)
    length = row_length(lengths_ptr, row, n, HAS_LENGTHS)
    prefix, wanted, share = state_before(
        prefixes_ptr, shares_ptr, histograms_ptr, row, rows, length, k, digits, WIDE, BITS
    )
    if share != wanted:
        key = flip_sign(prefix, WIDE)
        begin = (program % parts) * chunk
        end = tl.minimum(begin + chunk, length)
        row_ptr = values_ptr + row * stride
        count = tl.zeros([TILE], tl.int32)
        for start in range(begin, end, TILE):
            ids = start + tl.arange(0, TILE)
            if start + TILE <= end:
                count += (to_keys(tl.load(row_ptr + ids), INFINITE, LARGEST, WIDE) == key).to(tl.int32)
            else:
                keys = load_keys(row_ptr + ids, ids < end, INFINITE, LARGEST, WIDE)
                count += ((keys == key) & (ids < end)).to(tl.int32)
        tl.store(equals_ptr + program, tl.sum(count, 0))


@triton.jit(do_not_specialize=["n", "k", "rows", "digits"])
def settle_kernel(
    # inputs
    values_ptr,
    lengths_ptr,
    prefixes_ptr,
    shares_ptr,
    histograms_ptr,
    equals_ptr,
    # outputs: a pair per row, and a count that starts at 0
    keys_ptr,
    ids_ptr,
    counts_ptr,
    # shapes
    stride,
    n,
    k,
    rows,
    parts,
    chunk,
    digits,
    # constants
    HAS_LENGTHS: tl.constexpr,
    INFINITE: tl.constexpr,
    LARGEST: tl.constexpr,
    WIDE: tl.constexpr,
    BITS: tl.constexpr,
    TILE: tl.constexpr,
    PARTS: tl.constexpr,
):
    """Write a pair that exactly the k smallest of a row do not exceed; PARTS is a power of two, at least `parts`."""
    row = tl.program_id(0).to(tl.int64)
    length = row_length(lengths_ptr, row, n, HAS_LENGTHS)
    prefix, wanted, share = state_before(
        prefixes_ptr, shares_ptr, histograms_ptr, row, rows, length, k, digits, WIDE, BITS
    )
    key = flip_sign(prefix, WIDE)
    last = tl.full((), 0x7FFFFFFF, tl.int32)
    if share != wanted:
        numbers = tl.arange(0, PARTS)
        counts = tl.load(equals_ptr + row * parts + numbers, mask=numbers < parts, other=0)
        upto = tl.cumsum(counts, 0)
        part = tl.sum((upto < wanted).to(tl.int32), 0)
        before = tl.sum(tl.where(numbers < part, counts, 0), 0)
        begin = part * chunk
        last = place_of_equal(
            values_ptr + row * stride, begin, tl.minimum(begin + chunk, length), key, wanted - before,
            INFINITE, LARGEST, WIDE, TILE,
        )  # fmt: skip
    tl.store(keys_ptr + row, key)
    tl.store(ids_ptr + row, last)
    tl.store(counts_ptr + row, 0)
