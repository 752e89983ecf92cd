"""Exact values of all points for some queries, and the k best of each: a search without a screen.

    value              S f(q_i, x_i) in float64, in the order of kernels/value.py
    direct   program   one query and a share of the points, CHUNK at a time
             tile      [CHUNK, 16] per step as in kernels/refine.py: four lanes per thread, four steps in flight
             query     widened step by step from its own row; a program computes its mean and norm itself
             best      K pairs (key, id) in registers, ascending; a tile is sorted as far as its K smallest, which
                       descend: the elementwise minimum of both is bitonic, and one merge sorts it
    answer   program   one query: of the runs of K of its programs, the K whose first pairs are the smallest, which are
                       sorted for that, then merged in pairs. A pair of any other run has K smaller ones before it.

K is a power of two, at least k and at most CHUNK. Pairs are those of select/cuda/kernels/keys.py, of float32 values or,
if DOUBLE, float64 values that ascend with distance. Programs of one share of the points and all queries are neighbours,
so that they find its rows in the cache.

Where a query is, and where its answer goes, is read from memory that the host writes (`cells`), so that a CUDA graph of
both kernels serves all queries and copies neither:

    cells    int64: address of the queries, elements between them, addresses of distances and indices, and for each
             query a mark: 0, or QUERY_REFUSED, POINTS_REFUSED or both if there is a value that searches refuse
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.exact.cuda.kernels.refine import add_step, value_of_lanes
from tonari.exact.cuda.kernels.value import fold, load_lanes, means, widened
from tonari.select.cuda.kernels.keys import last_key, to_bits, to_keys
from tonari.select.cuda.kernels.network import keep_smaller, smallest_of_runs, smallest_pairs
from tonari.select.cuda.kernels.order import ascending

QUERY_REFUSED = tl.constexpr(1)
POINTS_REFUSED = tl.constexpr(2)
MARKS = tl.constexpr(4)  # the first mark's place among the cells
_NO_ID = tl.constexpr(0x7FFFFFFF)
_LARGEST = tl.constexpr(1e150)  # inputs.values.LARGEST_FLOAT64; infinities are beyond it, too


@triton.jit
def query_of(cells_ptr, row, QUERY: tl.constexpr):
    """Return the address of a query, whose elements are of the dtype QUERY."""
    queries_ptr = tl.load(cells_ptr).to(tl.pointer_type(QUERY))
    return queries_ptr + row * tl.load(cells_ptr + 1)


@triton.jit
def refused(x, METRIC: tl.constexpr):
    """Return which float64 elements are not finite, beyond 1e150, or negative where the metric refuses that."""
    sound = tl.abs(x) <= _LARGEST
    if METRIC.nonnegative:
        sound = sound & (x >= 0)
    return sound == 0


@triton.jit
def query_step(query_ptr, at, d, mean, differs, METRIC: tl.constexpr):
    """Return columns at ... at + 15 of a query as kernels/widen.py writes them, [1, 16]; zeros beyond the end."""
    inside = at + tl.arange(0, 16) < d
    q = widened(tl.load(query_ptr + at + tl.arange(0, 16), mask=inside, other=0)).to(tl.float64)
    if METRIC.centred:
        q = tl.where(inside & differs, q - mean, 0.0)
    return q[None, :]


@triton.jit
def query_norm(query_ptr, d, mean, differs, METRIC: tl.constexpr):
    """Return the norm of a query, as kernels/widen.py computes it."""
    squares = tl.zeros([1, 16], tl.float64)
    for at in tl.range(0, (d + 63) // 64 * 64, 64):  # steps beyond the end add zeros
        q0 = query_step(query_ptr, at, d, mean, differs, METRIC)
        q1 = query_step(query_ptr, at + 16, d, mean, differs, METRIC)
        q2 = query_step(query_ptr, at + 32, d, mean, differs, METRIC)
        q3 = query_step(query_ptr, at + 48, d, mean, differs, METRIC)
        squares += q0 * q0
        squares += q1 * q1
        squares += q2 * q2
        squares += q3 * q3
    return tl.sum(tl.sqrt(fold(squares, 1, False)), 0)


@triton.jit
def next_step(
    lanes, squares, bad, query_ptr, q_mean, q_differs, x, mean, present, at, d,
    METRIC: tl.constexpr, TERM: tl.constexpr, CHECKED: tl.constexpr, LAST: tl.constexpr,
):  # fmt: skip
    """Add columns at ... at + 15 of the points, and note the rows that have a value to refuse."""
    if CHECKED:
        wrong = refused(widened(x).to(tl.float64), METRIC) & present[:, None]
        bad = bad | wrong.to(tl.int32)
    q = query_step(query_ptr, at, d, q_mean, q_differs, METRIC)
    lanes, squares = add_step(lanes, squares, q, x, mean, at, d, METRIC, TERM, LAST)
    return lanes, squares, bad


@triton.jit(do_not_specialize=["n", "d", "units", "rows", "parts", "tiles"])
def direct_kernel(
    # inputs
    points_ptr,
    cells_ptr,
    # outputs: [row][part][K] keys and ids, one mark per program if CHECKED
    keys_ptr,
    ids_ptr,
    marks_ptr,
    # shapes
    n,
    d,
    units,
    rows,
    parts,
    tiles,  # of a part
    # constants
    METRIC: tl.constexpr,
    TERM: tl.constexpr,
    QUERY: tl.constexpr,
    CHECKED: tl.constexpr,
    DOUBLE: tl.constexpr,
    INFINITE: tl.constexpr,
    UNIT: tl.constexpr,
    CHUNK: tl.constexpr,
    K: tl.constexpr,
):
    """Write the K best pairs of one query among one part of the points, ascending."""
    tl.static_assert(K <= CHUNK)
    program = tl.program_id(0)
    row = (program % rows).to(tl.int64)
    part = (program // rows).to(tl.int64)
    query_ptr = query_of(cells_ptr, row, QUERY)
    q_mean, q_differs, norm = 0.0, True, 0.0
    if METRIC.centred:
        here = tl.zeros([1], tl.int32)
        q_means, q_differ = means(query_ptr + here, d, here == 0, 1, 1)
        q_mean, q_differs = tl.sum(q_means, 0), tl.max(q_differ.to(tl.int32), 0) > 0
    if METRIC.angular:
        norm = query_norm(query_ptr, d, q_mean, q_differs, METRIC)

    best_keys = tl.zeros([K], tl.int64 if DOUBLE else tl.int32) + last_key(DOUBLE)
    best_ids = tl.full([K], _NO_ID, tl.int32)
    bad = tl.zeros([CHUNK, 16], tl.int32)
    begin = part * tiles * CHUNK
    for start in tl.range(begin, tl.minimum(begin + tl.cast(tiles, tl.int64) * CHUNK, n), CHUNK):
        at_point = start + tl.arange(0, CHUNK)
        present = at_point < n
        row_ptrs = points_ptr + at_point * (units.to(tl.int64) * UNIT)
        mean, differs = 0.0, present
        if METRIC.centred:
            mean, differs = means(row_ptrs, d, present, CHUNK, UNIT)
        lanes = tl.zeros([CHUNK, 16], tl.float64)
        squares = lanes
        batches = d // 64 * 64
        for at in tl.range(0, batches, 64):
            x0 = load_lanes(row_ptrs, at, d, present, UNIT, False)  # [CHUNK, 16]
            x1 = load_lanes(row_ptrs, at + 16, d, present, UNIT, False)
            x2 = load_lanes(row_ptrs, at + 32, d, present, UNIT, False)
            x3 = load_lanes(row_ptrs, at + 48, d, present, UNIT, False)
            lanes, squares, bad = next_step(
                lanes, squares, bad, query_ptr, q_mean, q_differs, x0, mean, present, at, d,
                METRIC, TERM, CHECKED, False,
            )  # fmt: skip
            lanes, squares, bad = next_step(
                lanes, squares, bad, query_ptr, q_mean, q_differs, x1, mean, present, at + 16, d,
                METRIC, TERM, CHECKED, False,
            )  # fmt: skip
            lanes, squares, bad = next_step(
                lanes, squares, bad, query_ptr, q_mean, q_differs, x2, mean, present, at + 32, d,
                METRIC, TERM, CHECKED, False,
            )  # fmt: skip
            lanes, squares, bad = next_step(
                lanes, squares, bad, query_ptr, q_mean, q_differs, x3, mean, present, at + 48, d,
                METRIC, TERM, CHECKED, False,
            )  # fmt: skip
        for at in tl.range(batches, d, 16):
            x = load_lanes(row_ptrs, at, d, present, UNIT, True)
            lanes, squares, bad = next_step(
                lanes, squares, bad, query_ptr, q_mean, q_differs, x, mean, present, at, d,
                METRIC, TERM, CHECKED, True,
            )  # fmt: skip
        values = ascending(value_of_lanes(lanes, squares, norm, differs, METRIC, CHUNK), METRIC.descending)
        if DOUBLE:
            bits = values.to(tl.int64, bitcast=True)
        else:
            bits = values.to(tl.float32).to(tl.int32, bitcast=True)
        keys = to_keys(bits, INFINITE, False, DOUBLE)
        # NaN, which only rejected input has, counts as missing.
        present = present & (keys != last_key(DOUBLE))
        keys = tl.where(present, keys, last_key(DOUBLE))
        ids = tl.where(present, at_point.to(tl.int32), _NO_ID)
        keys, ids = smallest_pairs(keys, ids, CHUNK, K, DESCENDING=1)
        best_keys, best_ids = keep_smaller(best_keys, best_ids, keys, ids, K)

    run = row * parts + part
    tl.store(keys_ptr + run * K + tl.arange(0, K), best_keys)
    tl.store(ids_ptr + run * K + tl.arange(0, K), best_ids)
    if CHECKED:
        tl.store(marks_ptr + run, tl.max(tl.max(bad, 1), 0) * POINTS_REFUSED)


@triton.jit(do_not_specialize=["d", "k", "parts", "share"])
def answer_kernel(
    # inputs: [row][part][K] keys and ids, [row][part] marks if CHECKED
    keys_ptr,
    ids_ptr,
    marks_ptr,
    # input and output
    cells_ptr,
    # shapes
    d,
    k,
    parts,
    share,  # points of a part
    # constants
    METRIC: tl.constexpr,
    QUERY: tl.constexpr,
    CHECKED: tl.constexpr,
    DOUBLE: tl.constexpr,
    INFINITE: tl.constexpr,
    COLUMNS: tl.constexpr,
    RUNS: tl.constexpr,
    K: tl.constexpr,
):
    """Write the k best pairs of one query as distances and indices, and its mark."""
    tl.static_assert(RUNS >= K)
    row = tl.program_id(0).to(tl.int64)
    query_ptr = query_of(cells_ptr, row, QUERY)
    wrong = tl.zeros([COLUMNS], tl.int32)
    for begin in tl.range(0, d, COLUMNS):
        column = begin + tl.arange(0, COLUMNS)
        q = widened(tl.load(query_ptr + column, mask=column < d, other=0)).to(tl.float64)
        wrong = wrong | refused(q, METRIC).to(tl.int32)
    mark = tl.max(wrong, 0) * QUERY_REFUSED

    part = tl.arange(0, RUNS)
    heads = (row * parts + part) * K
    there = part < parts
    keys = tl.where(there, tl.load(keys_ptr + heads, mask=there, other=0), last_key(DOUBLE))
    ids = tl.load(ids_ptr + heads, mask=there, other=_NO_ID)
    if CHECKED:
        mark = mark | tl.max(tl.load(marks_ptr + row * parts + part, mask=there, other=0), 0)
    _, ids = smallest_pairs(keys, ids, RUNS, K)
    chosen = (ids // share)[:, None]  # the runs, by their first pairs: each share is of consecutive points
    there = tl.broadcast_to((ids != _NO_ID)[:, None], [K, K])
    backwards = tl.arange(0, K)[:, None] % 2 * (K - 1)  # every second run descends
    entries = (row * parts + chosen) * K + (tl.arange(0, K)[None, :] ^ backwards)
    keys = tl.where(there, tl.load(keys_ptr + entries, mask=there, other=0), last_key(DOUBLE))  # [K, K]
    ids = tl.load(ids_ptr + entries, mask=there, other=_NO_ID)
    keys, ids = smallest_of_runs(tl.reshape(keys, [K * K]), tl.reshape(ids, [K * K]), K * K, K)

    present = ids != _NO_ID
    VALUE: tl.constexpr = tl.float64 if DOUBLE else tl.float32
    bits = to_bits(keys, INFINITE, False, 64 if DOUBLE else 32)
    values = tl.where(present, bits.to(VALUE, bitcast=True), float("inf"))
    distances_ptr = tl.load(cells_ptr + 2).to(tl.pointer_type(VALUE)) + row * k
    indices_ptr = tl.load(cells_ptr + 3).to(tl.pointer_type(tl.int32)) + row * k
    column = tl.arange(0, K)
    tl.store(distances_ptr + column, ascending(values, METRIC.descending), mask=column < k)
    tl.store(indices_ptr + column, tl.where(present, ids, -1), mask=column < k)
    tl.store(cells_ptr + MARKS + row, mark.to(tl.int64))
