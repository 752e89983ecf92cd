"""The last step of a round: write each point's new list and first k neighbours, and count the changes.

An id that was not in the old list becomes NEW. An id of the old list stays NEW only if it was NEW and not among the
first HUBS, because it has not been a hub yet. A program processes ROWS points.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["first", "rows", "k"])
def mark_kernel(
    # inputs
    order_ptr, old_ptr, ids_ptr, distances_ptr,
    # outputs: [point][SIZE]; [point][k] twice; [point] twice
    new_ptr, found_ids_ptr, found_distances_ptr, changed_ptr, sums_ptr,
    # shapes
    first, rows, k,
    # constants
    SIZE: tl.constexpr, HUBS: tl.constexpr, PADDED: tl.constexpr, ROWS: tl.constexpr, NEW: tl.constexpr,
    ID: tl.constexpr,
):  # fmt: skip
    """Write the lists of ROWS points and their first k neighbours; count new neighbours and add up distances."""
    tl.static_assert(SIZE <= PADDED)
    tl.static_assert((NEW & ID) == 0)
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    present = row < rows
    point = tl.load(order_ptr + first + row, mask=present, other=0)
    column = tl.arange(0, PADDED)[None, :]
    inside = (column < SIZE) & present
    ids = tl.load(ids_ptr + row * SIZE + column, mask=inside, other=-1)  # [ROWS, PADDED]
    known = tl.zeros([ROWS, PADDED], tl.int1)
    still = tl.zeros([ROWS, PADDED], tl.int1)
    for old_column in tl.range(SIZE):
        old = tl.load(old_ptr + point * SIZE + old_column, mask=present, other=-1)  # [ROWS, 1]
        same = (ids == (old & ID)) & (old >= 0)
        known = known | same
        still = still | (same & ((old & NEW) != 0) & (old_column >= HUBS))
    entry = tl.where(known & (still == 0), ids, ids | NEW)
    tl.store(new_ptr + point * SIZE + column, tl.where(ids >= 0, entry, -1), mask=inside)
    first_k = (column < k) & inside
    distances = tl.load(distances_ptr + row * SIZE + column, mask=first_k, other=0.0)
    tl.store(found_ids_ptr + point * k + column, ids, mask=first_k)
    tl.store(found_distances_ptr + point * k + column, distances, mask=first_k)
    counted = first_k & (ids >= 0)
    changed = tl.sum((counted & (known == 0)).to(tl.int32), axis=1, keep_dims=True)
    tl.store(changed_ptr + point, changed, mask=present)
    total = tl.sum(tl.where(counted, distances, 0.0).to(tl.float64), axis=1, keep_dims=True)
    tl.store(sums_ptr + point, total, mask=present)
