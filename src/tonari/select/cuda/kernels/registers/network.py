"""Bitonic networks of (key, index) pairs on the GPU; the smaller index wins a tie, so no two entries are equal.

A tensor is one row of N = 2^b entries: keys int32 or int64, ids int32. The row is reshaped to a hypercube of side 2.
The step that compares positions 2^j apart works along axis b - 1 - j. The partner of an entry along an axis is the sum
over the axis minus the entry.

    key 32 bits | id 32 bits      one int64 word: a single comparison and exchange for both
    64-bit keys                   keys and ids are exchanged separately

Triton unrolls such a network, and then takes seconds to compile it for some hundred entries. A row of LONG or more
entries is therefore sorted in loops. Steps that compare entries 2^NEAR or more positions apart exchange them through
shared memory (tl.gather). Only the NEAR steps over shorter distances, between registers and lanes, are unrolled. This
takes a third to a fifth of the time to compile. From 1024 pairs of 32-bit keys on, it also runs faster; with fewer
pairs it runs as fast.

The networks are Batcher's (1968). Keeping only the smaller half of two runs is the truncated bitonic sort of Sismanis
et al. 2012.
"""

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.standard import _log2, _sum_combine

LONG = tl.constexpr(64)


@triton.jit
def pack_words(keys, ids):
    """Pack 32-bit keys and ids >= 0 into int64 words with the order of (key, id)."""
    return (keys.to(tl.int64) << 32) | ids.to(tl.int64)


@triton.jit
def unpack_words(words):
    return (words >> 32).to(tl.int32), words.to(tl.int32)


@triton.jit
def _upper(BIT: tl.constexpr, BITS: tl.constexpr):
    """Return a tensor to broadcast along the axis of BIT: 0 in the lower half of the hypercube, 1 in the upper half."""
    return tl.reshape(tl.arange(0, 2), [1] * (BITS - 1 - BIT) + [2] + [1] * BIT)


@triton.jit
def _exchange(keys, ids, BIT: tl.constexpr, BITS: tl.constexpr, PACKED: tl.constexpr):
    """Put every two entries that are 2^BIT positions apart in ascending order."""
    # Equal to tl.sum, which Triton would translate anew for every axis. Triton's interpreter recognizes this function,
    # and adds whole arrays.
    other_keys = tl.reduce(keys, BITS - 1 - BIT, _sum_combine, keep_dims=True) - keys
    greater = keys > other_keys
    if not PACKED:
        other_ids = tl.reduce(ids, BITS - 1 - BIT, _sum_combine, keep_dims=True) - ids
        greater = greater | ((keys == other_keys) & (ids > other_ids))
    leave = greater != (_upper(BIT, BITS) == 1)
    keys = tl.where(leave, other_keys, keys)
    if PACKED:
        ids = keys
    else:
        ids = tl.where(leave, other_ids, ids)
    return keys, ids


@triton.jit
def _reverse(keys, ids, down, PACKED: tl.constexpr):
    """Complement the entries where `down` is 1, which reverses their order; a second call restores them."""
    keys ^= -down
    if PACKED:
        ids = keys
    else:
        ids ^= -down
    return keys, ids


@triton.jit
def _merge(keys, ids, BLOCK: tl.constexpr, down, PACKED: tl.constexpr):
    """Sort every block of 2^BLOCK entries, each a bitonic sequence: ascending, or descending where `down` is 1."""
    BITS: tl.constexpr = _log2(keys.numel)
    keys, ids = _reverse(keys, ids, down, PACKED)
    for bit in tl.static_range(BLOCK - 1, -1, -1):
        keys, ids = _exchange(keys, ids, bit, BITS, PACKED)
    return _reverse(keys, ids, down, PACKED)


@triton.jit
def _halve(keys, ids, BIT: tl.constexpr, PACKED: tl.constexpr):
    """Keep the smaller of every two entries that are 2^BIT positions apart, so that half of the entries remain."""
    BITS: tl.constexpr = _log2(keys.numel)
    AXIS: tl.constexpr = BITS - 1 - BIT
    if PACKED:
        keys = tl.min(keys, axis=AXIS)
        ids = keys
    else:
        other_keys = tl.sum(keys, axis=AXIS, keep_dims=True) - keys
        other_ids = tl.sum(ids, axis=AXIS, keep_dims=True) - ids
        smaller = (keys < other_keys) | ((keys == other_keys) & (ids < other_ids))
        # Of two identical entries (padding) neither is smaller: keep the lower one.
        smaller = smaller | ((keys == other_keys) & (ids == other_ids) & (_upper(BIT, BITS) == 0))
        keys = tl.sum(tl.where(smaller, keys, 0), axis=AXIS)
        ids = tl.sum(tl.where(smaller, ids, 0), axis=AXIS)
    return keys, ids


@triton.jit
def _to_cube(keys, ids, PACKED: tl.constexpr):
    BITS: tl.constexpr = _log2(keys.numel)
    if PACKED:
        keys = tl.reshape(pack_words(keys, ids), [2] * BITS)
        ids = keys
    else:
        keys = tl.reshape(keys, [2] * BITS)
        ids = tl.reshape(ids, [2] * BITS)
    return keys, ids


@triton.jit
def _to_row(keys, ids, N: tl.constexpr, PACKED: tl.constexpr):
    if PACKED:
        keys, ids = unpack_words(tl.reshape(keys, [N]))
    else:
        keys = tl.reshape(keys, [N])
        ids = tl.reshape(ids, [N])
    return keys, ids


@triton.jit
def smallest_pairs(keys, ids, N: tl.constexpr, K: tl.constexpr, DESCENDING: tl.constexpr = 0):
    """Return the K smallest of N entries, sorted: sort runs of K, then merge them in pairs, dropping larger halves."""
    BITS: tl.constexpr = _log2(N)
    BLOCK: tl.constexpr = _log2(K)
    PACKED: tl.constexpr = keys.dtype == tl.int32
    tl.static_assert(K >= 2 and K <= N)
    keys, ids = _to_cube(keys, ids, PACKED)
    for size in tl.static_range(1, BLOCK + 1):
        if size < BITS:
            keys, ids = _merge(keys, ids, size, _upper(size, BITS), PACKED)
        else:
            keys, ids = _merge(keys, ids, size, DESCENDING, PACKED)
    for left in tl.static_range(BITS - BLOCK):
        keys, ids = _halve(keys, ids, BLOCK, PACKED)
        if left < BITS - BLOCK - 1:
            keys, ids = _merge(keys, ids, BLOCK, _upper(BLOCK, BITS - 1 - left), PACKED)
        else:
            keys, ids = _merge(keys, ids, BLOCK, DESCENDING, PACKED)
    return _to_row(keys, ids, K, PACKED)


@triton.jit
def sort_pairs(keys, ids, N: tl.constexpr, DESCENDING: tl.constexpr = 0):
    """Sort all N entries."""
    if N < LONG:
        keys, ids = smallest_pairs(keys, ids, N, N, DESCENDING)
    else:
        keys, ids = _sort_in_loops(keys, ids, N, DESCENDING)
    return keys, ids


@triton.jit
def _sort_in_loops(keys, ids, N: tl.constexpr, DESCENDING: tl.constexpr, NEAR: tl.constexpr = 5):
    """Sort all N entries in loops; only the steps between entries less than 2^NEAR positions apart are unrolled."""
    BITS: tl.constexpr = _log2(N)
    CUBE: tl.constexpr = [N >> NEAR] + [2] * NEAR
    PACKED: tl.constexpr = keys.dtype == tl.int32
    if PACKED:
        keys = pack_words(keys, ids)
        ids = keys
    at = tl.arange(0, N)
    for size in range(1, BITS + 1):
        down = (at >> size) & 1
        if size == BITS:
            down = down | DESCENDING
        keys, ids = _reverse(keys, ids, down, PACKED)
        for step in range(size - NEAR):
            apart = 1 << (size - 1 - step)
            upper = (at & apart) != 0
            other_keys = tl.gather(keys, at ^ apart, 0)
            if PACKED:
                keys = tl.where(upper, tl.maximum(keys, other_keys), tl.minimum(keys, other_keys))
                ids = keys
            else:
                other_ids = tl.gather(ids, at ^ apart, 0)
                greater = (keys > other_keys) | ((keys == other_keys) & (ids > other_ids))
                keys = tl.where(greater != upper, other_keys, keys)
                ids = tl.where(greater != upper, other_ids, ids)
        keys, ids = tl.reshape(keys, CUBE), tl.reshape(ids, CUBE)
        for bit in tl.static_range(NEAR - 1, -1, -1):
            changed_keys, changed_ids = _exchange(keys, ids, bit, NEAR + 1, PACKED)
            keys, ids = tl.where(bit < size, changed_keys, keys), tl.where(bit < size, changed_ids, ids)
        keys, ids = _reverse(tl.reshape(keys, [N]), tl.reshape(ids, [N]), down, PACKED)
    if PACKED:
        keys, ids = unpack_words(keys)
    return keys, ids


@triton.jit
def sort_rows(keys, ids, N: tl.constexpr, LENGTH: tl.constexpr):
    """Sort every run of LENGTH entries separately, and all runs in ascending order."""
    BITS: tl.constexpr = _log2(N)
    BLOCK: tl.constexpr = _log2(LENGTH)
    ASCENDING: tl.constexpr = 0
    PACKED: tl.constexpr = keys.dtype == tl.int32
    tl.static_assert(LENGTH >= 2 and LENGTH <= N)
    keys, ids = _to_cube(keys, ids, PACKED)
    for size in tl.static_range(1, BLOCK):
        keys, ids = _merge(keys, ids, size, _upper(size, BITS), PACKED)
    keys, ids = _merge(keys, ids, BLOCK, ASCENDING, PACKED)
    return _to_row(keys, ids, N, PACKED)


@triton.jit
def merge_pairs(keys, ids, N: tl.constexpr, DESCENDING: tl.constexpr = 0):
    """Sort N entries that form a bitonic sequence."""
    PACKED: tl.constexpr = keys.dtype == tl.int32
    keys, ids = _to_cube(keys, ids, PACKED)
    keys, ids = _merge(keys, ids, _log2(N), DESCENDING, PACKED)
    return _to_row(keys, ids, N, PACKED)


@triton.jit
def keep_smaller(keys_a, ids_a, keys_b, ids_b, N: tl.constexpr):
    """Return the N smallest entries of an ascending run `a` and a descending run `b`, ascending.

    The elementwise minimum of the two runs is a bitonic sequence and contains the N smallest entries.
    """
    first = (keys_a < keys_b) | ((keys_a == keys_b) & (ids_a < ids_b))
    return merge_pairs(tl.where(first, keys_a, keys_b), tl.where(first, ids_a, ids_b), N)
