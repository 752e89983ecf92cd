"""Hierarchical Partition (tang2015 III-E) in front of a queue of 32 lanes, or the plain search of algorithm 1.

    for list in top, ..., 1, 0:                    list 0 is the row; LISTS is 0 without a partition
        numbers = queue's entries, empty it        groups whose minima were the smallest; of the top list, all of it
        for number in numbers:
            for entry in group number of list:
                offer(entry)                       32 lanes, each with its own number and its own entry
    row's survivors = queue's entries

A group outside the k smallest has k groups before it, each with a member before all of its own; ties agree, for a
group with a smaller number has members with smaller indices.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.select.cuda.kernels.keys import last_key, load_keys
from tonari.select.papers.kernels.buffered import drain, offer
from tonari.select.papers.kernels.lanes import LANES, PAD_INDEX, UPDATES, any_lane, fill_with_pads


@triton.jit
def list_size(length, group, list_number):
    """Entries of a list of rows with `length` values."""
    for _ in range(list_number):
        length = length // group + (length % group > 0).to(tl.int32)
    return length


@triton.jit
def load_list(
    values, lists, entries, mask, list_number, INFINITE: tl.constexpr, LARGEST: tl.constexpr, WIDE: tl.constexpr
):
    """Keys of entries of a list; list 0 is the row itself."""
    if list_number == 0:
        keys = load_keys(values + entries, mask, INFINITE, LARGEST, WIDE)
    else:
        keys = tl.load(lists + entries, mask=mask, other=last_key(WIDE))
    return keys


@triton.jit
def write_survivors(indices, size, values, out_bits, out_indices, lanes):
    """Write each lane's entries one after the other, without pads; how many there are."""
    found = tl.zeros([LANES], tl.int32)
    for position in range(size):
        index = tl.load(indices + tl.cast(position, tl.int64) * LANES, mask=lanes, other=PAD_INDEX)
        real = index != PAD_INDEX
        tl.store(out_bits + found, tl.load(values + index, mask=real, other=0), mask=real)
        tl.store(out_indices + found, index, mask=real)
        found += real.to(tl.int32)
    return found


@triton.jit(
    do_not_specialize=["first_row", "rows", "n", "size", "buffer_size", "group", "stride", "lists_stride", "top_start"]
)
def queue_kernel(
    # inputs: bits of the values, one length per row, [row][entries of all lists above the values]
    values_ptr,
    lengths_ptr,
    lists_ptr,
    # scratch: [program][position][32 lanes]
    keys_ptr,
    indices_ptr,
    numbers_ptr,
    buffer_keys_ptr,
    buffer_indices_ptr,
    # outputs: [row][size], one per row; [program][slot][32 lanes] if COUNT
    out_bits_ptr,
    out_indices_ptr,
    out_counts_ptr,
    nan_row_ptr,
    counts_ptr,
    # shapes
    first_row,
    rows,
    n,
    stride,
    lists_stride,
    top_start,
    group,
    size,
    buffer_size,
    # constants
    QUEUE: tl.constexpr,
    M: tl.constexpr,
    ALIGNED: tl.constexpr,
    BUFFER: tl.constexpr,
    LISTS: tl.constexpr,
    HAS_LENGTHS: tl.constexpr,
    CHECK_NAN: tl.constexpr,
    COUNT: tl.constexpr,
    INFINITE: tl.constexpr,
    LARGEST: tl.constexpr,
    WIDE: tl.constexpr,
):
    """Search 32 rows, one per lane; `first_row` is the number of the first of `rows` in the request."""
    program = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, LANES)
    row = program * LANES + lane
    together = row < rows
    length = tl.where(together, n, 0)
    if HAS_LENGTHS:
        length = tl.load(lengths_ptr + row, mask=together, other=0).to(tl.int32)
    values = values_ptr + row * stride
    lists = lists_ptr + row * lists_stride
    first = program * size * LANES + lane
    keys, indices, numbers = keys_ptr + first, indices_ptr + first, numbers_ptr + first
    queue = (keys, indices, size, together, counts_ptr + program * (size + UPDATES) * LANES + lane)
    first = program * buffer_size * LANES + lane
    buffer = (buffer_keys_ptr + first, buffer_indices_ptr + first, buffer_size)

    start = tl.full((), 0, tl.int32) + top_start
    strange = lane < 0  # lanes that have seen NaN
    for depth in range(LISTS + 1):
        list_number = LISTS - depth
        list_length = list_size(length, group, list_number)
        places = tl.max(list_length, axis=0)
        members = tl.full((), 1, tl.int32)
        if depth > 0:
            start -= list_size(n, group, list_number)
            places = tl.full((), 0, tl.int32) + size
            members = tl.full((), 0, tl.int32) + group
            for place in range(size):
                at = tl.cast(place, tl.int64) * LANES
                tl.store(numbers + at, tl.load(indices + at, mask=together, other=0), mask=together)
        fill_with_pads(keys, indices, size, lane < LANES, WIDE)
        head_key = tl.zeros([LANES], keys_ptr.dtype.element_ty) + last_key(WIDE)
        head_index = tl.zeros([LANES], tl.int32) + PAD_INDEX
        held = tl.zeros([LANES], tl.int32)
        for place in range(places):
            number = tl.zeros([LANES], tl.int32) + place
            if depth > 0:
                number = tl.load(numbers + tl.cast(place, tl.int64) * LANES, mask=together, other=PAD_INDEX)
            left = tl.where(number == PAD_INDEX, 0, list_length - number * members)
            for member in range(members):
                present = member < left
                index = number * members + member
                key = load_list(values, lists + start, index, present, list_number, INFINITE, LARGEST, WIDE)
                if CHECK_NAN:
                    strange = strange | (present & (key == last_key(WIDE)))
                held, head_key, head_index = offer(
                    queue, buffer, held, key, index, present, head_key, head_index, QUEUE, BUFFER, M, ALIGNED, COUNT
                )
        drain(queue, buffer, held, head_key, head_index, QUEUE, BUFFER, M, ALIGNED, COUNT)

    found = write_survivors(indices, size, values, out_bits_ptr + row * size, out_indices_ptr + row * size, together)
    tl.store(out_counts_ptr + row, found, mask=together)
    if CHECK_NAN:
        if any_lane(strange):
            tl.atomic_min(nan_row_ptr + lane * 0, (first_row + row).to(tl.int32), mask=strange)
