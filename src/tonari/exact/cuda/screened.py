"""What the screen of some rows leaves: all minima, or lists of the groups below a threshold."""

from __future__ import annotations

from typing import Any, NamedTuple

from tonari.exact.cuda.candidate_groups import choose_groups
from tonari.exact.cuda.groups import LEAST_GROUP
from tonari.exact.cuda.near import Near, near_listed, near_minima
from tonari.exact.cuda.screen import Lists
from tonari.select.cuda.dispatch import k_smallest


def listed_room(width: int) -> int:
    """Return the parts that are refined of the `width` lowest listed groups of a row."""
    return width + max(6, width // 4)


class AllMinima(NamedTuple):
    """The certified minimum of every group.

    Attributes
    ----------
    minima : float32 tensor of shape (rows, groups)
    group : int
        Points of a group.
    """

    minima: Any
    group: int

    def lowest(self, width: int) -> tuple[Any, Any]:
        """Return the `width` lowest groups of each row, and a lower bound on the scores of all other points.

        The bound is None if there are no other points.
        """
        groups = self.minima.shape[1]
        width = min(width, groups)
        lowest = k_smallest(self.minima, min(width + 1, groups))
        return lowest.indices[:, :width], lowest.values[:, width] if width < groups else None

    def near(self, scores: Any, room: int) -> Near:
        """Return the groups at or below each row's score."""
        return near_minima(self.minima, scores, min(room, self.minima.shape[1]))


class Listed(NamedTuple):
    """The groups at or below each row's threshold, in parts of LEAST_GROUP points.

    Attributes
    ----------
    lists : Lists
    thresholds : float32 tensor of shape (rows,)
    """

    lists: Lists
    thresholds: Any

    @property
    def group(self) -> int:
        """Points of a part."""
        return LEAST_GROUP

    def lowest(self, width: int) -> tuple[Any, Any]:
        """Return parts of the `width` lowest groups of each row, and a lower bound on all other scores."""
        return choose_groups(self.lists, self.thresholds, width, listed_room(width))

    def near(self, scores: Any, room: int) -> Near:
        """Return the parts at or below each row's score."""
        return near_listed(self.lists, self.thresholds, scores, room)
