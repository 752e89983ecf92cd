"""The screen by matrix products: certified minima of all groups of points, or of the groups below a threshold.

Group minima of the low-precision product are computed in registers, so the (queries x points) scores never reach
memory. The output is one float32 number per query and group, or a list for each query of the groups below its
threshold. With thresholds from a sample of the points, these lists are very short (matsumoto2015).
"""

from __future__ import annotations

from typing import Any

from tonari.cuda.launch import launch
from tonari.exact.cuda import tuning
from tonari.exact.cuda.rows.groups import LEAST_GROUP, LISTED, POINT_TILE, group_count
from tonari.exact.cuda.rows.tiles import (
    RESIDENT_BYTES,
    Lists,
    Split,
    blocks_of,
    fewest_parts,
    is_hopper,
    lists_for,
    multiprocessors,
    room_of,
    row_bytes,
    step_of,
    swizzled,
)
from tonari.exact.cuda.screens.wide_rows import held_tiling, launch_held


def screen(queries: Any, points: Any, rows: slice, group: int, minima: Any) -> None:
    """Write, for each query, the certified minimum of every group: a lower bound on the scores of its points.

    Parameters
    ----------
    queries : PackedQueries
    points : PackedPoints
    rows : slice of the queries
    group : int
        Points per group, one of ``groups.GROUP_SIZES``.
    minima : float32 (rows, group_count(n, group))
        Output; +inf for groups of padding.
    """
    _launch(queries, points, rows, group, minima=minima)


def screen_below(
    queries: Any, points: Any, rows: slice, thresholds: Any, capacity: int, *, least_slots: int = 0
) -> Lists:
    """List, for each query, the groups whose certified minimum is at or below the query's threshold.

    Parameters
    ----------
    queries, points, rows : as for :func:`screen`
    thresholds : float32 (rows,)
    capacity : int
        The largest number of entries expected for a row. Lists are somewhat longer, because their segments fill
        unevenly. If `capacity` is the number of all groups of LISTED points, no entry can be missing.
    least_slots : int
        The smallest number of slots in a row's list.

    Returns
    -------
    Lists
    """
    m, device, length = len(thresholds), thresholds.device, row_bytes(queries.values)
    tiling = held_tiling(length, device)
    split = _split_for_lists(m, points.n, length, device)
    segments = 4 * split.parts
    room = max(room_of(split, points.n, capacity), -(-least_slots // segments))
    lists = lists_for(m, split, room, device)
    if tiling is not None:
        terms = queries.errors(rows) | {"thresholds_ptr": thresholds}
        launch_held(queries.values[rows], points, tiling, split, lists, terms)
    elif _is_for_hopper(m, length, device):
        _launch_on_hopper(queries, points, rows, thresholds, lists, split)
    else:
        _launch(queries, points, rows, LEAST_GROUP, thresholds=thresholds, lists=lists)
    return lists


def slots_of(m: int, n: int, length: int, capacity: int, device: Any) -> int:
    """Return the number of slots in each row's list, for n points and m packed queries of `length` bytes."""
    split = _split_for_lists(m, n, length, device)
    return 4 * split.parts * room_of(split, n, capacity)


def _split_for_lists(m: int, n: int, length: int, device: Any) -> Split:
    tiling = held_tiling(length, device)
    if tiling is not None:
        return tiling.split(m, n, 0, device)
    return split_for_hopper(m, n, device) if _is_for_hopper(m, length, device) else _split_of(m, n, length, device)


def _split_of(m: int, n: int, length: int, device: Any) -> Split:
    if length <= RESIDENT_BYTES:
        rows, columns = 128 if m > 64 else 64 if m > 16 else 16, POINT_TILE
    else:
        rows, columns = (128, 256) if m > 64 else (64, 128)
    return fewest_parts(rows, columns, -(-m // rows), -(-n // columns), device, programs=tuning.RESIDENT_PROGRAMS)


def output_of(lists: Lists | None, minima: Any, n: int, group: int) -> dict[str, Any]:
    """Return the output arguments of a kernel, which writes either lists or the minima of all groups."""
    if lists is None:
        names = ("values_ptr", "entries_ptr", "counts_ptr")
        lists_out = {**dict.fromkeys(names), "segments": 0, "room": 0}
        return lists_out | {"minima_ptr": minima, "groups": group_count(n, group), "minima_stride": minima.stride(0)}
    return lists.output | {"minima_ptr": None, "groups": group_count(n, group), "minima_stride": 0}


def _launch(
    queries: Any,
    points: Any,
    rows: slice,
    group: int,
    *,
    minima: Any = None,
    thresholds: Any = None,
    lists: Lists | None = None,
) -> None:
    q = queries.values[rows]
    (m, width), length = q.shape, row_bytes(q)
    if m == 0:
        return
    split = _split_of(m, points.n, length, q.device)
    common = {
        **points.terms,
        **queries.errors(rows),
        **output_of(lists, minima, points.n, group),
        "thresholds_ptr": thresholds,
        "m": m,
        "row_tiles": split.row_tiles,
    }
    constants = {"ROWS": split.rows, "COLUMNS": split.columns, "GROUP": group, "LISTED": LISTED, "DENSE": lists is None}
    if length <= RESIDENT_BYTES:
        from tonari.exact.cuda.kernels.screens.all_minima import screen_kernel

        first = width if width & (width - 1) == 0 else step_of(q)
        more = width - first
        launch(
            screen_kernel,
            split.row_tiles * split.parts,
            {
                "queries": blocks_of(q, split.rows, first),
                "queries_more": blocks_of(q, split.rows, more) if more else None,
                "points": blocks_of(points.values, split.columns, first),
                "points_more": blocks_of(points.values, split.columns, more) if more else None,
                **common,
                "tiles": split.blocks,
                "tiles_per_program": split.each,
            },
            constants={**constants, "WIDTH": first, "MORE": more, "STAGES": 2 if length > 192 else 3},
            warps=8 if split.rows == 128 and length > 192 else 4,
        )
    else:
        from tonari.exact.cuda.kernels.screens.all_minima_wide import screen_wide_kernel

        step = step_of(q)
        launch(
            screen_wide_kernel,
            split.row_tiles * split.parts,
            {
                "queries": blocks_of(q, split.rows, step),
                "points": blocks_of(points.values, split.columns, step),
                **common,
                "n": points.n,
                "width": width,
                "blocks": split.blocks,
                "blocks_per_program": split.each,
            },
            constants={**constants, "STEP": step, "POINT_TILE": POINT_TILE, "STAGES": 4},
            warps=8 if split.rows == 128 else 4,
        )


def _is_for_hopper(m: int, length: int, device: Any) -> bool:
    return m > tuning.HOPPER_ROWS and length == tuning.HOPPER_BYTES and is_hopper(device)


def split_for_hopper(m: int, n: int, device: Any) -> Split:
    """Divide work among the programs of Hopper's kernels; a multiprocessor runs one program."""
    row_tiles, tiles = -(-m // tuning.HOPPER_ROWS), -(-n // POINT_TILE)
    slots = multiprocessors(device)
    most = max(1, min(-(-tuning.MOST_ROUNDS * slots // row_tiles), tiles // (2 * tuning.HOPPER_TILES)))
    rounds = {count: -(-row_tiles * count // slots) * -(-tiles // count) for count in range(1, most + 1)}
    parts = min(rounds, key=lambda count: (rounds[count], count))
    each = -(-tiles // (parts * tuning.HOPPER_TILES)) * tuning.HOPPER_TILES
    return Split(tuning.HOPPER_ROWS, POINT_TILE, row_tiles, tiles, each, -(-tiles // each))


def _launch_on_hopper(queries: Any, points: Any, rows: slice, thresholds: Any, lists: Lists, split: Split) -> None:
    terms = {**points.terms, **queries.errors(rows), **lists.output, "thresholds_ptr": thresholds, "offset": 0}
    launch_on_hopper(queries.values[rows], points.values, split, terms, folded=False)


def launch_on_hopper(queries: Any, points: Any, split: Split, terms: dict[str, Any], *, folded: bool) -> None:
    """Launch the kernel for Hopper on packed queries and points; `terms` are its further arguments."""
    from tonari.exact.cuda.kernels.screens.all_minima_hopper import screen_hopper_kernel

    m, width = queries.shape
    half = tuning.HOPPER_ROWS // 2
    launch(
        screen_hopper_kernel,
        split.row_tiles * split.parts,
        {
            "queries": swizzled(queries, half, width),
            "points": swizzled(points, POINT_TILE, width),
            **terms,
            "m": m,
            "tiles": split.blocks,
            "row_tiles": split.row_tiles,
            "tiles_per_program": split.each,
        },
        constants={
            "HALF": half,
            "COLUMNS": POINT_TILE,
            "WIDTH": width,
            "STAGES": tuning.HOPPER_STAGES,
            "TILES": tuning.HOPPER_TILES,
            "FOLDED": folded,
        },
        warps=8,
    )
