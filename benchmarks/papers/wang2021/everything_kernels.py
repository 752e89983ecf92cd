"""The update without selection, the paper's run r1 (section 6.2): all matched pairs are inserted into the lists.

    tiles    the distances of a row's samples, three tiles [TILE, TILE], targets first: NEW to NEW, NEW to OLD, and OLD
             to NEW
    merge    a program locks the list of a target, and merges its SIZE entries with the target's TILE distances: each
             entry is written at its rank among both. The paper first sorts the distances by a sorting network; ranks
             give the same order

Samples, products, distances and locks are those of tonari's kernels.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.nn_descent.papers.cuda.kernels.cross import match, measure
from tonari.nn_descent.papers.cuda.kernels.insert import lock, unlock
from tonari.nn_descent.papers.cuda.kernels.lists import precedes

_INFINITE = tl.constexpr(float("inf"))


@triton.jit(do_not_specialize=["first"])
def tiles_kernel(
    # inputs
    rows_ptr,
    terms_ptr,
    new_ptr,
    old_ptr,
    # output: [row][3][TILE][TILE]
    tiles_ptr,
    # shapes
    first,
    # constants
    D: tl.constexpr,
    STEP: tl.constexpr,
    TILE: tl.constexpr,
):
    """Write three tiles of distances between the samples of a row: program i writes those of row `first` + i."""
    slots = tl.arange(0, TILE)
    row = (first + tl.program_id(0).to(tl.int64)) * TILE
    new = tl.load(new_ptr + row + slots)
    old = tl.load(old_ptr + row + slots)
    new_new, new_old = match(rows_ptr, new, old, D, STEP, TILE)
    new_terms = tl.load(terms_ptr + new, mask=new >= 0, other=_INFINITE)
    old_terms = tl.load(terms_ptr + old, mask=old >= 0, other=_INFINITE)
    out = tiles_ptr + tl.program_id(0).to(tl.int64) * (3 * TILE * TILE)
    across, down = slots[:, None] * TILE + slots[None, :], slots[None, :] * TILE + slots[:, None]
    tl.store(out + across, measure(new_new, new, new, new_terms, new_terms, 0, False))
    found = measure(new_old, new, old, new_terms, old_terms, 0, False)
    tl.store(out + TILE * TILE + across, found)
    tl.store(out + 2 * TILE * TILE + down, found)


@triton.jit(do_not_specialize=["first"])
def everything_kernel(
    # inputs
    new_ptr,
    old_ptr,
    tiles_ptr,
    # outputs: lists of one segment
    entries_ptr,
    distances_ptr,
    # locks: int32 [n], 1 where a program holds the lock of the list
    locks_ptr,
    # shapes
    first,
    # constants
    TILE: tl.constexpr,
    SIZE: tl.constexpr,
    NEW: tl.constexpr,
    ID: tl.constexpr,
):
    """Merge one target's distances of one kind into its list."""
    program = tl.program_id(0).to(tl.int64)
    slots, columns = tl.arange(0, TILE), tl.arange(0, SIZE)
    row = (first + program // (3 * TILE)) * TILE
    kind = program // TILE % 3
    new_target = tl.load(new_ptr + row + program % TILE)
    old_target = tl.load(old_ptr + row + program % TILE)
    target = tl.where(kind == 2, old_target, new_target)
    if target >= 0:
        id = tl.where(kind == 1, tl.load(old_ptr + row + slots), tl.load(new_ptr + row + slots))
        distance = tl.load(tiles_ptr + program * TILE + slots)
        entries = entries_ptr + target.to(tl.int64) * SIZE
        distances = distances_ptr + target.to(tl.int64) * SIZE
        if tl.min(distance, axis=0) <= tl.load(distances + SIZE - 1, cache_modifier=".cg"):
            lock(locks_ptr + target)
            entry = tl.load(entries + columns, cache_modifier=".cg")
            value = tl.load(distances + columns, cache_modifier=".cg")
            listed = entry & ID
            known = tl.sum((id[:, None] == listed[None, :]).to(tl.int32), axis=1)
            fresh = (distance < _INFINITE) & (known == 0)
            nearer = precedes(value[None, :], listed[None, :], distance[:, None], id[:, None])
            column = columns + tl.sum((fresh[:, None] & (nearer == 0)).to(tl.int32), axis=0)
            before = precedes(distance[None, :], id[None, :], distance[:, None], id[:, None]) & fresh[None, :]
            rank = tl.sum(nearer.to(tl.int32), axis=1) + tl.sum(before.to(tl.int32), axis=1)
            tl.debug_barrier()  # wait until all threads have read the entries that are overwritten next
            tl.store(entries + column, entry, mask=column < SIZE)
            tl.store(distances + column, value, mask=column < SIZE)
            tl.store(entries + rank, id | NEW, mask=fresh & (rank < SIZE))
            tl.store(distances + rank, distance, mask=fresh & (rank < SIZE))
            unlock(locks_ptr + target)
