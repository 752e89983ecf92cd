"""The output of a screen for some rows: all minima, the lowest minima, or lists of the groups below a threshold."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from tonari.cuda.launch import launch
from tonari.exact.cuda import tuning
from tonari.exact.cuda.refine.limit_members import Near, near_listed, near_minima, near_noted
from tonari.exact.cuda.rows.groups import LEAST_GROUP
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


def lowest_noted(values: Any, points: Any, counts: Any, thresholds: Any, width: int) -> tuple[Any, Any]:
    """Return each row's `width` listed points with the lowest values, and a lower bound on values of all other points.

    Parameters
    ----------
    values, points, counts, thresholds : as in :class:`tonari.exact.cuda.refine.group_lists.Noted`

    Returns
    -------
    int32 (rows, width), float32 (rows,)
        Missing points are -1. The lower bound is -inf if the list had too few slots.
    """
    import torch

    from tonari.exact.cuda.kernels.refine.mirror_notes import lowest_noted_kernel

    rows, room = values.shape
    width = min(width, room - 1)
    lowest = k_smallest(values, width + 1)
    chosen = torch.empty((rows, width), dtype=torch.int32, device=values.device)
    following = torch.empty(rows, dtype=torch.float32, device=values.device)
    launch(
        lowest_noted_kernel,
        rows,
        {
            "lowest_ptr": lowest.values,
            "slots_ptr": lowest.indices,
            "rows_ptr": points,
            "counts_ptr": counts,
            "thresholds_ptr": thresholds,
            "chosen_ptr": chosen,
            "following_ptr": following,
            "width": width,
            "room": room,
        },
        constants={"WIDTH": power_of_two(width)},
        warps=warps_for(power_of_two(width), False),
    )
    return chosen, following


Part: TypeAlias = "AllMinima | Lowest | Listed | Noted"
Screened: TypeAlias = "AllMinima | Lowest | Listed | Mirrored"


def listed_room(width: int) -> int:
    """Return the number of parts to refine per row, if the `width` listed groups with the lowest minima are chosen."""
    return width + max(6, width // 4)


class AllMinima(NamedTuple):
    """The output of a screen: for each row, a lower bound on the scores of every group of points.

    Attributes
    ----------
    minima : float32 tensor of shape (rows, groups)
    group : int
        Points of a group.
    """

    minima: Any
    group: int

    def lowest(self, width: int) -> tuple[Any, Any]:
        """Return each row's `width` groups with the smallest minima, and a lower bound on the scores of all others.

        The bound is None if there are no other groups.
        """
        groups = self.minima.shape[1]
        width = min(width, groups)
        lowest = k_smallest(self.minima, min(width + 1, groups))
        return lowest.indices[:, :width], lowest.values[:, width] if width < groups else None

    def near(self, scores: Any, room: int) -> Near:
        """Return, for each row, the groups with a minimum of at most ``scores[row]``; at most `room` groups."""
        return near_minima(self.minima, scores, min(room, self.minima.shape[1]))

    def kept(self, room: int) -> Lowest:
        """Return only the `room` + 1 groups with the smallest minima of each row, which take less memory."""
        lowest = k_smallest(self.minima, min(room + 1, self.minima.shape[1]))
        return Lowest(lowest.values, lowest.indices, self.group)


class Lowest(NamedTuple):
    """The groups with the smallest minima of each row, in ascending order of the minima.

    Attributes
    ----------
    minima : float32 tensor of shape (rows, count)
    groups : int32 tensor of shape (rows, count)
        The groups of these minima: all groups, or one more than later calls can request.
    group : int
        Points of a group.
    """

    minima: Any
    groups: Any
    group: int

    def lowest(self, width: int) -> tuple[Any, Any]:
        """Return each row's `width` groups with the smallest minima, and a lower bound on the scores of all others.

        The bound is None if there are no other groups.
        """
        return self.groups[:, :width], self.minima[:, width] if width < self.groups.shape[1] else None

    def near(self, scores: Any, room: int) -> Near:
        """Return, for each row, the groups in memory with a minimum of at most ``scores[row]``."""
        near = (self.minima <= scores[:, None]) & (self.minima < float("inf"))
        return Near(self.groups[:, :room].contiguous(), near.sum(1, dtype=self.groups.dtype))


class Listed(NamedTuple):
    """Lists of each row's groups with a minimum at or below its threshold; parts of LEAST_GROUP points are marked.

    Attributes
    ----------
    thresholds : float32 tensor of shape (rows,)
    """

    lists: Lists
    thresholds: Any

    @property
    def group(self) -> int:
        """The number of points in a part of a group."""
        return LEAST_GROUP

    def lowest(self, width: int) -> tuple[Any, Any]:
        """Return the marked parts of each row's `width` groups with the lowest minima; bound the scores of others."""
        return choose_groups(self.lists, self.thresholds, width, listed_room(width))

    def near(self, scores: Any, room: int) -> Near:
        """Return, for each row, the marked parts of the groups with a minimum of at most ``scores[row]``."""
        return near_listed(self.lists, self.thresholds, scores, room)

    def kept(self, room: int) -> Listed:
        """Return these lists unchanged.

        Unlike minima, the lists need not be reduced to `room` entries, so later calls of `near` may pass any `room`.
        """
        return self


class Noted(NamedTuple):
    """For each row of a graph, a list of points of earlier batches with scores at or below the row's threshold.

    The screens of those batches have made the lists.

    Attributes
    ----------
    values : float32 tensor of shape (rows, room)
        Lower bounds on the scores of the listed points; +inf beyond the last entry.
    points : int32 tensor of shape (rows, room)
        Row numbers of the listed points; undefined beyond the last entry.
    counts : int32 tensor of shape (rows,)
        The number of points to list; if it exceeds the room, entries are missing.
    thresholds : float32 tensor of shape (rows,)
    """

    values: Any
    points: Any
    counts: Any
    thresholds: Any

    @property
    def group(self) -> int:
        """The number of points that an entry stands for."""
        return 1

    def lowest(self, width: int) -> tuple[Any, Any]:
        """Return each row's `width` listed points with the lowest bounds, and a lower bound on the scores of others."""
        return lowest_noted(*self, width)

    def near(self, scores: Any, room: int) -> Near:
        """Return, for each row, the listed points with a lower bound of at most ``scores[row]``."""
        return near_noted(*self, scores, room)


class Mirrored(NamedTuple):
    """The output of a graph's screen for a batch: lists of points from the batch on, and lists of earlier points."""

    listed: Listed
    noted: Noted

    def kept(self, room: int) -> Mirrored:
        """Return this output unchanged.

        Unlike minima, the lists need not be reduced to `room` entries, so later calls of `near` may pass any `room`.
        """
        return self


def parts_of(screened: Screened) -> tuple[Part, ...]:
    """Return the parts of a screen's output: both lists for a graph, or the whole output as one part."""
    return (screened.listed, screened.noted) if isinstance(screened, Mirrored) else (screened,)
