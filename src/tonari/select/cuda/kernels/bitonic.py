"""Truncated bitonic sort (Sismanis, Pitsianis and Sun 2012) on the GPU.

    tile of TILE pairs    runs of K are sorted and merged in pairs, dropping the larger halves, until one is left,
                          which is descending
    best K so far         ascending; elementwise minimum with the tile's run, then a bitonic merge
    parts                 a long row is cut into parts; each gives a run of K, and the runs are merged in the same way

The sequence of operations does not depend on the values.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.select.cuda.kernels.registers.keys import last_key, load_keys, store_values
from tonari.select.cuda.kernels.registers.network import keep_smaller, smallest_pairs
from tonari.select.cuda.kernels.registers.tiles import row_length


@triton.jit
def write_best(
    out_values_ptr, out_ids_ptr, row_ptr, keys, ids, places, k,
    MISSING: tl.constexpr, INFINITE: tl.constexpr, LARGEST: tl.constexpr,
):  # fmt: skip
    """Write the first k of K sorted pairs as a row's answer; the largest possible index marks a missing entry."""
    present = ids < 0x7FFFFFFF
    keys = tl.where(present, keys, tl.full((), MISSING, keys.dtype))
    store_values(out_values_ptr + places, row_ptr, keys, ids, places < k, present, INFINITE, LARGEST)
    tl.store(out_ids_ptr + places, tl.where(present, ids, -1), mask=places < k)


@triton.jit(do_not_specialize=["n", "k"])
def bitonic_kernel(
    # inputs
    values_ptr, lengths_ptr,
    # outputs: [row][k] without SPLIT; sorted runs [row][part][K] with SPLIT
    out_values_ptr, out_ids_ptr, run_keys_ptr, run_ids_ptr, nan_row_ptr,
    # shapes
    stride, n, k, parts, chunk,
    # constants
    HAS_LENGTHS: tl.constexpr, CHECK_NAN: tl.constexpr, INFINITE: tl.constexpr, LARGEST: tl.constexpr,
    WIDE: tl.constexpr, MISSING: tl.constexpr, SPLIT: tl.constexpr, TILE: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Write the k smallest values of a row; with SPLIT, only the sorted K smallest pairs of one chunk of the row."""
    program = tl.program_id(0)
    row = (program // parts).to(tl.int64)
    begin = (program % parts) * chunk
    length = row_length(lengths_ptr, row, n, HAS_LENGTHS)
    end = tl.minimum(begin + chunk, length)
    row_ptr = values_ptr + row * stride
    best_keys = tl.zeros([K], tl.int64 if WIDE else tl.int32) + last_key(WIDE)
    best_ids = tl.full([K], 0x7FFFFFFF, tl.int32)
    nans = tl.zeros((), tl.int32)
    for start in range(begin, end, TILE):
        ids = start + tl.arange(0, TILE)
        present = ids < end
        keys = load_keys(row_ptr + ids, present, INFINITE, LARGEST, WIDE)  # [TILE]
        if CHECK_NAN:
            nans += tl.sum((present & (keys == last_key(WIDE))).to(tl.int32))
        keys, ids = smallest_pairs(keys, tl.where(present, ids, 0x7FFFFFFF), TILE, K, DESCENDING=1)
        best_keys, best_ids = keep_smaller(best_keys, best_ids, keys, ids, K)
    places = tl.arange(0, K)
    if SPLIT:
        program = program.to(tl.int64)
        tl.store(run_keys_ptr + program * K + places, best_keys)
        tl.store(run_ids_ptr + program * K + places, best_ids)
    else:
        write_best(
            out_values_ptr + row * k, out_ids_ptr + row * k, row_ptr, best_keys, best_ids, places, k,
            MISSING, INFINITE, LARGEST,
        )  # fmt: skip
    if CHECK_NAN:
        if nans > 0:
            tl.atomic_min(nan_row_ptr, row.to(tl.int32))


@triton.jit(do_not_specialize=["k", "parts"])
def merge_runs_kernel(
    # inputs
    values_ptr, run_keys_ptr, run_ids_ptr,
    # outputs
    out_values_ptr, out_ids_ptr,
    # shapes
    stride, k, parts,
    # constants
    INFINITE: tl.constexpr, LARGEST: tl.constexpr, MISSING: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Merge the sorted runs of all parts of a row, and write the answer."""
    row = tl.program_id(0).to(tl.int64)
    places = tl.arange(0, K)
    run_keys_ptr += row * parts * K
    run_ids_ptr += row * parts * K
    best_keys = tl.load(run_keys_ptr + places)  # [K]
    best_ids = tl.load(run_ids_ptr + places)
    for part in range(1, parts):
        backward = part * K + (K - 1 - places)  # descending, as keep_smaller requires
        keys = tl.load(run_keys_ptr + backward)
        ids = tl.load(run_ids_ptr + backward)
        best_keys, best_ids = keep_smaller(best_keys, best_ids, keys, ids, K)
    write_best(
        out_values_ptr + row * k, out_ids_ptr + row * k, values_ptr + row * stride, best_keys, best_ids, places, k,
        MISSING, INFINITE, LARGEST,
    )  # fmt: skip
