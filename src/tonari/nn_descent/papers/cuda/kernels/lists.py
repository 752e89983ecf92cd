"""Lists with distances (wang2021, section 4), made from the entries of a start.

    distance   query term + member term - 2 <q, x> of float16 rows (cuda/form.py), at least 0, as a float32
    list       SIZE columns of (entry, distance) in segments of SEGMENT, each ascending by (distance, id), with
               (-1, infinite) at its end; a point belongs in segment id % (SIZE // SEGMENT)              (section 4.3)

A program processes one row: its WIDTH entries are gathered in steps of STEP columns, [WIDTH, STEP]; comparisons of all
pairs, [WIDTH, WIDTH], give the position of each. Repeated entries, the row itself, and entries beyond a full segment
are dropped.
"""

from __future__ import annotations

import triton
import triton.language as tl

_INFINITE = tl.constexpr(float("inf"))


@triton.jit
def precedes(distance, id, other_distance, other_id):
    """Return whether one entry comes before another in a list; arguments are broadcast."""
    return (distance < other_distance) | ((distance == other_distance) & (id < other_id))


@triton.jit(do_not_specialize=["columns"])
def lists_kernel(
    # inputs
    rows_ptr, query_terms_ptr, member_terms_ptr, listed_ptr,
    # outputs: [row][SIZE], filled with -1 and infinity
    entries_ptr, distances_ptr,
    # shapes
    columns,
    # constants
    D: tl.constexpr, STEP: tl.constexpr, WIDTH: tl.constexpr, SIZE: tl.constexpr, SEGMENT: tl.constexpr,
    ID: tl.constexpr,
):  # fmt: skip
    """Write the list of one row from `columns` entries in any order; missing ones are -1."""
    tl.static_assert(D % STEP == 0, "steps of columns are loaded without a mask")
    row = tl.program_id(0).to(tl.int64)
    slots = tl.arange(0, WIDTH)
    entry = tl.load(listed_ptr + row * columns + slots, mask=slots < columns, other=-1)
    id = entry & ID
    twins = (id[:, None] == id[None, :]) & (entry >= 0)[None, :] & (slots[None, :] < slots[:, None])
    present = (entry >= 0) & (id != row) & (tl.sum(twins.to(tl.int32), axis=1) == 0)
    steps = tl.arange(0, STEP)[None, :]
    own = rows_ptr + row * D + steps
    others = rows_ptr + id.to(tl.int64)[:, None] * D + steps
    products = tl.zeros([WIDTH, STEP], tl.float32)
    for column in tl.range(0, D, STEP):
        x = tl.load(others + column, mask=present[:, None], other=0.0)
        products += tl.load(own + column).to(tl.float32) * x.to(tl.float32)
    terms = tl.load(query_terms_ptr + row) + tl.load(member_terms_ptr + id, mask=present, other=0.0)
    distance = tl.maximum(terms - 2.0 * tl.sum(products, axis=1), 0.0)
    segment = id % (SIZE // SEGMENT)
    before = (segment[:, None] == segment[None, :]) & present[None, :]
    before = before & precedes(distance[None, :], id[None, :], distance[:, None], id[:, None])
    rank = tl.sum(before.to(tl.int32), axis=1)
    place = row * SIZE + segment * SEGMENT + rank
    chosen = present & (rank < SEGMENT)
    tl.store(entries_ptr + place, entry, mask=chosen)
    tl.store(distances_ptr + place, distance, mask=chosen)
