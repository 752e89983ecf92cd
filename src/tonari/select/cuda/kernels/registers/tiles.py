"""Tiles of a row in registers, laid out so that counting the elements of a mask needs few exchanges between threads.

A tile of A * T * V values has shape [T, A, V]: T threads, each with A runs of V adjacent values, one 16-byte load each.

    offset = (a * T + t) * V + v

Triton assigns the last axis to a thread's registers as far as memory is contiguous, then the first axis to threads.
With this order of axes a thread owns the same A * V values whether they are loaded, counted or stored.

A thread counts its own elements without communication; one prefix sum over the T threads then gives every thread its
write position. This is the ballot of komarov2014 (one read, no second pass), with 32 * A * V values per step of a warp
instead of 32.

These functions call tl.reduce instead of tl.sum and tl.max, because Triton would translate tl.sum and tl.max anew for
each shape. In a first search, which needs many kernels with tiles, this would be a tenth of the time of translation
(cuda/compiling/compile.py).
"""

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.standard import _elementwise_max, _sum_combine


@triton.jit
def tile_offsets(A: tl.constexpr, T: tl.constexpr, V: tl.constexpr):
    """Return the offset of each element of a tile, int32 [T, A, V]."""
    t = tl.arange(0, T)[:, None, None]
    a = tl.arange(0, A)[None, :, None]
    v = tl.arange(0, V)[None, None, :]
    return (a * T + t) * V + v


@triton.jit
def greatest(tile):
    """Return the maximum over all elements of a tile."""
    threads = tl.reduce(tl.reduce(tile, 2, _elementwise_max), 1, _elementwise_max)
    return tl.reduce(threads, 0, _elementwise_max)


@triton.jit
def per_thread(tile):
    """Return the sum of each thread's elements of an int32 tile, int32 [T]."""
    return tl.reduce(tl.reduce(tile, 2, _sum_combine), 1, _sum_combine)


@triton.jit
def total(mask):
    """Return the number of elements of a tile that are in the mask."""
    return tl.reduce(per_thread(mask.to(tl.int32)), 0, _sum_combine)


@triton.jit
def places(mask):
    """Return a distinct position for each element of the mask, counted from 0 in no particular order."""
    ones = mask.to(tl.int32)
    runs = tl.reduce(ones, 2, _sum_combine)
    threads = tl.reduce(runs, 1, _sum_combine)
    before_thread = tl.associative_scan(threads, 0, _sum_combine) - threads
    before_run = tl.associative_scan(runs, 1, _sum_combine) - runs + before_thread[:, None]
    return tl.associative_scan(ones, 2, _sum_combine) - 1 + before_run[:, :, None]


@triton.jit
def row_length(lengths_ptr, row, n, HAS_LENGTHS: tl.constexpr):
    """Return the number of values in a row: its own length if there are lengths, else n."""
    length = n
    if HAS_LENGTHS:
        length = tl.load(lengths_ptr + row).to(tl.int32)
    return length
