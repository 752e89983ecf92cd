"""The screen of codes by products of int8 that contain the squared lengths: minima of all groups, or lists.

The interface and the division of work among programs are the same as in screens/all_minima.py.
"""

from __future__ import annotations

from typing import Any

from tonari.cuda.launch import launch
from tonari.exact.cuda import tuning
from tonari.exact.cuda.rows.codes import FoldedCodes
from tonari.exact.cuda.rows.groups import LEAST_GROUP, LISTED, POINT_TILE
from tonari.exact.cuda.rows.tiles import Lists, Split, blocks_of, fewest_parts, is_hopper, lists_for, room_of
from tonari.exact.cuda.screens.all_minima import launch_on_hopper, output_of, split_for_hopper


def screen_folded(queries: Any, points: FoldedCodes, group: int, minima: Any) -> None:
    """Write, for each query, the lowest score of every group of points.

    Parameters
    ----------
    queries : int8 tensor of shape (m, width)
    points : FoldedCodes
    group : int
        Points per group, one of ``groups.GROUP_SIZES``.
    minima : float32 (m, group_count(n, group))
        Output; groups of padding have scores above all others.
    """
    _launch(queries, points, _split_of(len(queries), points), group, minima=minima)


def screen_folded_below(queries: Any, points: FoldedCodes, thresholds: Any, capacity: int, least_slots: int) -> Lists:
    """List, for each query, the groups whose lowest score is at or below the query's threshold.

    Parameters
    ----------
    queries, points : as for :func:`screen_folded`
    thresholds : float32 (m,)
    capacity, least_slots : as for :func:`tonari.exact.cuda.screens.all_minima.screen_below`
    """
    m, device = len(queries), queries.device
    on_hopper = tuning.FOLDED_HOPPER and m > tuning.HOPPER_ROWS and is_hopper(device)
    split = split_for_hopper(m, points.n, device) if on_hopper else _split_of(m, points)
    room = max(room_of(split, points.n, capacity), -(-least_slots // (4 * split.parts)))
    lists = lists_for(m, split, room, device)
    if on_hopper:
        _launch_on_hopper(queries, points, split, thresholds, lists)
    else:
        _launch(queries, points, split, LEAST_GROUP, thresholds=thresholds, lists=lists)
    return lists


def _split_of(m: int, points: FoldedCodes) -> Split:
    rows = tuning.FOLDED_ROWS if m > 64 else 64 if m > 16 else 16
    tiles = -(-points.n // POINT_TILE)
    device, programs = points.values.device, tuning.FOLDED_PROGRAMS
    return fewest_parts(rows, POINT_TILE, -(-m // rows), tiles, device, programs=programs)


def _launch(
    queries: Any,
    points: FoldedCodes,
    split: Split,
    group: int,
    *,
    minima: Any = None,
    thresholds: Any = None,
    lists: Lists | None = None,
) -> None:
    from tonari.exact.cuda.kernels.screens.folded import screen_folded_kernel

    m, width = queries.shape
    if m == 0:
        return
    launch(
        screen_folded_kernel,
        split.row_tiles * split.parts,
        {
            "queries": blocks_of(queries, split.rows, width),
            "points": blocks_of(points.values, split.columns, width),
            "thresholds_ptr": thresholds,
            **output_of(lists, minima, points.n, group),
            "m": m,
            "tiles": split.blocks,
            "row_tiles": split.row_tiles,
            "tiles_per_program": split.each,
            "offset": points.offset,
        },
        constants={
            "ROWS": split.rows,
            "COLUMNS": split.columns,
            "GROUP": group,
            "LISTED": LISTED,
            "DENSE": lists is None,
            "STAGES": 2 if width > 192 else tuning.FOLDED_STAGES,
        },
        warps=8 if split.rows == 128 and width > 192 else tuning.FOLDED_WARPS,
    )


def _launch_on_hopper(queries: Any, points: FoldedCodes, split: Split, thresholds: Any, lists: Lists) -> None:
    terms = dict.fromkeys(("low_ptr", "e1_ptr", "e2_ptr", "norm_ptr", "rest_ptr"))
    terms |= {**lists.output, "thresholds_ptr": thresholds, "offset": points.offset}
    launch_on_hopper(queries, points.values, split, terms, folded=True)
