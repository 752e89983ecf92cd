"""Radix selection from few long rows: `parts` programs share a row, `chunk` values each, and every pass is a launch.

The programs of a pass add their histograms in memory. Every program of the next pass then derives the state of the
search from the sums. The method, and the state (prefix, wanted, share), are the same as in radix.py.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.select.cuda.kernels.radix import digit_histogram, flip_sign, narrow, place_of_equal
from tonari.select.cuda.kernels.registers.keys import last_key, load_keys, to_keys
from tonari.select.cuda.kernels.registers.tiles import row_length


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

    States are stored as [digit][row], with two counts each, and histograms as [digit][row][bin]. If all values of a row
    are wanted from the start, the prefix becomes all ones, and no key exceeds it.
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
    # states and histograms of all digits (see state_before); the histograms are 0 at first
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
    """Add `chunk` values of a row to the row's histogram of one digit."""
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
    """Count the values of a chunk that equal the row's k-th smallest, if only some of these ties are in the answer."""
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
    # outputs: a bound per row, and its count of survivors, set to 0
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
    """Write a row's (key, index) bound, at or below which are exactly k pairs; PARTS is a power of two >= `parts`."""
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
