"""Reduce a tile of scores to the certified minima of its groups, which are all written or appended to lists.

    score(row, column) = low(column) + <q~(row), x^(column)>           the accumulator, which starts at `low`
    lowest(row, group) = min over its columns - (N(row) e1(tile) + r(row) e2(tile))

No true score of a member is below `lowest` (docs/exactness.md, "The GPU's screen"). A thread of a warp holds two
adjacent columns of every eight of a row, so that the reshape below moves no data and the minimum needs no other thread.
Either all minima are written, or those at or below a row's threshold are appended to its list (matsumoto2015, section
V-A: compaction): the minimum of LISTED columns, and a mask of the parts of eight that are at or below the threshold. A
list has a segment for each of the four threads that share a row in each program that handles it. So the position of the
next entry is a count in a register, and no thread waits for another.
"""

from __future__ import annotations

import triton
import triton.language as tl

COUNTED = tl.constexpr(2.0**24)  # float32 represents all whole numbers up to this one


@triton.jit
def scores_of(sums):
    """Return -2 <q^, x^> as float32: float16 queries include the factor -2, and int8 sums are <q^, x^>, exact."""
    if sums.dtype == tl.int32:
        result = sums.to(tl.float32) * -2.0
    else:
        result = sums
    return result


@triton.jit
def never_rounded(minima, WHOLE: tl.constexpr):
    """Clip minima of int8 scores at 2^24, up to which float32 represents all integers; minima of padding stay +inf."""
    if WHOLE:
        result = tl.where(minima < float("inf"), tl.minimum(minima, COUNTED), minima)
    else:
        result = minima
    return result


@triton.jit
def lowest_scores(
    scores, norm, rest, e1, e2, ROWS: tl.constexpr, COLUMNS: tl.constexpr, GROUP: tl.constexpr, WHOLE: tl.constexpr
):  # fmt: skip
    """Reduce scores [ROWS, COLUMNS] to the certified minima of groups, in their order: [ROWS, COLUMNS / (4 GROUP), 4].

    WHOLE: scores come from int8 products, and are whole numbers.
    """
    tl.static_assert(GROUP % 2 == 0)
    tl.static_assert(COLUMNS % (4 * GROUP) == 0)
    RUNS: tl.constexpr = GROUP // 2
    scores = tl.reshape(scores, (ROWS, COLUMNS // (8 * RUNS), RUNS, 4, 2))
    bound = norm * e1 + rest * e2
    return never_rounded(tl.min(tl.min(scores, 4), 2), WHOLE) - bound[:, None, None]


@triton.jit
def write_all(
    lowest, row, present, first_group, groups, minima_ptr, stride,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Write the minima of the groups in a block of points; `first_group` is the index of the block's first group."""
    PARTS: tl.constexpr = COLUMNS // (4 * GROUP)
    group = first_group + tl.arange(0, PARTS)[None, :, None] * 4 + tl.arange(0, 4)[None, None, :]
    at = row[:, None, None].to(tl.int64) * stride + group
    tl.store(minima_ptr + at, lowest, mask=present[:, None, None] & (group < groups))


@triton.jit
def append_below(
    lowest, counts, thresholds, first_group, values_ptr, entries_ptr, starts, room,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, GROUP: tl.constexpr, LISTED: tl.constexpr,
):  # fmt: skip
    """Append to the threads' segments the groups with minima at or below the thresholds; return the new counts.

    An entry is 16 times the index of a group of LISTED columns, plus the mask of the group's parts.
    """
    tl.static_assert(LISTED % GROUP == 0 and LISTED // GROUP <= 4, "an entry has four bits for parts")
    tl.static_assert(COLUMNS % (4 * LISTED) == 0)
    MERGED: tl.constexpr = LISTED // GROUP
    PARTS: tl.constexpr = COLUMNS // (4 * LISTED)
    lowest = tl.reshape(lowest, (ROWS, PARTS, MERGED, 4))
    passed = (lowest <= thresholds[:, None, None, None]).to(tl.int32)
    masks = tl.sum(passed << tl.arange(0, MERGED)[None, None, :, None], 2)
    lowest = tl.min(lowest, 2)
    parts = tl.arange(0, PARTS)[None, :, None]
    lane = tl.arange(0, 4)[None, :]
    for part in tl.static_range(PARTS):
        mask = tl.sum(tl.where(parts == part, masks, 0), 1)
        value = tl.min(tl.where(parts == part, lowest, float("inf")), 1)
        at = starts + counts
        hit = mask > 0
        fits = hit & (counts < room)
        tl.store(values_ptr + at, value, mask=fits)
        tl.store(entries_ptr + at, (first_group + 4 * part + lane) * 16 + mask, mask=fits)
        counts += hit.to(tl.int32)
    return counts
