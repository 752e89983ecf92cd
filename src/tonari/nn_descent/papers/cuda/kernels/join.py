"""Append to each row's own samples its reverse samples, and remove repeated ids (wang2021, section 4.1).

The samples are all new or all old. The result has at most 2 * SAMPLES distinct ids per row. The paper sorts each list
in a warp to find repeated ids. Here, all pairs of ids of a row are compared, as an array of shape [ROWS, 2 * SAMPLES,
2 * SAMPLES], and a repeated id is replaced by -1. A program processes ROWS rows.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["n"])
def join_kernel(
    # inputs: int32 [n][SAMPLES], [n][2 SAMPLES], each with -1 only at the end
    own_ptr, reverse_ptr,
    # output: int32 [n][2 SAMPLES]
    samples_ptr,
    # shapes
    n,
    # constants
    SAMPLES: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Write the joined samples of ROWS rows."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    slots = tl.arange(0, 2 * SAMPLES)[None, :]
    own = tl.load(own_ptr + row * SAMPLES + slots, mask=(row < n) & (slots < SAMPLES), other=-1)
    own_count = tl.sum((own >= 0).to(tl.int32), axis=1, keep_dims=True)
    behind = (row < n) & (slots >= own_count)
    reverse = tl.load(reverse_ptr + row * 2 * SAMPLES + slots - own_count, mask=behind, other=-1)
    id = tl.where(slots < own_count, own, reverse)
    twins = (id[:, :, None] == id[:, None, :]) & (slots[:, None, :] < slots[:, :, None])
    repeated = tl.sum(twins.to(tl.int32), axis=2) > 0
    tl.store(samples_ptr + row * 2 * SAMPLES + slots, tl.where(repeated, -1, id), mask=row < n)
