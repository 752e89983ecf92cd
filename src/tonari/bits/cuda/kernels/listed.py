"""A kernel that computes the values of each query and the points in its list by counting bits.

The bits of a byte are counted by adding neighbouring bits, then neighbouring sums of two bits and of four, which takes
seven operations. A program compares a query with LISTED points of its list, in steps of BYTES bytes.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def bits_of(byte):
    """Count the set bits of bytes that are stored as int32."""
    byte = byte - ((byte >> 1) & 0x55)
    byte = (byte & 0x33) + ((byte >> 2) & 0x33)
    return (byte + (byte >> 4)) & 0x0F


@triton.jit(do_not_specialize=["longest", "tiles"])
def listed_values_kernel(
    # inputs: bytes of queries and points; row numbers of queries, of listed points (-1: none), and of own points
    queries_ptr, points_ptr, numbers_ptr, ids_ptr, own_ptr,
    # output: float32 (rows, longest), inf where there is no point
    values_ptr,
    # shapes
    d, query_stride, point_stride, longest, tiles,
    # constants
    JACCARD: tl.constexpr, HAS_OWN: tl.constexpr, LISTED: tl.constexpr, BYTES: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) // tiles
    slot = (tl.program_id(0) % tiles) * LISTED + tl.arange(0, LISTED)
    query = tl.load(numbers_ptr + row)
    ids = tl.load(ids_ptr + row * longest + slot, mask=slot < longest, other=-1)
    present = ids >= 0
    if HAS_OWN:
        present = present & (ids != tl.load(own_ptr + query))
    differing = tl.zeros((LISTED,), tl.int32)
    either = tl.zeros((LISTED,), tl.int32)
    for first in tl.range(0, d, BYTES):
        byte = first + tl.arange(0, BYTES)
        inside = byte < d
        q = tl.load(queries_ptr + query * query_stride + byte, mask=inside, other=0).to(tl.int32)[None, :]
        at = ids.to(tl.int64)[:, None] * point_stride + byte[None, :]
        x = tl.load(points_ptr + at, mask=present[:, None] & inside[None, :], other=0).to(tl.int32)  # [LISTED, BYTES]
        differing += tl.sum(bits_of(q ^ x), 1)
        if JACCARD:
            either += tl.sum(bits_of(q | x), 1)
    values = differing.to(tl.float32)
    if JACCARD:
        values = tl.div_rn(values, tl.maximum(either, 1).to(tl.float32))
    values = tl.where(present, values, float("inf"))
    tl.store(values_ptr + row * longest + slot, values, mask=slot < longest)
