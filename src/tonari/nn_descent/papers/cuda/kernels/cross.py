"""Cross-matching and the selective update (wang2021, sections 4.2 and 4.3; algorithm 1, lines 10 to 31; algorithm 2).

    match      two products of gathered float16 rows, [TILE, TILE] each, in steps of STEP columns on matrix units:
               NEW x NEW and NEW x OLD. TILE is 2 SAMPLES
    distance   term of the target as a query + term of the candidate as a member - 2 <u, v>, at least 0 (cuda/form.py)
    propose    to a NEW sample its nearest other NEW sample and its nearest OLD one, to an OLD sample its nearest NEW
               one. A proposal is the proposed id and a key of 64 bits: the target above the bits of the distance, or
               -1 for no proposal. Nonnegative float32 numbers have the order of their bits as integers

A program processes one row. The two products stay in registers, 2 TILE² float32, and no distance is written.
"""

from __future__ import annotations

import triton
import triton.language as tl

_INFINITE = tl.constexpr(float("inf"))


@triton.jit
def match(rows_ptr, new, old, D: tl.constexpr, STEP: tl.constexpr, TILE: tl.constexpr):
    """Return the matrix products NEW x NEW and NEW x OLD of the samples' rows; -1 marks a missing sample."""
    tl.static_assert(D % STEP == 0, "steps of columns are loaded without a mask")
    steps = tl.arange(0, STEP)[None, :]
    new_rows = rows_ptr + new.to(tl.int64)[:, None] * D + steps
    old_rows = rows_ptr + old.to(tl.int64)[:, None] * D + steps
    new_new = tl.zeros([TILE, TILE], tl.float32)
    new_old = tl.zeros([TILE, TILE], tl.float32)
    # without NEW samples, the loop is empty
    width = tl.where(tl.max(new, axis=0) >= 0, D, 0)
    for column in tl.range(0, width, STEP):
        x = tl.load(new_rows + column, mask=(new >= 0)[:, None], other=0.0)
        y = tl.load(old_rows + column, mask=(old >= 0)[:, None], other=0.0)
        new_new = tl.dot(x, tl.trans(x), new_new)
        new_old = tl.dot(x, tl.trans(y), new_old)
    return new_new, new_old


@triton.jit
def measure(products, ids, other_ids, terms, other_terms, boundary, ACROSS: tl.constexpr):
    """Return distances: infinity from a point to itself and, if ACROSS, between points on one side of `boundary`."""
    distance = tl.maximum(terms[:, None] + other_terms[None, :] - 2.0 * products, 0.0)
    # Samples of one kind are distinct, but a point can be both a NEW and an OLD sample.
    left_out = ids[:, None] == other_ids[None, :]
    if ACROSS:
        left_out = left_out | ((ids < boundary)[:, None] == (other_ids < boundary)[None, :])
    return tl.where(left_out, _INFINITE, distance)


@triton.jit
def propose(
    keys_ptr, ids_ptr, distances_ptr, target, distance, id, SIZE: tl.constexpr, SEGMENT: tl.constexpr,
):  # fmt: skip
    """Write proposals as keys and ids; a key is -1 if the segment for the proposal is full of nearer entries."""
    found = (target >= 0) & (distance < _INFINITE)
    last = target.to(tl.int64) * SIZE + id % (SIZE // SEGMENT) * SEGMENT + (SEGMENT - 1)
    found = found & (distance <= tl.load(distances_ptr + last, mask=found, other=0.0))
    key = (target.to(tl.int64) << 32) | distance.to(tl.int32, bitcast=True).to(tl.int64)
    tl.store(keys_ptr, tl.where(found, key, -1))
    tl.store(ids_ptr, id)


@triton.jit(do_not_specialize=["first", "boundary"])
def cross_kernel(
    # inputs
    rows_ptr, query_terms_ptr, member_terms_ptr, new_ptr, old_ptr, distances_ptr,
    # outputs: [row][3][TILE]
    keys_ptr, ids_ptr,
    # shapes
    first, boundary,
    # constants
    D: tl.constexpr, STEP: tl.constexpr, TILE: tl.constexpr, SIZE: tl.constexpr, SEGMENT: tl.constexpr,
    ACROSS: tl.constexpr, SYMMETRIC: tl.constexpr,
):  # fmt: skip
    """Write the proposals of one row. `first` is the row of program 0.

    Unless SYMMETRIC, distances depend on the target.
    """
    slots = tl.arange(0, TILE)
    row = (first + tl.program_id(0).to(tl.int64)) * TILE
    new = tl.load(new_ptr + row + slots)
    old = tl.load(old_ptr + row + slots)
    new_new, new_old = match(rows_ptr, new, old, D, STEP, TILE)
    new_members = tl.load(member_terms_ptr + new, mask=new >= 0, other=_INFINITE)
    old_members = tl.load(member_terms_ptr + old, mask=old >= 0, other=_INFINITE)
    new_queries = new_members
    if not SYMMETRIC:
        new_queries = tl.load(query_terms_ptr + new, mask=new >= 0, other=_INFINITE)
    out = tl.program_id(0).to(tl.int64) * (3 * TILE) + slots
    found = measure(new_new, new, new, new_queries, new_members, boundary, ACROSS)
    distance, slot = tl.min(found, axis=1, return_indices=True)
    id = tl.load(new_ptr + row + slot)
    propose(keys_ptr + out, ids_ptr + out, distances_ptr, new, distance, id, SIZE, SEGMENT)
    out += TILE
    found = measure(new_old, new, old, new_queries, old_members, boundary, ACROSS)
    distance, slot = tl.min(found, axis=1, return_indices=True)
    id = tl.load(old_ptr + row + slot)
    propose(keys_ptr + out, ids_ptr + out, distances_ptr, new, distance, id, SIZE, SEGMENT)
    out += TILE
    if not SYMMETRIC:
        old_queries = tl.load(query_terms_ptr + old, mask=old >= 0, other=_INFINITE)
        found = measure(new_old, new, old, new_members, old_queries, boundary, ACROSS)
    distance, slot = tl.min(found, axis=0, return_indices=True)
    id = tl.load(new_ptr + row + slot)
    propose(keys_ptr + out, ids_ptr + out, distances_ptr, old, distance, id, SIZE, SEGMENT)
