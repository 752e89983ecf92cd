"""Search the rows of 32 lanes with queues, by Hierarchical Partition (tang2015 III-E) or without it (algorithm 1).

    for list in top, ..., 1, 0:                    list 0 is the row; LISTS is 0 without a partition
        numbers = entries of the queue; empty it   the groups with the smallest minima; for the top list, all groups
        for number in numbers:
            for entry in group number of list:
                offer(entry)                       32 lanes, each with its own number and its own entry
    survivors of the row = entries of the queue

No neighbour is lost: a group that is not among the k smallest has k groups before it, and each of these has a member
that precedes all members of the group. This also holds for ties, because a group with a smaller number has members with
smaller indices.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.select.cuda.kernels.registers.keys import last_key, load_keys
from tonari.select.papers.kernels.buffered import drain, offer
from tonari.select.papers.kernels.lanes import LANES, PAD_INDEX, UPDATES, any_lane, fill_with_pads


@triton.jit
def list_size(length, group, list_number):
    """Return the number of entries in list `list_number` of a row of `length` values."""
    for _ in range(list_number):
        length = length // group + (length % group > 0).to(tl.int32)
    return length


@triton.jit
def load_list(
    value_ptrs, list_ptrs, entries, mask, list_number, INFINITE: tl.constexpr, LARGEST: tl.constexpr, WIDE: tl.constexpr
):
    """Load the keys of entries of a list; list 0 is the row of values itself."""
    if list_number == 0:
        keys = load_keys(value_ptrs + entries, mask, INFINITE, LARGEST, WIDE)
    else:
        keys = tl.load(list_ptrs + entries, mask=mask, other=last_key(WIDE))
    return keys


@triton.jit
def write_survivors(index_ptrs, size, value_ptrs, out_bit_ptrs, out_index_ptrs, lanes):
    """Write the entries of each lane's queue one after another, without pads, as survivors; return their number."""
    found = tl.zeros([LANES], tl.int32)
    for position in range(size):
        index = tl.load(index_ptrs + tl.cast(position, tl.int64) * LANES, mask=lanes, other=PAD_INDEX)
        present = index != PAD_INDEX
        tl.store(out_bit_ptrs + found, tl.load(value_ptrs + index, mask=present, other=0), mask=present)
        tl.store(out_index_ptrs + found, index, mask=present)
        found += present.to(tl.int32)
    return found


@triton.jit(
    do_not_specialize=["first_row", "rows", "n", "size", "buffer_size", "group", "stride", "lists_stride", "top_start"]
)
def queue_kernel(
    # inputs: bits of the values; the length of each row; for each row, the entries of its lists of minima
    values_ptr, lengths_ptr, lists_ptr,
    # scratch: [program][position][32 lanes]
    keys_ptr, indices_ptr, numbers_ptr, buffer_keys_ptr, buffer_indices_ptr,
    # outputs: [row][size] survivors, one count per row; COUNT: counters [program][slot][32 lanes]
    out_bits_ptr, out_indices_ptr, out_counts_ptr, nan_row_ptr, counts_ptr,
    # shapes
    first_row, rows, n, stride, lists_stride, top_start, group, size, buffer_size,
    # constants
    QUEUE: tl.constexpr, M: tl.constexpr, ALIGNED: tl.constexpr, BUFFER: tl.constexpr, LISTS: tl.constexpr,
    HAS_LENGTHS: tl.constexpr, CHECK_NAN: tl.constexpr, COUNT: tl.constexpr, INFINITE: tl.constexpr,
    LARGEST: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Search 32 rows, one per lane; row 0 of the launch is row `first_row` of the request."""
    program = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, LANES)
    row = program * LANES + lane
    present = row < rows
    length = tl.where(present, n, 0)
    if HAS_LENGTHS:
        length = tl.load(lengths_ptr + row, mask=present, other=0).to(tl.int32)
    value_ptrs = values_ptr + row * stride
    list_ptrs = lists_ptr + row * lists_stride
    first = program * size * LANES + lane
    key_ptrs, index_ptrs, number_ptrs = keys_ptr + first, indices_ptr + first, numbers_ptr + first
    queue = (key_ptrs, index_ptrs, size, present, counts_ptr + program * (size + UPDATES) * LANES + lane)
    first = program * buffer_size * LANES + lane
    buffer = (buffer_keys_ptr + first, buffer_indices_ptr + first, buffer_size)

    start = tl.full((), 0, tl.int32) + top_start
    nan_lanes = lane < 0  # lanes whose row has NaN
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
                tl.store(number_ptrs + at, tl.load(index_ptrs + at, mask=present, other=0), mask=present)
        fill_with_pads(key_ptrs, index_ptrs, size, lane < LANES, WIDE)
        head_key = tl.zeros([LANES], keys_ptr.dtype.element_ty) + last_key(WIDE)
        head_index = tl.zeros([LANES], tl.int32) + PAD_INDEX
        held = tl.zeros([LANES], tl.int32)
        for place in range(places):
            number = tl.zeros([LANES], tl.int32) + place
            if depth > 0:
                number = tl.load(number_ptrs + tl.cast(place, tl.int64) * LANES, mask=present, other=PAD_INDEX)
            left = tl.where(number == PAD_INDEX, 0, list_length - number * members)
            for member in range(members):
                inside = member < left
                index = number * members + member
                key = load_list(value_ptrs, list_ptrs + start, index, inside, list_number, INFINITE, LARGEST, WIDE)
                if CHECK_NAN:
                    nan_lanes = nan_lanes | (inside & (key == last_key(WIDE)))
                held, head_key, head_index = offer(
                    queue, buffer, held, key, index, inside, head_key, head_index, QUEUE, BUFFER, M, ALIGNED, COUNT
                )
        drain(queue, buffer, held, head_key, head_index, QUEUE, BUFFER, M, ALIGNED, COUNT)

    found = write_survivors(
        index_ptrs, size, value_ptrs, out_bits_ptr + row * size, out_indices_ptr + row * size, present
    )
    tl.store(out_counts_ptr + row, found, mask=present)
    if CHECK_NAN:
        if any_lane(nan_lanes):
            tl.atomic_min(nan_row_ptr + lane * 0, (first_row + row).to(tl.int32), mask=nan_lanes)
