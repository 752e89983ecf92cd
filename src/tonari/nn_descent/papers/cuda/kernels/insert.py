"""Insertion behind spinlocks (wang2021, section 4.3, multiple spinlocks): one lock for each segment of a list.

A program is one warp. It processes BATCH proposals (kernels/cross.py) one after the other. A segment has [SEGMENT]
entries and distances, one or two per lane (kernels/lists.py):

    look      without the lock: drop a proposal that is listed already, or is farther than the last entry
    lock      compare-and-swap of 0 with 1 until it succeeds, with acquire
    insert    the rank is the number of entries that precede the proposal; later entries move by one column
    unlock    exchange with 0, with release

A warp holds at most one lock, and none while it waits, so deadlock is impossible. One lane acquires and releases the
lock at device scope; barriers make the other lanes read after the acquire and write before the release. Lists are read
past the L1 cache, which does not see writes of other processors.

The step "look" may read old or half-written entries. But the last distance of a segment never grows, and an entry
leaves it only if nearer points replace it. So a proposal that belongs in the segment is never dropped.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.nn_descent.papers.cuda.kernels.lists import precedes


@triton.jit
def lock(lock_ptr):
    """Wait until the lock is free, and take it; later reads then see the latest data that it guards."""
    while tl.atomic_cas(lock_ptr, 0, 1, sem="acquire", scope="gpu") != 0:
        pass
    tl.debug_barrier()


@triton.jit
def unlock(lock_ptr):
    """Release the lock after all writes to the guarded data."""
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0, sem="release", scope="gpu")


@triton.jit
def insert_kernel(
    # inputs: [program][BATCH]
    keys_ptr, ids_ptr,
    # outputs
    entries_ptr, distances_ptr,
    # locks, int32 [n][SIZE // SEGMENT]: 1 while a program holds the segment
    locks_ptr,
    # constants
    BATCH: tl.constexpr, SIZE: tl.constexpr, SEGMENT: tl.constexpr, NEW: tl.constexpr, ID: tl.constexpr,
):  # fmt: skip
    """Insert BATCH proposals, as NEW entries."""
    SEGMENTS: tl.constexpr = SIZE // SEGMENT
    columns = tl.arange(0, SEGMENT)
    first = tl.program_id(0).to(tl.int64) * BATCH
    for at in tl.range(BATCH):
        key = tl.load(keys_ptr + first + at)
        if key >= 0:
            id = tl.load(ids_ptr + first + at)
            distance = key.to(tl.int32).to(tl.float32, bitcast=True)
            segment = (key >> 32) * SEGMENTS + id % SEGMENTS
            entries = entries_ptr + segment * SEGMENT + columns
            distances = distances_ptr + segment * SEGMENT + columns
            listed = tl.load(entries, cache_modifier=".cg") & ID
            last = tl.max(tl.load(distances, cache_modifier=".cg"), axis=0)
            if (tl.sum((listed == id).to(tl.int32), axis=0) == 0) & (distance <= last):
                lock(locks_ptr + segment)
                listed = tl.load(entries, cache_modifier=".cg") & ID
                value = tl.load(distances, cache_modifier=".cg")
                entry_before = tl.load(entries - 1, mask=columns > 0, other=-1, cache_modifier=".cg")
                value_before = tl.load(distances - 1, mask=columns > 0, other=0.0, cache_modifier=".cg")
                rank = tl.sum(precedes(value, listed, distance, id).to(tl.int32), axis=0)
                rank = tl.where(tl.sum((listed == id).to(tl.int32), axis=0) == 0, rank, SEGMENT)
                tl.debug_barrier()  # wait until all lanes have read, because a lane overwrites its neighbour's entry
                tl.store(entries, tl.where(columns > rank, entry_before, id | NEW), mask=columns >= rank)
                tl.store(distances, tl.where(columns > rank, value_before, distance), mask=columns >= rank)
                unlock(locks_ptr + segment)
