"""The update of lists without locks: all proposals of neighbours are written and sorted before any list changes.

    proposal    64 bits: the target, and below it the bits of the distance, as tonari's kernels/cross.py writes them
    list        one segment of SIZE entries, as in tonari's kernels/lists.py

A program merges proposals into the lists of ROWS rows, CHUNK proposals for each row in a step. A step compares each
proposal of a chunk with each entry of the row's list, [ROWS, CHUNK, SIZE]: this counts the entries that precede each
proposal, and the proposals that precede each entry. From these counts follow their ranks in the merged list. Proposals
that repeat an entry or an earlier proposal are left out.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.nn_descent.papers.cuda.kernels.lists import precedes

_INFINITE = tl.constexpr(float("inf"))


@triton.jit(do_not_specialize=["n"])
def merge_kernel(
    # inputs: proposals, ascending by target, then by distance; int64 [n + 1], the first proposal of each target
    keys_ptr,
    ids_ptr,
    firsts_ptr,
    # outputs: lists of one segment
    entries_ptr,
    distances_ptr,
    # shapes
    n,
    # constants
    SIZE: tl.constexpr,
    CHUNK: tl.constexpr,
    ROWS: tl.constexpr,
    NEW: tl.constexpr,
    ID: tl.constexpr,
):
    """Merge all proposals for ROWS rows into the lists of these rows."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    columns = tl.arange(0, SIZE)[None, :]
    slots = tl.arange(0, CHUNK)[None, :]
    entries_ptr += row * SIZE
    distances_ptr += row * SIZE
    inside = row < n
    at = tl.load(firsts_ptr + row, mask=inside, other=0)
    end = tl.load(firsts_ptr + row + 1, mask=inside, other=0)
    while tl.max(tl.max(end - at, axis=1), axis=0) > 0:
        there = at + slots < end
        distance = tl.load(keys_ptr + at + slots, mask=there, other=0).to(tl.int32).to(tl.float32, bitcast=True)
        id = tl.load(ids_ptr + at + slots, mask=there, other=-1)
        entry = tl.load(entries_ptr + columns, mask=inside, other=-1)
        value = tl.load(distances_ptr + columns, mask=inside, other=_INFINITE)
        listed = entry & ID
        known = tl.sum((id[:, :, None] == listed[:, None, :]).to(tl.int32), axis=2)
        twins = (id[:, :, None] == id[:, None, :]) & (slots[:, None, :] < slots[:, :, None])
        fresh = there & (known + tl.sum(twins.to(tl.int32), axis=2) == 0)
        nearer = precedes(value[:, None, :], listed[:, None, :], distance[:, :, None], id[:, :, None])
        column = columns + tl.sum((fresh[:, :, None] & (nearer == 0)).to(tl.int32), axis=1)
        before = precedes(distance[:, None, :], id[:, None, :], distance[:, :, None], id[:, :, None])
        rank = tl.sum(nearer.to(tl.int32), axis=2) + tl.sum((before & fresh[:, None, :]).to(tl.int32), axis=2)
        tl.debug_barrier()
        tl.store(entries_ptr + column, entry, mask=inside & (column < SIZE))
        tl.store(distances_ptr + column, value, mask=inside & (column < SIZE))
        tl.store(entries_ptr + rank, id | NEW, mask=fresh & (rank < SIZE))
        tl.store(distances_ptr + rank, distance, mask=fresh & (rank < SIZE))
        tl.debug_barrier()
        # Proposals ascend by distance: if one is farther than the list's last entry, so are all later ones.
        at += CHUNK
        following = tl.load(keys_ptr + at, mask=at < end, other=0).to(tl.int32).to(tl.float32, bitcast=True)
        last = tl.load(distances_ptr + SIZE - 1, mask=inside, other=_INFINITE)
        at = tl.where(following > last, end, at)
