"""Sort lists of different lengths by (value, id), several short lists per program.

    program   N / LENGTH lists, each padded to LENGTH entries: a row [N] of pairs, sorted in runs of LENGTH
    keys      integers in the order of the values (kernels/registers/keys.py); the bits of a value follow from its key
    network   kernels/registers/network.py: log2(LENGTH)² / 2 steps for all lists at once

A list may begin anywhere in the input; a table gives its place in the output.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.select.cuda.kernels.registers.keys import load_keys, to_bits
from tonari.select.cuda.kernels.registers.network import sort_rows


@triton.jit(do_not_specialize=["lists"])
def order_lists_kernel(
    # inputs: bits of all values, and ids; the first entry and the length of each list; the indices of the lists to
    # order
    bits_ptr, ids_ptr, begins_ptr, counts_ptr, numbers_ptr,
    # input: the position in the outputs of each list's first entry; outputs: bits of all values, and ids
    places_ptr, out_bits_ptr, out_ids_ptr,
    # shapes
    lists,
    # constants
    INFINITE: tl.constexpr, LARGEST: tl.constexpr, WIDE: tl.constexpr, LENGTH: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    entry = tl.arange(0, N)
    slot = entry & (LENGTH - 1)
    at = tl.program_id(0) * (N // LENGTH) + entry // LENGTH
    number = tl.load(numbers_ptr + at, mask=at < lists, other=0)  # [N]
    count = tl.load(counts_ptr + number, mask=at < lists, other=0)
    present = slot < count
    begin = tl.load(begins_ptr + number, mask=present, other=0)
    keys = load_keys(bits_ptr + begin + slot, present, INFINITE, LARGEST, WIDE)
    ids = tl.load(ids_ptr + begin + slot, mask=present, other=0x7FFFFFFF)
    keys, ids = sort_rows(keys, ids, N, LENGTH)
    place = tl.load(places_ptr + number, mask=present, other=0) + slot
    bits = to_bits(keys, INFINITE, LARGEST, 64 if WIDE else 32)
    tl.store(out_bits_ptr + place, bits, mask=present)
    tl.store(out_ids_ptr + place, ids, mask=present)
