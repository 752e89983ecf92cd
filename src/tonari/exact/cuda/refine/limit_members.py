"""Find the points that contracted rows do not rule out: first groups of the screen, then points in these groups.

Contracted distances never exceed the original distances. A point whose contracted distance exceeds a row's limit
therefore cannot be in its answer.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tonari.cuda.launch import launch
from tonari.exact.cuda import tuning
from tonari.exact.cuda.refine.groups import load_unit
from tonari.exact.cuda.rows.groups import POINT_TILE
from tonari.exact.cuda.rows.tiles import Lists
from tonari.select.cuda.survivors import power_of_two


class Near(NamedTuple):
    """Lists of the groups, or of the points, that may be near each row.

    Attributes
    ----------
    numbers : int32 tensor of shape (rows, room)
        Group numbers, or row numbers of points, in any order; entries beyond `found` are undefined.
    found : int32 tensor of shape (rows,)
        The number of groups or points; if it exceeds `room`, only `room` of them are listed.
    """

    numbers: Any
    found: Any

    @property
    def room(self) -> int:
        """The largest number of groups or points listed for a row."""
        return int(self.numbers.shape[1])

    @property
    def whole(self) -> Any:
        """Whether each row lists all its groups or points, bool (rows,)."""
        import torch

        # A rehearsal skips the comparison, whose first use imports modules for seconds.
        if self.found.device.type == "meta":
            return self.found.new_empty(self.found.shape, dtype=torch.bool)
        return self.found <= self.room


def near_listed(lists: Lists, thresholds: Any, scores: Any, room: int) -> Near:
    """Return, for each row, its listed groups of LEAST_GROUP points whose minimum is at most ``scores[row]``.

    Parameters
    ----------
    thresholds, scores : float32 tensor of shape (rows,)
        If a row's score is above the threshold of its list, the list is not complete for that score.
    """
    from tonari.exact.cuda.kernels.refine.limit_members import near_listed_kernel

    rows, segments = lists.counts.shape
    near = _room_for(rows, room, scores.device)
    launch(
        near_listed_kernel,
        rows,
        {
            "values_ptr": lists.values,
            "entries_ptr": lists.entries,
            "counts_ptr": lists.counts,
            "thresholds_ptr": thresholds,
            "scores_ptr": scores,
            "groups_ptr": near.numbers,
            "found_ptr": near.found,
            "segments": segments,
            "segment_room": lists.room,
            "room": room,
        },
        constants={"SEGMENTS": power_of_two(segments), "TILE": tuning.LIMIT_SLOTS},
        warps=tuning.LIMIT_WARPS,
    )
    return near


def near_minima(minima: Any, scores: Any, room: int) -> Near:
    """Return, for each row, the groups whose minimum is at most the row's score; minima are float32 (rows, groups)."""
    from tonari.exact.cuda.kernels.refine.limit_members import near_minima_kernel

    rows, groups = minima.shape
    near = _room_for(rows, room, scores.device)
    launch(
        near_minima_kernel,
        rows,
        {
            "minima_ptr": minima,
            "scores_ptr": scores,
            "groups_ptr": near.numbers,
            "found_ptr": near.found,
            "groups": groups,
            "stride": minima.stride(0),
            "room": room,
        },
        constants={"TILE": tuning.LIMIT_SLOTS},
        warps=tuning.LIMIT_WARPS,
    )
    return near


def near_noted(values: Any, points: Any, counts: Any, thresholds: Any, scores: Any, room: int) -> Near:
    """Return, for each row of a graph, the points listed by earlier batches with values of at most the row's score.

    Parameters
    ----------
    values, points, counts, thresholds : as in :class:`tonari.exact.cuda.refine.group_lists.Noted`
    scores : float32 tensor of shape (rows,)
    """
    from tonari.exact.cuda.kernels.refine.mirror_notes import near_noted_kernel

    rows, capacity = values.shape
    near = _room_for(rows, room, scores.device)
    launch(
        near_noted_kernel,
        rows,
        {
            "values_ptr": values,
            "rows_ptr": points,
            "counts_ptr": counts,
            "thresholds_ptr": thresholds,
            "scores_ptr": scores,
            "near_ptr": near.numbers,
            "found_ptr": near.found,
            "room": capacity,
            "near_room": room,
        },
        constants={"TILE": tuning.LIMIT_SLOTS},
        warps=tuning.LIMIT_WARPS,
    )
    return near


def near_members(
    queries: Any,
    rows: Any,
    limits: Any,
    groups: Near,
    room: int,
    *,
    group: int,
    own: Any,
    beside: Near | None = None,
) -> Near:
    """List, for each query, the points of its groups whose contracted distance is within the query's limit.

    Parameters
    ----------
    queries : float32 tensor of shape (m, p), contiguous
        Contracted rows of the queries.
    rows : tensor of shape (n, p)
        Contracted rows of the points, float32, or codes, int8; marked codes (rows/codes.py) are not listed.
    limits : float32 tensor of shape (m,)
        Squared distances, with an allowance for the rounding of float32 sums of p squares.
    groups : Near
        The groups to examine, for each query.
    room : int
        The largest number of points listed for a query; shorter lists are padded with -1.
    group : int
        Points of a group.
    own : int64 tensor of shape (m,), or None
        For each query, the row number of the point to leave out.
    beside : Near, optional
        Lists of points with the same `room`, to which the points are appended, and which are returned. Default: new
        lists.
    """
    import torch

    from tonari.exact.cuda.kernels.refine.limit_members import near_members_kernel

    m, p = queries.shape
    unit = load_unit(rows)
    if beside is None:
        members = torch.full((m, room), -1, dtype=torch.int32, device=queries.device)
        found = torch.zeros(m, dtype=torch.int32, device=queries.device)
    else:
        members, found = beside
    parts = tuning.LIMIT_PARTS if m <= tuning.LIMIT_FEW else 1
    launch(
        near_members_kernel,
        m * parts,
        {
            "queries_ptr": queries,
            "rows_ptr": rows,
            "limits_ptr": limits,
            "groups_ptr": groups.numbers,
            "found_ptr": groups.found,
            "own_ptr": own,
            "members_ptr": members,
            "near_ptr": found,
            "p": p,
            "units": rows.stride(0) // unit,
            "n": len(rows),
            "room": groups.room,
            "members_room": room,
        },
        constants={
            "HAS_OWN": own is not None,
            "GROUP": group,
            "POINT_TILE": POINT_TILE,
            "UNIT": unit,
            "CHUNK": tuning.LIMIT_MEMBERS,
            "COLUMNS": min(tuning.LIMIT_COLUMNS, power_of_two(p)),
            "PARTS": parts,
        },
        warps=tuning.LIMIT_WARPS,
    )
    return Near(members, found)


def _room_for(rows: int, room: int, device: Any) -> Near:
    import torch

    return Near(*(torch.empty(shape, dtype=torch.int32, device=device) for shape in ((rows, room), (rows,))))
