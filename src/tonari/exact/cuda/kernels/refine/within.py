"""Find all points within a limit of each query, among the groups that the screen cannot rule out.

    threshold   the largest score of points within the limit: T(limit) of kernels/refine/certify.py, rounded up
    parts       the groups of eight points at or below the threshold of each row: counted, then written row after row,
                in blocks of BLOCK groups of the same row, padded with -1
    values      a program processes a block: exact values of its points (kernels/refine/groups.py), rounded like
                returned values, and compared with the row's limit
    pack        the points within the limits, copied from all blocks to one array

The threshold is known in advance, so no selection and no proof is necessary: a point that is not a candidate has a
lower bound above the threshold (docs/exactness.md, Lemmas 2 and 3, with the limit in place of the k-th value). The
result does not depend on the order in which programs run.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tonari.exact.cuda.kernels.refine.certify import threshold_of
from tonari.exact.cuda.kernels.refine.groups import candidates, values_of
from tonari.exact.cuda.kernels.rows.groups import part_number
from tonari.exact.cuda.kernels.rows.pack import round_up

_LARGEST = tl.constexpr(3.4028234663852886e38)  # the largest float32


@triton.jit(do_not_specialize=["rows", "d"])
def thresholds_kernel(
    # inputs
    shift_ptr, limits_ptr, scale_ptr,
    # output: float32
    thresholds_ptr,
    # shapes
    rows, d,
    # constants
    METRIC: tl.constexpr, DOUBLE: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Write each row's threshold: -inf if no point can be within its limit, the largest float32 if all may be."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    present = row < rows
    limit = tl.load(limits_ptr + row, mask=present, other=0.0).to(tl.float64)
    shift = tl.load(shift_ptr + row, mask=present, other=0.0)  # [ROWS]
    threshold, bounded = threshold_of(limit, shift, tl.load(scale_ptr), d, METRIC, DOUBLE)
    threshold = tl.minimum(round_up(tl.where(bounded, threshold, 0.0)), _LARGEST)
    threshold = tl.where(bounded, threshold, _LARGEST)
    if not METRIC.descending:
        threshold = tl.where(limit < 0, -float("inf"), threshold)  # values are not negative
    tl.store(thresholds_ptr + row, threshold, mask=present)


@triton.jit(do_not_specialize=["segments", "room"])
def listed_parts_kernel(
    # inputs: the screen's lists
    entries_ptr, counts_ptr,
    # input: where each row's parts begin in the output; outputs: the parts if FILL, else their number per row
    begins_ptr, parts_ptr, totals_ptr,
    # shapes
    segments, room,
    # constants
    FILL: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Count the parts that a row's list marks or, with FILL, write them. An entry is 16 * group + part mask."""
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((), tl.int32)
    if FILL:
        parts_ptr += tl.load(begins_ptr + row)
    for start in tl.range(0, segments * room, TILE):
        slot = start + tl.arange(0, TILE)
        segment = slot // room
        inside = slot < segments * room
        count = tl.load(counts_ptr + row * segments + segment, mask=inside, other=0)
        present = inside & (slot - segment * room < count)
        entry = tl.load(entries_ptr + row * segments * room + slot, mask=present, other=0)  # [TILE]
        mask = entry & 15
        wanted = (mask & 1) + ((mask >> 1) & 1) + ((mask >> 2) & 1) + (mask >> 3)
        if FILL:
            place = total + tl.cumsum(wanted, 0) - wanted
            group = entry >> 4
            for part in tl.static_range(4):
                bit = (mask >> part) & 1
                number = part_number(group, part)
                tl.store(parts_ptr + place, number, mask=bit > 0)
                place += bit
        total += tl.sum(wanted, 0)
    if not FILL:
        tl.store(totals_ptr + row, total)


@triton.jit(do_not_specialize=["groups"])
def lowest_parts_kernel(
    # inputs: the minimum of every group of eight points, and thresholds
    minima_ptr, thresholds_ptr,
    # input and outputs as for listed_parts_kernel
    begins_ptr, parts_ptr, totals_ptr,
    # shapes
    groups,
    # constants
    FILL: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Count the groups of a row whose minimum is at or below its threshold or, with FILL, write them."""
    row = tl.program_id(0).to(tl.int64)
    threshold = tl.load(thresholds_ptr + row)
    total = tl.zeros((), tl.int32)
    if FILL:
        parts_ptr += tl.load(begins_ptr + row)
    for start in tl.range(0, groups, TILE):
        group = start + tl.arange(0, TILE)
        lowest = tl.load(minima_ptr + row * groups + group, mask=group < groups, other=float("inf"))  # [TILE]
        wanted = (lowest <= threshold).to(tl.int32)
        if FILL:
            place = total + tl.cumsum(wanted, 0) - wanted
            tl.store(parts_ptr + place, group, mask=wanted > 0)
        total += tl.sum(wanted, 0)
    if not FILL:
        tl.store(totals_ptr + row, total)


@triton.jit(do_not_specialize=["d", "units", "n", "first_block"])
def within_kernel(
    # inputs: widened queries and norms; points; limits; the row and the parts of each block; each row's own point
    queries_ptr, norms_ptr, points_ptr, limits_ptr, rows_ptr, parts_ptr, own_ptr,
    # outputs: [block][CHUNK] values and ids, -1 for a point beyond the limit; the count of points within the limit
    values_ptr, ids_ptr, hits_ptr,
    # shapes
    d, query_width, units, n, first_block,
    # constants
    METRIC: tl.constexpr, TERM: tl.constexpr, DOUBLE: tl.constexpr, LISTED: tl.constexpr, HAS_OWN: tl.constexpr,
    LATER: tl.constexpr, GROUP: tl.constexpr, POINT_TILE: tl.constexpr, UNIT: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """Find the points of a block within its row's limit; write their count and, if LISTED, the points.

    A row does not find itself and, if LATER, finds only points after it.
    """
    BLOCK: tl.constexpr = CHUNK // GROUP
    here = tl.program_id(0).to(tl.int64)
    block = first_block + here
    row = tl.load(rows_ptr + block)
    numbers = tl.arange(0, CHUNK)
    ids, present = candidates(parts_ptr, own_ptr, block, numbers, BLOCK, BLOCK, n, False, GROUP, POINT_TILE)
    if HAS_OWN:
        own = tl.load(own_ptr + row)
        if LATER:
            present = present & (ids > own)
        else:
            present = present & (ids != own)
    row_ptrs = points_ptr + ids.to(tl.int64) * (units.to(tl.int64) * UNIT)
    query_ptrs = queries_ptr + row * query_width + tl.arange(0, 16)
    values = values_of(row_ptrs, query_ptrs, norms_ptr, row, present, d, METRIC, TERM, UNIT, CHUNK)
    if not DOUBLE:
        values = values.to(tl.float32)
    limit = tl.load(limits_ptr + row)
    if METRIC.descending:
        inside = present & (values >= limit)
    else:
        inside = present & (values <= limit)
    tl.store(hits_ptr + block, tl.sum(inside.to(tl.int32), 0))
    if LISTED:
        tl.store(values_ptr + here * CHUNK + numbers, values)
        tl.store(ids_ptr + here * CHUNK + numbers, tl.where(inside, ids, -1))


@triton.jit
def pack_hits_kernel(
    # inputs: values and ids [block][CHUNK], and the position of each block's points in the output
    values_ptr, ids_ptr, places_ptr,
    # outputs: values and ids of all blocks, one block after another
    out_values_ptr, out_ids_ptr,
    # constants
    CHUNK: tl.constexpr,
):  # fmt: skip
    """Copy the hits of a block (its points within the limit) to the output, from the block's position on."""
    block = tl.program_id(0).to(tl.int64)
    at = block * CHUNK + tl.arange(0, CHUNK)
    ids = tl.load(ids_ptr + at)  # [CHUNK]
    hit = (ids >= 0).to(tl.int32)
    place = tl.load(places_ptr + block) + tl.cumsum(hit, 0) - hit
    tl.store(out_values_ptr + place, tl.load(values_ptr + at), mask=hit > 0)
    tl.store(out_ids_ptr + place, ids, mask=hit > 0)
