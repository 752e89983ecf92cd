"""wang2021's rounds in kernels: samples, cross-matching, and two ways to update lists that many rows write to.

    list        SIZE columns of (entry int32, distance float32), entries as in tonari.nn_descent.entries, in segments of
                SEGMENT, each ascending by (distance, id), missing entries behind (-1, infinite). A point belongs in
                segment id % (SIZE // SEGMENT)                                                            (section 4.3)
    distance    |q|² + |x|² − 2 <q, x> of float16 rows, at least 0, as a float32: its bits ascend as integers do
    samples     of each row and kind (NEW, OLD) the first SAMPLES of its list and, up to 2 SAMPLES, of those that
                sample the row; none twice                                                                (section 4.1)
    proposal    64 bits, the target above the bits of its distance, or -1; beside them the id that is proposed

Kernels that look at pairs of a list's columns take ROWS rows at once.
"""

from __future__ import annotations

import triton
import triton.language as tl

_INFINITE = tl.constexpr(float("inf"))


@triton.jit
def precedes(distance, id, other_distance, other_id):
    """Whether one stands before the other in a list; all broadcast."""
    return (distance < other_distance) | ((distance == other_distance) & (id < other_id))


@triton.jit(do_not_specialize=["n", "seed"])
def start_kernel(
    # inputs
    rows_ptr,
    terms_ptr,
    # outputs
    entries_ptr,
    distances_ptr,
    # shapes
    n,
    seed,
    # constants
    D: tl.constexpr,
    STEP: tl.constexpr,
    SAMPLES: tl.constexpr,
    SIZE: tl.constexpr,
    SEGMENT: tl.constexpr,
    NEW: tl.constexpr,
):
    """SAMPLES random NEW entries of one row, less itself and repeats (algorithm 1, lines 2 to 4)."""
    row = tl.program_id(0).to(tl.int64)
    slots = tl.arange(0, SAMPLES)
    id = (tl.randint(seed, row * SAMPLES + slots) & 0x7FFFFFFF).to(tl.int32) % n
    twins = (id[:, None] == id[None, :]) & (slots[None, :] < slots[:, None])
    present = (tl.sum(twins.to(tl.int32), axis=1) == 0) & (id != row)
    own = rows_ptr + row * D
    others = rows_ptr + id.to(tl.int64)[:, None] * D
    products = tl.zeros([SAMPLES, STEP], tl.float32)
    for column in tl.range(0, D, STEP):
        columns = column + tl.arange(0, STEP)[None, :]
        products += tl.load(own + columns).to(tl.float32) * tl.load(others + columns).to(tl.float32)
    terms = tl.load(terms_ptr + row) + tl.load(terms_ptr + id)
    distance = tl.maximum(terms - 2.0 * tl.sum(products, axis=1), 0.0)
    segment = id % (SIZE // SEGMENT)
    before = (segment[:, None] == segment[None, :]) & present[None, :]
    before = before & precedes(distance[None, :], id[None, :], distance[:, None], id[:, None])
    rank = tl.sum(before.to(tl.int32), axis=1)
    place = row * SIZE + segment * SEGMENT + rank
    kept = present & (rank < SEGMENT)
    tl.store(entries_ptr + place, id | NEW, mask=kept)
    tl.store(distances_ptr + place, distance, mask=kept)


@triton.jit(do_not_specialize=["n"])
def sample_kernel(
    # inputs; the entries that are sampled become OLD
    entries_ptr,
    distances_ptr,
    # outputs: int32 [n][SAMPLES], filled with -1
    new_ptr,
    old_ptr,
    # shapes
    n,
    # constants
    SIZE: tl.constexpr,
    SAMPLES: tl.constexpr,
    ROWS: tl.constexpr,
    NEW: tl.constexpr,
    ID: tl.constexpr,
):
    """The first SAMPLES ids of each kind, over all segments of a list (section 4.1; algorithm 1, lines 8 and 32)."""
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


@triton.jit(do_not_specialize=["pairs"])
def append_kernel(
    # input
    listed_ptr,
    # outputs: int32 [n], zeros; [n][ROOM], filled with -1
    counts_ptr,
    reverse_ptr,
    # shapes
    pairs,
    # constants
    SAMPLES: tl.constexpr,
    ROOM: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Append each row to the lists of those it samples, in whatever order threads come (section 4.1)."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    listed = tl.load(listed_ptr + at, mask=at < pairs, other=-1)
    place = tl.atomic_add(counts_ptr + listed, 1, mask=listed >= 0, sem="relaxed")
    out = listed.to(tl.int64) * ROOM + place
    tl.store(reverse_ptr + out, (at // SAMPLES).to(tl.int32), mask=(listed >= 0) & (place < ROOM))


@triton.jit(do_not_specialize=["n"])
def join_kernel(
    # inputs: int32 [n][SAMPLES], [n][2 SAMPLES]
    own_ptr,
    reverse_ptr,
    # output: int32 [n][2 SAMPLES]
    samples_ptr,
    # shapes
    n,
    # constants
    SAMPLES: tl.constexpr,
    ROWS: tl.constexpr,
):
    """A row's samples of one kind: its own, then those that sample it, without repeated ones (section 4.1)."""
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


@triton.jit
def propose(
    keys_ptr, ids_ptr, distances_ptr, target, distance, id, SIZE: tl.constexpr, SEGMENT: tl.constexpr,
):  # fmt: skip
    """Write what a target's segment would not refuse at once, for something there is farther, or nothing is."""
    found = (target >= 0) & (distance < _INFINITE)
    last = target.to(tl.int64) * SIZE + id % (SIZE // SEGMENT) * SEGMENT + (SEGMENT - 1)
    found = found & (distance <= tl.load(distances_ptr + last, mask=found, other=0.0))
    key = (target.to(tl.int64) << 32) | distance.to(tl.int32, bitcast=True).to(tl.int64)
    tl.store(keys_ptr, tl.where(found, key, -1))
    tl.store(ids_ptr, id)


@triton.jit(do_not_specialize=["first"])
def cross_kernel(
    # inputs
    rows_ptr,
    terms_ptr,
    new_ptr,
    old_ptr,
    distances_ptr,
    # outputs: [row][3][TILE]
    keys_ptr,
    ids_ptr,
    # shapes
    first,
    # constants
    D: tl.constexpr,
    STEP: tl.constexpr,
    TILE: tl.constexpr,
    SIZE: tl.constexpr,
    SEGMENT: tl.constexpr,
):
    """A row's samples are matched; each is proposed its nearest of each kind (sections 4.2 and 4.3, algorithm 1).

    Two products [TILE, TILE], NEW x NEW and NEW x OLD, over steps of STEP columns of gathered rows; TILE is twice
    SAMPLES. Proposed are: to a NEW sample the nearest other NEW and the nearest OLD one, to an OLD one the nearest NEW.
    """
    slots = tl.arange(0, TILE)
    row = (first + tl.program_id(0).to(tl.int64)) * TILE
    new = tl.load(new_ptr + row + slots)
    old = tl.load(old_ptr + row + slots)
    steps = tl.arange(0, STEP)[None, :]
    new_rows = rows_ptr + new.to(tl.int64)[:, None] * D + steps
    old_rows = rows_ptr + old.to(tl.int64)[:, None] * D + steps
    new_new = tl.zeros([TILE, TILE], tl.float32)
    new_old = tl.zeros([TILE, TILE], tl.float32)
    # Where nothing is NEW nobody meets.
    width = tl.where(tl.max(new, axis=0) >= 0, D, 0)
    for column in tl.range(0, width, STEP):
        x = tl.load(new_rows + column, mask=(new >= 0)[:, None], other=0.0)
        y = tl.load(old_rows + column, mask=(old >= 0)[:, None], other=0.0)
        new_new = tl.dot(x, tl.trans(x), new_new)
        new_old = tl.dot(x, tl.trans(y), new_old)
    new_terms = tl.load(terms_ptr + new, mask=new >= 0, other=_INFINITE)
    old_terms = tl.load(terms_ptr + old, mask=old >= 0, other=_INFINITE)
    new_new = tl.maximum(new_terms[:, None] + new_terms[None, :] - 2.0 * new_new, 0.0)
    new_old = tl.maximum(new_terms[:, None] + old_terms[None, :] - 2.0 * new_old, 0.0)
    # Of one kind nobody is there twice, but one may be of both.
    new_new = tl.where(new[:, None] == new[None, :], _INFINITE, new_new)
    new_old = tl.where(new[:, None] == old[None, :], _INFINITE, new_old)
    out = tl.program_id(0).to(tl.int64) * (3 * TILE) + slots
    distance, slot = tl.min(new_new, axis=1, return_indices=True)
    id = tl.load(new_ptr + row + slot)
    propose(keys_ptr + out, ids_ptr + out, distances_ptr, new, distance, id, SIZE, SEGMENT)
    out += TILE
    distance, slot = tl.min(new_old, axis=1, return_indices=True)
    id = tl.load(old_ptr + row + slot)
    propose(keys_ptr + out, ids_ptr + out, distances_ptr, new, distance, id, SIZE, SEGMENT)
    out += TILE
    distance, slot = tl.min(new_old, axis=0, return_indices=True)
    id = tl.load(new_ptr + row + slot)
    propose(keys_ptr + out, ids_ptr + out, distances_ptr, old, distance, id, SIZE, SEGMENT)


@triton.jit
def insert_kernel(
    # inputs: [program][BATCH]
    keys_ptr,
    ids_ptr,
    # outputs
    entries_ptr,
    distances_ptr,
    # int32 [n][SIZE // SEGMENT], 1 where somebody has the segment
    locks_ptr,
    # constants
    BATCH: tl.constexpr,
    SIZE: tl.constexpr,
    SEGMENT: tl.constexpr,
    NEW: tl.constexpr,
    ID: tl.constexpr,
):
    """BATCH proposals one by one, each into a segment that nobody else writes to at that time (section 4.3).

    A program is one warp, whose lanes want one lock at a time, and none while they have one: whoever is waited for
    gets on. One lane takes the lock with acquire and gives it back with release, for the whole device; barriers put
    what the other lanes read behind the one, and what they write before the other. Lists are read past the L1 cache,
    which does not see what other processors write.

    What a look without the lock refuses is not locked for. The look may be late, or see half of what is being written;
    but the last distance of a segment only falls, and what once was in it is there or was driven out by nearer points.
    """
    SEGMENTS: tl.constexpr = SIZE // SEGMENT
    columns = tl.arange(0, SEGMENT)
    first = tl.program_id(0).to(tl.int64) * BATCH
    for at in tl.range(BATCH):
        key = tl.load(keys_ptr + first + at)
        if key >= 0:
            id = tl.load(ids_ptr + first + at)
            distance = key.to(tl.int32).to(tl.float32, bitcast=True)
            segment = (key >> 32) * SEGMENTS + id % SEGMENTS
            entries = entries_ptr + segment * SEGMENT + columns
            distances = distances_ptr + segment * SEGMENT + columns
            listed = tl.load(entries, cache_modifier=".cg") & ID
            last = tl.max(tl.load(distances, cache_modifier=".cg"), axis=0)
            if (tl.sum((listed == id).to(tl.int32), axis=0) == 0) & (distance <= last):
                while tl.atomic_cas(locks_ptr + segment, 0, 1, sem="acquire", scope="gpu") != 0:
                    pass
                tl.debug_barrier()
                listed = tl.load(entries, cache_modifier=".cg") & ID
                value = tl.load(distances, cache_modifier=".cg")
                entry_before = tl.load(entries - 1, mask=columns > 0, other=-1, cache_modifier=".cg")
                value_before = tl.load(distances - 1, mask=columns > 0, other=0.0, cache_modifier=".cg")
                rank = tl.sum(precedes(value, listed, distance, id).to(tl.int32), axis=0)
                rank = tl.where(tl.sum((listed == id).to(tl.int32), axis=0) == 0, rank, SEGMENT)
                tl.debug_barrier()  # a lane writes what its neighbour has read
                tl.store(entries, tl.where(columns > rank, entry_before, id | NEW), mask=columns >= rank)
                tl.store(distances, tl.where(columns > rank, value_before, distance), mask=columns >= rank)
                tl.debug_barrier()
                tl.atomic_xchg(locks_ptr + segment, 0, sem="release", scope="gpu")


@triton.jit(do_not_specialize=["n"])
def merge_kernel(
    # inputs: ascending by target, then by distance; int64 [n + 1], where each target's begin
    keys_ptr,
    ids_ptr,
    firsts_ptr,
    # outputs: lists of one segment
    entries_ptr,
    distances_ptr,
    # shapes
    n,
    # constants
    SIZE: tl.constexpr,
    CHUNK: tl.constexpr,
    ROWS: tl.constexpr,
    NEW: tl.constexpr,
    ID: tl.constexpr,
):
    """All proposals to a row into its list, CHUNK at a time: each of both goes to the place that its rank is.

    Pairs of a chunk and a list are compared once, [ROWS, CHUNK, SIZE]: how many of the list precede a proposal, and how
    many proposals an entry has to make room for. What the list has already, or the chunk before, is left out.
    """
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    columns = tl.arange(0, SIZE)[None, :]
    slots = tl.arange(0, CHUNK)[None, :]
    entries_ptr += row * SIZE
    distances_ptr += row * SIZE
    inside = row < n
    at = tl.load(firsts_ptr + row, mask=inside, other=0)
    end = tl.load(firsts_ptr + row + 1, mask=inside, other=0)
    while tl.max(tl.max(end - at, axis=1), axis=0) > 0:
        there = at + slots < end
        distance = tl.load(keys_ptr + at + slots, mask=there, other=0).to(tl.int32).to(tl.float32, bitcast=True)
        id = tl.load(ids_ptr + at + slots, mask=there, other=-1)
        entry = tl.load(entries_ptr + columns, mask=inside, other=-1)
        value = tl.load(distances_ptr + columns, mask=inside, other=_INFINITE)
        listed = entry & ID
        known = tl.sum((id[:, :, None] == listed[:, None, :]).to(tl.int32), axis=2)
        twins = (id[:, :, None] == id[:, None, :]) & (slots[:, None, :] < slots[:, :, None])
        fresh = there & (known + tl.sum(twins.to(tl.int32), axis=2) == 0)
        nearer = precedes(value[:, None, :], listed[:, None, :], distance[:, :, None], id[:, :, None])
        column = columns + tl.sum((fresh[:, :, None] & (nearer == 0)).to(tl.int32), axis=1)
        before = precedes(distance[:, None, :], id[:, None, :], distance[:, :, None], id[:, :, None])
        rank = tl.sum(nearer.to(tl.int32), axis=2) + tl.sum((before & fresh[:, None, :]).to(tl.int32), axis=2)
        tl.debug_barrier()
        tl.store(entries_ptr + column, entry, mask=inside & (column < SIZE))
        tl.store(distances_ptr + column, value, mask=inside & (column < SIZE))
        tl.store(entries_ptr + rank, id | NEW, mask=fresh & (rank < SIZE))
        tl.store(distances_ptr + rank, distance, mask=fresh & (rank < SIZE))
        tl.debug_barrier()
        # Proposals ascend: behind one that is farther than the last of the list no other is nearer.
        at += CHUNK
        following = tl.load(keys_ptr + at, mask=at < end, other=0).to(tl.int32).to(tl.float32, bitcast=True)
        last = tl.load(distances_ptr + SIZE - 1, mask=inside, other=_INFINITE)
        at = tl.where(following > last, end, at)
