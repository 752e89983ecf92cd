"""Choose the groups to refine from the lists of groups below a threshold, and bound the scores of all other points."""

from __future__ import annotations

from typing import Any

from tonari.cuda.launch import launch
from tonari.exact.cuda import tuning
from tonari.exact.cuda.rows.tiles import Lists
from tonari.select.cuda.dispatch import k_smallest
from tonari.select.cuda.survivors import power_of_two, warps_for


def choose_groups(lists: Lists, thresholds: Any, width: int, room: int) -> tuple[Any, Any]:
    """Choose, for each row, the `width` listed groups with the smallest minima, and return their marked parts.

    A group is a few points that share one lower bound, their minimum; a part is LEAST_GROUP of them, and is marked if
    it may contain a candidate.

    Parameters
    ----------
    thresholds : float32 (rows,)
        The thresholds of the lists.
    width : int
        The number of listed groups that are chosen.
    room : int
        The largest number of parts per row. If there are more, the parts of groups with the smallest minima are
        returned.

    Returns
    -------
    int32 (rows, room), float32 (rows,)
        The chosen parts, padded with -1 (as group numbers of groups of LEAST_GROUP points); and a lower bound on the
        scores of all other points, -inf if a segment of the list was too short.
    """
    import torch

    from tonari.exact.cuda.kernels.refine.candidate_groups import chosen_kernel

    rows, capacity = lists.values.shape
    segments = lists.counts.shape[1]
    width = min(width, capacity - 1)
    lowest = k_smallest(lists.values, width + 1)
    groups = torch.empty((rows, room), dtype=torch.int32, device=thresholds.device)
    following = torch.empty(rows, dtype=torch.float32, device=thresholds.device)
    launch(
        chosen_kernel,
        rows,
        {
            "values_ptr": lowest.values,
            "indices_ptr": lowest.indices,
            "entries_ptr": lists.entries,
            "counts_ptr": lists.counts,
            "thresholds_ptr": thresholds,
            "groups_ptr": groups,
            "following_ptr": following,
            "width": width,
            "capacity": capacity,
            "segments": segments,
            "segment_room": lists.room,
            "room": room,
        },
        constants={
            "WIDTH": power_of_two(width),
            "SEGMENTS": max(tuning.SEGMENTS, power_of_two(segments)),
            "ROOM": power_of_two(room),
        },
        warps=warps_for(power_of_two(width), False),
    )
    return groups, following
