"""Own samples (wang2021, section 4.1): the first SAMPLES NEW and the first SAMPLES OLD entries of each list.

"First" means nearest by (distance, id) over all segments of the list. The rank of an entry is the number of entries of
its kind that precede it, from comparisons of all pairs of columns, [ROWS, SIZE, SIZE]. Sampled NEW entries become OLD
(algorithm 1, lines 8 and 32). A program processes ROWS rows.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.nn_descent.papers.cuda.kernels.lists import precedes

_INFINITE = tl.constexpr(float("inf"))


@triton.jit(do_not_specialize=["n"])
def sample_kernel(
    # inputs; the entries that are sampled become OLD
    entries_ptr, distances_ptr,
    # outputs: int32 [n][SAMPLES], filled with -1
    new_ptr, old_ptr,
    # shapes
    n,
    # constants
    SIZE: tl.constexpr, SAMPLES: tl.constexpr, ROWS: tl.constexpr, NEW: tl.constexpr, ID: tl.constexpr,
):  # fmt: skip
    """Write the ids of the samples of ROWS rows, nearest first."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    place = row * SIZE + tl.arange(0, SIZE)[None, :]
    entry = tl.load(entries_ptr + place, mask=row < n, other=-1)
    distance = tl.load(distances_ptr + place, mask=row < n, other=_INFINITE)
    present = entry >= 0
    fresh = (entry & NEW) != 0
    id = entry & ID
    before = precedes(distance[:, None, :], id[:, None, :], distance[:, :, None], id[:, :, None])
    before = before & present[:, None, :] & (fresh[:, None, :] == fresh[:, :, None])
    rank = tl.sum(before.to(tl.int32), axis=2)
    sampled = present & (rank < SAMPLES)
    out = row * SAMPLES + rank
    tl.store(new_ptr + out, id, mask=sampled & fresh)
    tl.store(old_ptr + out, id, mask=sampled & (fresh == 0))
    tl.store(entries_ptr + place, id, mask=sampled & fresh)
