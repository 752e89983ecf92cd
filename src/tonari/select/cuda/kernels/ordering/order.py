"""Encode (value, id) pairs as single float64 keys with the same order.

    value >= 0    key = 0 vvvvvvv...  iiii...        the bits of the float32 in the upper half, the id in the lower
    value <  0    key = 1 vvvvvvv... ~iiii...        larger magnitudes are smaller values, so ids are inverted too
    missing       key = +inf

Compared as float64 numbers, keys have the order of (value, id). The exponent in the upper half is at most that of a
float32 infinity, so the key of every pair is finite; only the smallest pair, (0.0, 0), has the key 0. Similarities are
negated before they are encoded.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def ascending(values, DESCENDING: tl.constexpr):
    """Return values that are smaller for nearer points: similarities are negated, and -0.0 becomes 0.0."""
    return 0.0 - values if DESCENDING else values + 0.0


@triton.jit
def make_keys(values, ids, present):
    """Return the keys of (value, id) pairs, with values rounded to float32; NaN counts as missing."""
    rounded = values.to(tl.float32)
    bits = tl.where(rounded == 0, 0.0, rounded).to(tl.int32, bitcast=True).to(tl.int64)
    flip = (bits >> 31) & 0xFFFFFFFF
    keys = ((bits << 32) | ids.to(tl.int64)) ^ flip
    keys = tl.where(present & (rounded == rounded), keys, 0x7FF0000000000000)
    return keys.to(tl.float64, bitcast=True)


@triton.jit
def open_keys(keys):
    """Return the float32 values and the ids that keys encode; inf and -1 for a missing pair."""
    bits = keys.to(tl.int64, bitcast=True)
    present = bits != 0x7FF0000000000000
    values = (bits >> 32).to(tl.int32).to(tl.float32, bitcast=True)
    ids = ((bits ^ (bits >> 63)) & 0xFFFFFFFF).to(tl.int32)
    return tl.where(present, values, float("inf")), tl.where(present, ids, -1)


@triton.jit(do_not_specialize=["entries", "columns", "distance_stride", "id_stride", "key_stride"])
def encode_kernel(
    # inputs
    distances_ptr, ids_ptr,
    # output
    keys_ptr,
    # shapes
    entries, columns, distance_stride, id_stride, key_stride,
    # constants
    DESCENDING: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Encode lists as keys: float32 distances and int32 ids, -1 where missing."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    present = at < entries
    row = at // columns
    column = at % columns
    distances = tl.load(distances_ptr + row * distance_stride + column, mask=present, other=0)  # [BLOCK]
    ids = tl.load(ids_ptr + row * id_stride + column, mask=present, other=-1)
    keys = make_keys(ascending(distances, DESCENDING), ids, ids >= 0)
    tl.store(keys_ptr + row * key_stride + column, keys, mask=present)


@triton.jit(do_not_specialize=["entries"])
def decode_kernel(
    # input
    keys_ptr,
    # outputs
    distances_ptr, ids_ptr,
    # shapes
    entries,
    # constants
    DESCENDING: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Decode keys to distances and ids."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    present = at < entries
    values, ids = open_keys(tl.load(keys_ptr + at, mask=present, other=0))
    tl.store(distances_ptr + at, ascending(values, DESCENDING), mask=present)
    tl.store(ids_ptr + at, ids, mask=present)
