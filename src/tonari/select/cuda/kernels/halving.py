"""The k-th smallest (key, index) pair of a tile in registers, by halving.

The range of keys is halved until the number of keys at or below its middle is in [k, most], or one key is left; equal
keys are then told apart by halving the range of indices. Every step is one comparison per element and one sum over the
program. All data end within 32 (64) + 32 steps; random ones after about log2(size).
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.select.cuda.kernels.tiles import greatest, total


@triton.jit
def smallest_at_least(numbers, mask, k, most):
    """A whole number that from k to `most` of `numbers` under `mask` do not exceed, and how many do not.

    The least number that at least k do not exceed, where there is no such one.
    """
    LARGE: tl.constexpr = 0x7FFFFFFFFFFFFFFF if numbers.dtype == tl.int64 else 0x7FFFFFFF
    least = tl.min(tl.min(tl.where(mask, numbers, LARGE), 2), 1)  # of each thread
    low = tl.min(least, 0)
    high = greatest(tl.where(mask, numbers, -LARGE - 1))
    if k <= numbers.shape[0]:  # as many as there are threads do not exceed the greatest of these
        high = tl.minimum(high, tl.max(least, 0))
    below = total(mask & (numbers <= high))
    while (low < high) & (below > most):
        middle = (low & high) + ((low ^ high) >> 1)  # the mean, rounded down, without overflow
        count = total(mask & (numbers <= middle))
        enough = count >= k
        high = tl.where(enough, middle, high)
        low = tl.where(enough, low, middle + 1)
        below = tl.where(enough, count, below)
    return high, below


@triton.jit
def kth_pair(keys, ids, mask, k, most):
    """A pair that from k to `most` pairs under `mask`, of which there are at least k >= 1, do not exceed.

    Its index may be larger than that of the pair itself.
    """
    key, below = smallest_at_least(keys, mask, k, most)
    last = tl.full((), 0x7FFFFFFF, tl.int32)
    if below > most:
        equal = mask & (keys == key)
        less = below - total(equal)
        last, _ = smallest_at_least(ids, equal, k - less, most - less)
    return key, last


@triton.jit
def at_or_below(keys, ids, key, last):
    """Which pairs do not exceed (key, last)."""
    return (keys < key) | ((keys == key) & (ids <= last))
