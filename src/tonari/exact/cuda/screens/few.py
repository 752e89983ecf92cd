"""The first attempt at a few queries, in two launches; the usual fifteen launches would take longer than their work.

    screen_few    queries -> their bounds and float64 rows; minima of groups of GROUP points, and of tiles
    finish_few    minima -> groups -> exact values -> the k best, in order, and whether they are proved

A search of one query among 100,000 points of 128 columns reads 26 MB of packed points, which takes an H100 about 6 µs,
but each of the usual fifteen launches takes 2 to 4 µs, gaps included. Answers are the same, bit for bit, as those of
the usual launches. Rows that the certificate does not prove are searched again as usual.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

from tonari.core.results.neighbors import Neighbors
from tonari.cuda.launch import Launch
from tonari.exact.cuda import tuning
from tonari.exact.cuda.plan import CudaPlan
from tonari.exact.cuda.refine.groups import STEP, load_unit
from tonari.exact.cuda.rows.groups import LEAST_GROUP, POINT_TILE, group_count
from tonari.exact.cuda.rows.pack import largest_element
from tonari.exact.cuda.rows.tiles import multiprocessors
from tonari.exact.cuda.screens.widths import usual_width
from tonari.metrics import cuda_terms, get_metric
from tonari.select.cuda.survivors import power_of_two

FLAGS = 3  # number of flags of the points, and of the queries; see tonari.inputs.check_flags
GROUP = LEAST_GROUP  # number of points that share a minimum
PER_TILE = POINT_TILE // GROUP
CANDIDATES_BYTES = 1 << 16  # upper bound on the bytes of a query's lists, values and float64 row


class Measured(NamedTuple):
    """The output of the first launch for m queries, which the second launch reads.

    Attributes
    ----------
    minima, tile_minima : float32 tensors of shape (m * tiles * PER_TILE,) and (m * tiles,)
        The smallest scores of groups and of tiles.
    norm, rest : float32 tensors of shape (m,)
    shift : float64 tensor of shape (m,)
        Terms of the certificate; see ``pack.PackedQueries``.
    widened : float64 tensor of shape (m, any)
        The queries, padded to whole steps; see ``refine.widen``.
    norms : float64 tensor of shape (m,), or None
        Norms of the queries, for angular metrics.
    counters : int32 tensor of shape (m,)
        Counters for the programs of the second launch; initially zeros.
    """

    minima: Any
    tile_minima: Any
    norm: Any
    rest: Any
    shift: Any
    widened: Any
    norms: Any
    counters: Any


class Few:
    """The buffers and the two launches of a search for a few queries.

    Parameters
    ----------
    queries : tensor of shape (m, d)
        The queries of the first search, or others of the same shape, dtype, stride and alignment.
    prepared : DevicePoints
    plan : CudaPlan
        A plan with ``few``, for at least m queries.
    flags : int64 tensor of shape (3,)
        Output: lowered to the first rows of queries that searches refuse, as by ``pack_queries``.
    first : int
        The row number that the flags report for ``queries[0]``.
    state : int64 tensor of shape (6 + m,)
        Output: flags of the points and of the queries, and 1 for each row that is certified as exact. May be in pinned
        memory.

    Attributes
    ----------
    screen, finish : Launch
        The two launches, in this order.
    found : Neighbors
        Output, unless `finish` gets other tensors.
    proved : uint8 tensor of shape (m,)
        Output: 1 for each row that is certified as exact, else 0.
    """

    def __init__(self, queries: Any, prepared: Any, plan: CudaPlan, flags: Any, state: Any, *, first: int = 0) -> None:
        import torch

        m, d = queries.shape
        device, packed = prepared.points.device, prepared.copies.packed(plan.precisions[0])
        double = torch.float64 in (queries.dtype, prepared.points.dtype)
        empty = functools.partial(torch.empty, device=device)
        tiles = len(packed.e1)
        measured = Measured(
            minima=empty(m * tiles * PER_TILE, dtype=torch.float32),
            tile_minima=empty(m * tiles, dtype=torch.float32),
            norm=empty(m, dtype=torch.float32),
            rest=empty(m, dtype=torch.float32),
            shift=empty(m, dtype=torch.float64),
            widened=empty((m, -(-d // STEP) * STEP), dtype=torch.float64),
            norms=empty(m, dtype=torch.float64) if get_metric(plan.metric).angular else None,
            counters=empty(m, dtype=torch.int32),
        )
        distances = empty((m, plan.k), dtype=torch.float64 if double else torch.float32)
        self.found = Neighbors(distances, empty((m, plan.k), dtype=torch.int32))
        self.proved = empty(m, dtype=torch.uint8)
        self.screen = _screen(queries, prepared, packed, plan, measured, flags, first)
        self.finish = _finish(prepared, packed, plan, measured, flags, self.found, self.proved, state)


def _screen(
    queries: Any, prepared: Any, packed: Any, plan: CudaPlan, measured: Measured, flags: Any, first: int
) -> Launch:
    import torch

    from tonari.exact.cuda.kernels.screens.few import screen_few_kernel

    metric, device = get_metric(plan.metric), queries.device
    (m, d), width, tiles = queries.shape, packed.values.shape[1], len(packed.e1)
    block, unit = min(tuning.FEW_BLOCK, power_of_two(width)), load_unit(queries)
    room_for = min(tuning.FEW_MOST_PROGRAMS, tuning.FEW_PROGRAMS * multiprocessors(device))
    each = -(-tiles // max(1, room_for - 1))
    programs = 1 + -(-tiles // each)
    return Launch(
        screen_few_kernel,
        programs,
        {
            "rows_ptr": queries,
            "centre_ptr": prepared.form.centre,
            "scale_ptr": prepared.form.scale,
            "values_ptr": packed.values,
            "low_ptr": packed.low,
            "packed_ptr": torch.empty(programs * power_of_two(m) * width, dtype=torch.float16, device=device),
            "minima_ptr": measured.minima,
            "tile_minima_ptr": measured.tile_minima,
            "norm_ptr": measured.norm,
            "rest_ptr": measured.rest,
            "shift_ptr": measured.shift,
            "widened_ptr": measured.widened,
            "norms_ptr": measured.norms,
            "counters_ptr": measured.counters,
            "flags_ptr": flags,
            "m": m,
            "d": d,
            "stride": queries.stride(0),
            "units": queries.stride(0) // unit,
            "wide_steps": measured.widened.shape[1] // STEP,
            "width": width,
            "blocks": -(-width // block),
            "tiles": tiles,
            "each": each,
            "first_row": first,
        },
        constants={
            "METRIC": metric.before_root,
            "LIMIT": min(largest_element(d, plan.precisions[0], points=False), metric.largest),
            "STEP": math.gcd(d, queries.stride(0), 4),
            "UNIT": unit,
            "M": power_of_two(m),
            "POINTS": POINT_TILE,
            "GROUP": GROUP,
            "BLOCK": block,
            "WHOLE": width % block == 0,
            "V": 4,
        },
        warps=tuning.FEW_SCREEN_WARPS,
        registers=tuning.FEW_SCREEN_REGISTERS,
        fused=not metric.angular,  # norms must equal those of the reference bit by bit
    )


def _finish(
    prepared: Any,
    packed: Any,
    plan: CudaPlan,
    measured: Measured,
    flags: Any,
    found: Neighbors,
    proved: Any,
    state: Any,
) -> Launch:
    import torch

    from tonari.exact.cuda.kernels.screens.few_finish import finish_few_kernel

    points, device, value_dtype = prepared.points, proved.device, found.distances.dtype
    m, tiles, wanted = len(proved), len(packed.e1), usual_width(plan.k)
    slots, room = 2 * power_of_two(wanted), power_of_two(wanted + wanted // 2)
    parts = room * GROUP // tuning.FEW_CHUNK
    listed = torch.empty(m * parts * (slots + room), dtype=torch.int32, device=device)
    unit, surveyed = load_unit(points), max(tuning.FEW_CHUNKS, power_of_two(tiles))
    return Launch(
        finish_few_kernel,
        m * parts,
        {
            "tile_minima_ptr": measured.tile_minima,
            "minima_ptr": measured.minima,
            "e1_ptr": packed.e1,
            "e2_ptr": packed.e2,
            "norm_ptr": measured.norm,
            "rest_ptr": measured.rest,
            "shift_ptr": measured.shift,
            "scale_ptr": prepared.form.scale,
            "widened_ptr": measured.widened,
            "norms_ptr": measured.norms,
            "points_ptr": points,
            "point_flags_ptr": prepared.flags,
            "query_flags_ptr": flags,
            "tiles_ptr": listed[: m * parts * slots],
            "groups_ptr": listed[m * parts * slots :],
            "values_ptr": torch.empty(m * room * GROUP, dtype=value_dtype, device=device),
            "counters_ptr": measured.counters,
            "distances_ptr": found.distances,
            "indices_ptr": found.indices,
            "proved_ptr": proved,
            "state_ptr": state,
            "n": len(points),
            "tiles": tiles,
            "d": points.shape[1],
            "query_width": measured.widened.shape[1],
            "units": points.stride(0) // unit,
            "width": wanted,
            "k": plan.k,
            "parts": parts,
        },
        constants={
            "METRIC": get_metric(plan.metric),
            "TERM": cuda_terms(plan.metric).term,
            "DOUBLE": value_dtype == torch.float64,
            "UNIT": unit,
            "TILES": surveyed,
            "SLOTS": slots,
            "ROOM": room,
            "CHUNK": tuning.FEW_CHUNK,
            "CHUNKS": tuning.FEW_CHUNKS,
            "GROUP": GROUP,
            "POINT_TILE": POINT_TILE,
            "RANKED": tuning.FEW_RANKED,
        },
        warps=tuning.FEW_WARPS if surveyed <= tuning.FEW_SURVEYED else 2 * tuning.FEW_WARPS,
        registers=tuning.FEW_REGISTERS,
        fused=False,
    )


def few_row_bytes(n: int, d: int) -> int:
    """Return an upper bound on the bytes of all buffers for one query: minima, packed copies and candidates."""
    minima = 4 * (group_count(n, GROUP) + group_count(n, POINT_TILE))
    return minima + 2 * tuning.FEW_MOST_PROGRAMS * (d + POINT_TILE) + CANDIDATES_BYTES


def search_few(queries: Any, prepared: Any, plan: CudaPlan, flags: Any, *, first: int) -> tuple[Neighbors, Any]:
    """Make one attempt to search a few queries (:class:`Few`); return neighbours, and a flag per query: 1 if exact."""
    import torch

    state = torch.empty(2 * FLAGS + len(queries), dtype=torch.int64, device=queries.device)
    few = Few(queries, prepared, plan, flags, state, first=first)
    few.screen()
    few.finish()
    return few.found, few.proved
