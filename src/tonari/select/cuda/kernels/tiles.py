"""Tiles of a row in registers, laid out so that counting what a mask takes needs few exchanges between threads.

A tile of A * T * V values has shape [T, A, V]: T threads, each with A runs of V neighbouring values, one load of 16
bytes each.

    offset = (a * T + t) * V + v

Triton gives out the last axis to a thread's registers as far as memory is contiguous, then the first to the threads:
in this order of axes a thread owns its A * V values whether they are loaded, counted or stored.

A thread counts what it takes without asking others; one running sum over the T threads then tells everybody where to
write. This is the ballot of komarov2014 (one read, no second pass) with 32 * A * V values at a time instead of 32.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def tile_offsets(A: tl.constexpr, T: tl.constexpr, V: tl.constexpr):
    """int32 [T, A, V]: where each element of a tile lies."""
    t = tl.arange(0, T)[:, None, None]
    a = tl.arange(0, A)[None, :, None]
    v = tl.arange(0, V)[None, None, :]
    return (a * T + t) * V + v


@triton.jit
def greatest(tile):
    """The maximum of a tile."""
    return tl.max(tl.max(tl.max(tile, 2), 1), 0)


@triton.jit
def per_thread(tile):
    """Sums of an int32 tile, int32 [T]."""
    return tl.sum(tl.sum(tile, 2), 1)


@triton.jit
def total(mask):
    """How many elements of a tile a mask takes."""
    return tl.sum(per_thread(mask.to(tl.int32)), 0)


@triton.jit
def places(mask):
    """Place of each element among those that the mask takes: any order, no gaps."""
    ones = mask.to(tl.int32)
    runs = tl.sum(ones, 2)
    threads = tl.sum(runs, 1)
    before_thread = tl.cumsum(threads, 0) - threads
    before_run = tl.cumsum(runs, 1) - runs + before_thread[:, None]
    return tl.cumsum(ones, 2) - 1 + before_run[:, :, None]


@triton.jit
def row_length(lengths_ptr, row, n, HAS_LENGTHS: tl.constexpr):
    """Values that a row has."""
    length = n
    if HAS_LENGTHS:
        length = tl.load(lengths_ptr + row).to(tl.int32)
    return length
