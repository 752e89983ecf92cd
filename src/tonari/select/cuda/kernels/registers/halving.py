"""The k-th smallest (key, index) pair of a tile in registers, by bisection.

The range of possible keys is bisected until at least k and at most `most` keys are at or below its middle, or until
only one key is possible. Pairs with this key are then separated by bisecting the range of indices. A step takes one
comparison per element and one sum over all threads of the program. There are at most 32 (64) + 32 steps for any data,
and about log2(size) for random data.
"""

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.standard import _elementwise_max, _elementwise_min

from tonari.select.cuda.kernels.registers.tiles import greatest, total


@triton.jit
def smallest_at_least(numbers, mask, k, most):
    """Return a limit and the count of numbers in `mask` at or below it: at least k and at most `most`.

    If equal numbers make that impossible, the limit is the smallest one with at least k numbers at or below it.
    """
    LARGE: tl.constexpr = 0x7FFFFFFFFFFFFFFF if numbers.dtype == tl.int64 else 0x7FFFFFFF
    runs = tl.reduce(tl.where(mask, numbers, LARGE), 2, _elementwise_min)
    least = tl.reduce(runs, 1, _elementwise_min)  # the minimum over the numbers of each thread
    low = tl.reduce(least, 0, _elementwise_min)
    high = greatest(tl.where(mask, numbers, -LARGE - 1))
    if k <= numbers.shape[0]:  # every thread has a number at or below the largest of the threads' minima
        high = tl.minimum(high, tl.reduce(least, 0, _elementwise_max))
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
    """Return a (key, index) bound such that at least k and at most `most` pairs under the mask are at or below it.

    The bound need not be one of the pairs. The mask must have at least k >= 1 elements.
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
    """Return a mask of the pairs at or below (key, last)."""
    return (keys < key) | ((keys == key) & (ids <= last))
