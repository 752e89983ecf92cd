"""Values as integers in the order of the values, on the GPU: every kernel compares integers only.

    float bits  s mmmmmmm...   key = s ? -m : m        -0.0 and 0.0 are both 0; NaN has the largest key
    largest first              key = ~key              (NaN stays last)

Kernels take the bits of the values as a signed integer tensor (``values.view(torch.int32)``; uint8 unchanged) and
INFINITE, the bits of +inf, or 0 for integer types. float64 has int64 keys, every other type int32 keys. A missing entry
(beyond a row's length) has the key LAST and an index larger than all others.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def last_key(WIDE: tl.constexpr):
    """Return LAST, the largest key, which NaN and missing entries have: int64 if WIDE, else int32."""
    return tl.full((), 0x7FFFFFFFFFFFFFFF, tl.int64) if WIDE else tl.full((), 0x7FFFFFFF, tl.int32)


@triton.jit
def to_keys(bits, INFINITE: tl.constexpr, LARGEST: tl.constexpr, WIDE: tl.constexpr):
    """Convert the loaded bits of values to keys."""
    KEY: tl.constexpr = tl.int64 if WIDE else tl.int32
    SHIFT: tl.constexpr = 63 if WIDE else 31
    if INFINITE == 0:
        keys = bits.to(KEY)
        if LARGEST:
            keys = ~keys
        return keys
    MAGNITUDE: tl.constexpr = (1 << (bits.dtype.primitive_bitwidth - 1)) - 1
    wide = bits.to(KEY)
    magnitude = wide & MAGNITUDE
    sign = wide >> SHIFT
    keys = (magnitude ^ sign) - sign
    if LARGEST:
        keys = ~keys
    return tl.where(magnitude > INFINITE, last_key(WIDE), keys)


@triton.jit
def load_keys(ptrs, present, INFINITE: tl.constexpr, LARGEST: tl.constexpr, WIDE: tl.constexpr):
    """Load values from `ptrs`, and return their keys; LAST where not `present`."""
    keys = to_keys(tl.load(ptrs, mask=present, other=0), INFINITE, LARGEST, WIDE)
    return tl.where(present, keys, last_key(WIDE))


@triton.jit
def to_bits(keys, INFINITE: tl.constexpr, LARGEST: tl.constexpr, WIDTH: tl.constexpr):
    """Return, for each key, the sign-extended bits of one value with this key; zero and NaN have several."""
    LOWEST: tl.constexpr = -(1 << (WIDTH - 1))
    bits = ~keys if LARGEST else keys
    if INFINITE > 0:
        bits = tl.where(bits < 0, LOWEST - bits, bits)
    return bits


@triton.jit
def comparable_bits(key, INFINITE: tl.constexpr, LARGEST: tl.constexpr, WIDE: tl.constexpr, WIDTH: tl.constexpr):
    """Return (flip, limit) such that every value with a key <= `key` has bits ^ flip <= limit, in the width of the key.

    This saves computing the keys of all values for comparisons with one fixed key. As integers, the bits of floats
    ascend with the value above zero and descend below it; `flip` gives the half that contains `key` the order of the
    keys. A few values with larger keys pass as well (NaN of one sign, -0.0 if `key` is that of 0.0), but no value with
    a smaller key is lost.
    """
    TOP: tl.constexpr = -0x8000000000000000 if WIDE else -0x80000000
    flip = key * 0
    if LARGEST:
        flip = ~flip
    if INFINITE > 0:
        natural = ~key if LARGEST else key
        flip = tl.where(natural < 0, flip ^ ~TOP, flip)
    limit = tl.where(key == last_key(WIDE), last_key(WIDE), to_bits(key, INFINITE, LARGEST, WIDTH) ^ flip)
    return flip, limit


@triton.jit
def store_values(out_ptrs, row_ptr, keys, ids, mask, present, INFINITE: tl.constexpr, LARGEST: tl.constexpr):
    """Store the values of keys under the mask.

    Both zeros have the same key, and so have all NaNs, so these values are read from the row.
    """
    bits = to_bits(keys, INFINITE, LARGEST, out_ptrs.dtype.element_ty.primitive_bitwidth)
    if INFINITE > 0:
        zero = -1 if LARGEST else 0
        unclear = mask & present & ((keys == zero) | (keys == last_key(keys.dtype == tl.int64)))
        bits = tl.where(unclear, tl.load(row_ptr + ids, mask=unclear, other=0).to(bits.dtype), bits)
    tl.store(out_ptrs, bits.to(out_ptrs.dtype.element_ty), mask=mask)
