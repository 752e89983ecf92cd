"""Buffered Search (tang2015 III-D) for 32 lanes: entries below the head of a lane's queue wait in the lane's buffer.

    none      an entry is inserted at once, while lanes without an entry below their head wait
    own       a lane whose buffer is full empties it, while the other lanes wait
    full      when any buffer is full, all lanes empty theirs: entry 0 of all lanes, then entry 1, ...
    sorted    as "full", but buffers are sorted first: the smallest entries are inserted first, and rule out others

Every entry is compared with the head again before it is inserted, because the head may have become smaller. With "own",
lanes whose buffers become full at the same column empty them in the same steps, but their merge queues do not merge
together.

    queue    (key_ptrs, index_ptrs, size, present: the lanes that have a row, count_ptrs)
    buffer   (key_ptrs, index_ptrs, size)
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.select.papers.kernels.heap import insert_into_heap
from tonari.select.papers.kernels.insertion import insert_sorted
from tonari.select.papers.kernels.lanes import (
    EXAMINED,
    FLUSHES,
    LANES,
    any_lane,
    before,
    count,
    descend,
    load_entry,
    store_entry,
)
from tonari.select.papers.kernels.merge_queue import insert_and_merge

INSERTION = tl.constexpr(0)
HEAP = tl.constexpr(1)
MERGE_QUEUE = tl.constexpr(2)

NONE = tl.constexpr(0)
OWN = tl.constexpr(1)
FULL = tl.constexpr(2)
SORTED = tl.constexpr(3)


@triton.jit
def insert_smaller(
    queue, key, index, lanes, head_key, head_index,
    QUEUE: tl.constexpr, M: tl.constexpr, ALIGNED: tl.constexpr, COUNT: tl.constexpr,
):  # fmt: skip
    """Insert an entry into the queue of each lane in `lanes`, if it is below the queue's head; return the new heads."""
    key_ptrs, index_ptrs, size, present, count_ptrs = queue
    smaller = lanes & before(key, index, head_key, head_index)
    if any_lane(smaller):
        if QUEUE == INSERTION:
            insert_sorted(key_ptrs, index_ptrs, size, key, index, smaller, count_ptrs, COUNT)
        elif QUEUE == HEAP:
            insert_into_heap(key_ptrs, index_ptrs, size, key, index, smaller, count_ptrs, COUNT)
        else:
            tl.static_assert(QUEUE == MERGE_QUEUE)
            insert_and_merge(key_ptrs, index_ptrs, size, key, index, smaller, present, count_ptrs, M, ALIGNED, COUNT)
        head_key, head_index = load_entry(key_ptrs, index_ptrs, 0, present)
    return head_key, head_index


@triton.jit
def sort_buffers(key_ptrs, index_ptrs, held, lanes):
    """Sort the held[lane] entries in the buffer of each lane, smallest first, by odd-even transposition."""
    rounds = tl.max(held, axis=0)
    for step in range(rounds):
        for position in range(step % 2, rounds - 1, 2):
            descend(key_ptrs, index_ptrs, position + 1, position, lanes & (position + 1 < held), key_ptrs, False)


@triton.jit
def empty_buffers(
    queue, buffer, held, lanes, head_key, head_index,
    QUEUE: tl.constexpr, BUFFER: tl.constexpr, M: tl.constexpr, ALIGNED: tl.constexpr, COUNT: tl.constexpr,
):  # fmt: skip
    """Insert the entries in the buffers of `lanes` into their queues, in order; return the new heads of the queues."""
    key_ptrs, index_ptrs, _ = buffer
    count_ptrs = queue[4]
    ALONE: tl.constexpr = BUFFER == OWN
    if COUNT:
        count(count_ptrs, FLUSHES, lanes if ALONE else tl.arange(0, LANES) == 0)
    if BUFFER == SORTED:
        sort_buffers(key_ptrs, index_ptrs, held, lanes)
    for j in range(tl.max(tl.where(lanes, held, 0), axis=0)):
        taken = lanes & (j < held)
        key, index = load_entry(key_ptrs, index_ptrs, j, taken)
        head_key, head_index = insert_smaller(
            queue, key, index, taken, head_key, head_index, QUEUE, M, ALIGNED and not ALONE, COUNT
        )
    return head_key, head_index


@triton.jit
def offer(
    queue, buffer, held, key, index, present, head_key, head_index,
    QUEUE: tl.constexpr, BUFFER: tl.constexpr, M: tl.constexpr, ALIGNED: tl.constexpr, COUNT: tl.constexpr,
):  # fmt: skip
    """Offer an entry to each lane in `present`; return each lane's new count of buffered entries and its new head."""
    if COUNT:
        count(queue[4], EXAMINED, present)
    if BUFFER == NONE:
        head_key, head_index = insert_smaller(
            queue, key, index, present, head_key, head_index, QUEUE, M, ALIGNED, COUNT
        )
    else:
        key_ptrs, index_ptrs, size = buffer
        candidate = present & before(key, index, head_key, head_index)
        store_entry(key_ptrs, index_ptrs, held, key, index, candidate)
        held += candidate.to(tl.int32)
        full = held == size
        if any_lane(full):
            emptied = full if BUFFER == OWN else queue[3]
            head_key, head_index = empty_buffers(
                queue, buffer, held, emptied, head_key, head_index, QUEUE, BUFFER, M, ALIGNED, COUNT
            )
            held = tl.where(emptied, 0, held)
    return held, head_key, head_index


@triton.jit
def drain(
    queue, buffer, held, head_key, head_index,
    QUEUE: tl.constexpr, BUFFER: tl.constexpr, M: tl.constexpr, ALIGNED: tl.constexpr, COUNT: tl.constexpr,
):  # fmt: skip
    """Insert the entries that are left in buffers at the end of a list."""
    if BUFFER != NONE:
        if any_lane(held > 0):
            emptied = held > 0 if BUFFER == OWN else queue[3]
            empty_buffers(queue, buffer, held, emptied, head_key, head_index, QUEUE, BUFFER, M, ALIGNED, COUNT)
