"""Quick multi-select (komarov2014) on the GPU: one program, a warp or a block, per row.

    pivot       a (key, index) pair of a sample of the range, of such a rank that hardly more pairs than wanted are at
                or below it; if the range fits in a tile, the wanted pair itself
    partition   the range is read once, a tile at a time. Prefix sums over the threads (the paper's ballot and popc)
                give every pair its position: those at or below the pivot are written from the left end of the other
                array, the others from its right end
    left part   if it has more pairs than wanted, it is the next range. Otherwise it stays in place, its end and its
                array are pushed on the stack, and the right part is the next range
    end         the ranges on the stack are exactly the wanted pairs

    round 0     values    -> array 0        round r    array (r - 1) % 2 -> array r % 2        same positions in both

If more than three quarters of a range are left after a round, the next round bisects the interval of keys that are
still possible (or of indices, if all keys are equal). Therefore no data take more than 2 (32 + 32) such rounds, or 2
(64 + 32) with 64-bit keys.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.metrics.kernels.instructions import sqrt
from tonari.select.cuda.kernels.registers.halving import at_or_below, kth_pair
from tonari.select.cuda.kernels.registers.keys import last_key, to_keys
from tonari.select.cuda.kernels.registers.tiles import row_length, tile_offsets, total

# Capacity of a row's stack; a round pushes at most one entry.
DEPTH: tl.constexpr = tl.constexpr(256)


@triton.jit
def load_range(bits_ptr, ids_ptr, at, present, VALUES: tl.constexpr):
    """Load the bits and the indices of pairs at positions `at`; VALUES: from the row, where positions are indices."""
    bits = tl.load(bits_ptr + at, mask=present, other=0)
    ids = at
    if not VALUES:
        ids = tl.load(ids_ptr + at, mask=present, other=0)
    return bits, ids


@triton.jit
def sampled_pivot(
    bits_ptr, ids_ptr, begin, end, wanted,
    VALUES: tl.constexpr, INFINITE: tl.constexpr, LARGEST: tl.constexpr, WIDE: tl.constexpr, A: tl.constexpr,
    T: tl.constexpr, V: tl.constexpr,
):  # fmt: skip
    """Choose a pivot for the range [begin, end), whose `wanted` smallest pairs are needed; 0 < wanted < end - begin."""
    TILE: tl.constexpr = A * T * V
    size = end - begin
    offsets = tile_offsets(A, T, V)
    rank = wanted
    slack = wanted * 0
    if size > TILE:  # sample runs of V adjacent pairs, evenly distributed over the range
        offsets = offsets // V * (size // (A * T)) + offsets % V
        share = wanted.to(tl.float32) / size.to(tl.float32)
        deviation = sqrt(share * (1 - share) * TILE)
        aim = share * TILE + tl.where(share > 0.5, -3 * deviation - 2, 3 * deviation + 2)
        rank = tl.minimum(tl.maximum(aim, 1), TILE - 1).to(tl.int32)
        slack = (deviation * 0.5).to(tl.int32)
    bits, ids = load_range(bits_ptr, ids_ptr, begin + offsets, offsets < size, VALUES)
    return kth_pair(to_keys(bits, INFINITE, LARGEST, WIDE), ids, offsets < size, rank, rank + slack)


@triton.jit
def split_places(low, high):
    """Return the positions of elements among those in the masks `low` and `high`, and both counts (below 2^15)."""
    ones = low.to(tl.int32) + (high.to(tl.int32) << 16)
    runs = tl.sum(ones, 2)
    threads = tl.sum(runs, 1)
    before_thread = tl.cumsum(threads, 0) - threads
    before_run = tl.cumsum(runs, 1) - runs + before_thread[:, None]
    before = tl.cumsum(ones, 2) - ones + before_run[:, :, None]
    counts = tl.sum(threads, 0)
    return before & 0xFFFF, before >> 16, counts & 0xFFFF, counts >> 16


@triton.jit
def scatter_tile(
    bits, ids, present, key, last, left, right, out_bits_ptr, out_ids_ptr,
    INFINITE: tl.constexpr, LARGEST: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Partition a tile: write its pairs to the two ends of the free range [left, right) of the other array.

    Returns the range that remains free, and the number of NaNs in the tile.
    """
    keys = to_keys(bits, INFINITE, LARGEST, WIDE)
    low = present & at_or_below(keys, ids, key, last)
    from_left, from_right, lows, highs = split_places(low, present & ~low)
    at = tl.where(low, left + from_left, right - 1 - from_right)
    tl.store(out_bits_ptr + at, bits, mask=present)
    tl.store(out_ids_ptr + at, ids, mask=present)
    return left + lows, right - highs, total(present & (keys == last_key(WIDE)))


@triton.jit
def middle_pivot(low_key, low_id, high_key, high_id):
    """Return the pivot in the middle between the pairs (low_key, low_id) and (high_key, high_id)."""
    split = low_key < high_key
    key = (low_key & high_key) + ((low_key ^ high_key) >> 1)  # the mean, rounded down, without overflow
    last = (low_id & high_id) + ((low_id ^ high_id) >> 1)
    return key, tl.where(split, 0x7FFFFFFF, last)


@triton.jit(do_not_specialize=["first_row", "n", "k", "capacity"])
def quick_kernel(
    # inputs
    values_ptr, lengths_ptr,
    # scratch: [row][2][n] pairs, [row][DEPTH][2]
    bits_ptr, ids_ptr, stack_ptr,
    # outputs: [row][capacity] and one per row
    out_bits_ptr, out_ids_ptr, counts_ptr, examined_ptr, nan_row_ptr,
    # shapes
    first_row, stride, n, k, capacity,
    # constants
    HAS_LENGTHS: tl.constexpr, COUNT: tl.constexpr, CHECK_NAN: tl.constexpr, INFINITE: tl.constexpr,
    LARGEST: tl.constexpr, WIDE: tl.constexpr, A: tl.constexpr, T: tl.constexpr, V: tl.constexpr,
):  # fmt: skip
    TILE: tl.constexpr = A * T * V
    tl.static_assert(TILE < 1 << 15, "places of a tile are counted in halves of a word")
    row = tl.program_id(0).to(tl.int64)
    plane = tl.zeros((), tl.int64) + n
    row_ptr = values_ptr + row * stride
    bits_ptr += 2 * row * plane
    ids_ptr += 2 * row * plane
    stack_ptr += row * (2 * DEPTH)
    length = row_length(lengths_ptr, row, n, HAS_LENGTHS)
    lanes = tile_offsets(A, T, V)

    begin = tl.zeros((), tl.int32)
    end = begin + length
    wanted = tl.minimum(begin + k, end)
    kept = wanted
    examined = end.to(tl.int64)
    depth = tl.zeros((), tl.int32)
    low_key = -last_key(WIDE) - 1
    low_id = tl.zeros((), tl.int32)
    high_key = last_key(WIDE)
    high_id = tl.full((), 0x7FFFFFFF, tl.int32)

    # Round 0 partitions the values themselves and counts NaN. It needs no pivot if all values are wanted.
    key = high_key
    last = high_id
    if (wanted > 0) & (wanted < end):
        key, last = sampled_pivot(row_ptr, row_ptr, begin, end, wanted, True, INFINITE, LARGEST, WIDE, A, T, V)
    left = begin
    right = end
    nan_count = tl.zeros((), tl.int32)
    whole = length // TILE * TILE
    for start in range(0, whole, TILE):
        bits = tl.load(row_ptr + start + lanes)  # [T, A, V]
        left, right, nans = scatter_tile(
            bits, start + lanes, lanes >= 0, key, last, left, right, bits_ptr, ids_ptr, INFINITE, LARGEST, WIDE
        )
        nan_count += nans
    if whole < length:
        present = whole + lanes < length
        bits = tl.load(row_ptr + whole + lanes, mask=present, other=0)
        left, right, nans = scatter_tile(
            bits, whole + lanes, present, key, last, left, right, bits_ptr, ids_ptr, INFINITE, LARGEST, WIDE
        )
        nan_count += nans
    array = tl.zeros((), tl.int32)  # the array written by the last round
    middle = tl.zeros((), tl.int32)  # whether the last pivot is from middle_pivot

    while wanted > 0:
        tl.debug_barrier()  # the next loads read the stores of other threads
        size = end - begin
        if left - begin <= wanted:  # keep the left part in place
            wanted -= left - begin
            begin = left
            tl.store(stack_ptr + 2 * depth, left)
            tl.store(stack_ptr + 2 * depth + 1, array)
            depth += 1
            low_key = tl.where(last == 0x7FFFFFFF, key + 1, key)
            low_id = tl.where(last == 0x7FFFFFFF, 0, last + 1)
        else:
            end = left
            high_key = key
            high_id = last
        if wanted > 0:
            if (end - begin > size - size // 4) & (middle == 0):
                key, last = middle_pivot(low_key, low_id, high_key, high_id)
                middle = tl.full((), 1, tl.int32)
            else:
                key, last = sampled_pivot(
                    bits_ptr + array * plane, ids_ptr + array * plane, begin, end, wanted,
                    False, INFINITE, LARGEST, WIDE, A, T, V,
                )  # fmt: skip
                middle = tl.zeros((), tl.int32)
            left = begin
            right = end
            for start in range(begin, end, TILE):
                present = start + lanes < end
                bits, ids = load_range(bits_ptr + array * plane, ids_ptr + array * plane, start + lanes, present, False)
                left, right, _ = scatter_tile(
                    bits, ids, present, key, last, left, right,
                    bits_ptr + (1 - array) * plane, ids_ptr + (1 - array) * plane, INFINITE, LARGEST, WIDE,
                )  # fmt: skip
            examined += end - begin
            array = 1 - array

    # The ranges on the stack cover the positions [0, kept), each in one of the two arrays.
    tl.debug_barrier()
    begin = tl.zeros((), tl.int32)
    for entry in range(depth):
        end = tl.load(stack_ptr + 2 * entry)
        array = tl.load(stack_ptr + 2 * entry + 1)
        for start in range(begin, end, TILE):
            present = start + lanes < end
            bits, ids = load_range(bits_ptr + array * plane, ids_ptr + array * plane, start + lanes, present, False)
            tl.store(out_bits_ptr + row * capacity + start + lanes, bits, mask=present)
            tl.store(out_ids_ptr + row * capacity + start + lanes, ids, mask=present)
        begin = end
    tl.store(counts_ptr + row, kept)
    if COUNT:
        tl.atomic_add(examined_ptr, examined)
    if CHECK_NAN:
        if nan_count > 0:
            tl.atomic_min(nan_row_ptr, first_row + row.to(tl.int32))
