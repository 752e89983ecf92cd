"""What an Index holds at one moment: segments of points in ascending order of id. It never changes; updates make anew.

    add        a segment of the new rows is put at the end
    remove     up to _AROUND removed points of a segment are searched around; with more, it is packed without them
    both       neighbouring segments are merged until each, but for small ones, is at least twice as long as the next

So there are at most about log2(n / _SMALL) + 2 segments. A row is packed again only when its segment merges, after
which that is at least half again as long: O(log n) times in all, plus up to _SMALL rows for each call of add. Removing
a point packs n / _AROUND rows at most, on average.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.api import joining
from tonari.api.segment import Segment
from tonari.core.neighbors import Neighbors, index_dtype
from tonari.core.progress import ProgressLike
from tonari.core.radius_neighbors import RadiusNeighbors, nearest_of
from tonari.cuda.streams import Written

_AROUND = 64  # removed points that a search of a segment finds in vain
_SMALL = 1024  # rows that are packed faster than a search visits one more segment

Ids = npt.NDArray[np.int64]
Make = Callable[[Any, str | None], Segment]  # of checked rows, by a method if one is named


class Part:
    """A segment, the ids of its points, ascending, and which of its rows are removed.

    Points on CUDA that an update put together are `written` by it, and may be searched on other streams.
    """

    def __init__(
        self, segment: Segment, ids: Ids | None = None, gone: Ids | None = None, written: Written | None = None
    ) -> None:
        self.segment, self._ids, self.written = segment, ids, written
        self.gone = np.empty(0, np.int64) if gone is None else gone
        self.n = segment.n - len(self.gone)
        self._there: dict[Any, Any] = {}

    @cached_property
    def ids(self) -> Ids:
        """The ids of all rows of the segment; row numbers if none were given, which take no memory until needed."""
        return np.arange(self.segment.n) if self._ids is None else self._ids

    @property
    def are_rows(self) -> bool:
        """Whether all points are left, ids are row numbers, and no stream has to wait."""
        return (
            self.written is None
            and not len(self.gone)
            and (self._ids is None or bool(self._ids[-1] == self.segment.n - 1))
        )

    def rows_of(self, ids: Ids) -> Ids:
        """Return the rows of points that are left, -1 for those that are not here."""
        rows = np.minimum(np.searchsorted(self.ids, ids), self.segment.n - 1)
        return np.where((self.ids[rows] == ids) & ~np.isin(rows, self.gone), rows, -1)

    def copied(self) -> Part:
        """Share the points and what is packed, but not what later searches add to it."""
        return Part(self.segment.__copy__(), self._ids, self.gone, self.written)

    def names(self, dtype: Any, device: Any = None) -> Any:
        """Return the ids, -1 where removed, in host memory or as a tensor on a device."""
        known = self._there.get((dtype, device))
        if known is None:
            known = self.ids.astype(dtype)
            known[self.gone] = -1
            if device is not None:
                tensor = sys.modules["torch"].from_numpy(known).to(device)
                known = tensor, Written(tensor)
            self._there[dtype, device] = known
        if device is None:
            return known
        known[1].read()
        return known[0]

    @property
    def left(self) -> Ids:
        """Rows of the segment that are not removed."""
        return np.delete(np.arange(self.segment.n), self.gone)

    @property
    def ids_left(self) -> Ids:
        """The ids of points that are not removed."""
        return np.delete(self.ids, self.gone)

    @cached_property
    def points_left(self) -> Any:
        """The points that are not removed."""
        points = self.read().points
        return taken(points, self.left) if len(self.gone) else points

    def without(self, rows: Ids) -> Part:
        """Remove more rows."""
        return Part(self.segment, self._ids, np.union1d(self.gone, rows), self.written) if len(rows) else self

    def read(self) -> Segment:
        """Return the segment; the current stream waits until its points are written."""
        if self.written is not None:
            self.written.read()
        return self.segment


class State:
    """All parts of an Index, and the id that the next point gets.

    `only` is the one segment of an Index in which ids are row numbers: its own answers are those of the Index.
    """

    def __init__(self, parts: Sequence[Part], next_id: int) -> None:
        self.parts, self.next_id = tuple(parts), next_id
        self.n = sum(part.n for part in self.parts)
        first = self.parts[0]
        self.only = first.segment if len(self.parts) == 1 and first.are_rows else None

    @property
    def largest(self) -> Segment:
        """The longest segment."""
        return max((part.segment for part in self.parts), key=lambda segment: segment.n)

    @property
    def sample(self) -> Any:
        """Some of the points, for their kind and dtype."""
        return self.parts[0].segment.points

    @cached_property
    def ids(self) -> Ids:
        """The ids of all points, ascending."""
        ids = np.concatenate([part.ids_left for part in self.parts])
        ids.setflags(write=False)
        return ids

    @cached_property
    def points(self) -> Any:
        """All points, in ascending order of id."""
        return joined([part.points_left for part in self.parts])

    def with_rows(self, points: Any, make: Make) -> State:
        """Add checked rows, which nobody else changes."""
        ids = np.arange(self.next_id, self.next_id + len(points))
        return State(balanced([*self.parts, (points, ids)], make), self.next_id + len(points))

    def without_ids(self, ids: Ids, make: Make) -> State:
        """Remove points; raise ValueError if an id is not there, or if nothing would be left."""
        ordered = np.sort(ids)
        if len(twice := ordered[1:][ordered[1:] == ordered[:-1]]):
            raise ValueError(f"ids: {twice[0]} is given twice; name each point once")
        rows = [part.rows_of(ids) for part in self.parts]
        if len(unknown := ids[np.max(rows, axis=0) < 0]):
            what = "was removed already" if 0 <= unknown[0] < self.next_id else "was never given"
            raise ValueError(f"ids: {unknown[0]} {what}; expected ids of points that are left, see Index.ids")
        if len(ids) == self.n:
            raise ValueError(f"ids: these are all {self.n} points; an Index keeps at least one, make another one")
        kept = [part.without(here[here >= 0]) for part, here in zip(self.parts, rows, strict=True)]
        return State(balanced([part for part in kept if part.n], make), self.next_id)

    def compacted(self, make: Make) -> State:
        """Pack all points as one segment; nothing is done if they are."""
        if len(self.parts) == 1 and not len(self.parts[0].gone):
            return self
        return State([_part(make(self.points, None), self.ids)], self.next_id)

    def copied(self) -> State:
        """Share the points and what is packed, but not what later searches add to it."""
        return State([part.copied() for part in self.parts], self.next_id)

    def search(self, rows: Any, k: int, threads: int | None, metric: str, progress: ProgressLike) -> Neighbors:
        """Find the k nearest points of checked rows, k at most n."""
        found, largest = [], self.largest
        for part in self.parts:
            segment, asked = part.read(), min(k + len(part.gone), part.segment.n)
            shown = progress if segment is largest else False
            near = segment.search(rows, asked, threads, shown, around=True)
            device = None if isinstance(near.indices, np.ndarray) else near.indices.device
            found.append(joining.named(near, part.names(index_dtype(self.next_id), device), min(k, part.n)))
        return joining.join(found, k, metric)

    def within(
        self,
        rows: Any,
        limits: npt.NDArray[Any],
        most: int | None,
        threads: int | None,
        metric: str,
        progress: ProgressLike,
    ) -> RadiusNeighbors:
        """Find all points within the limits of checked rows, or the `most` nearest of them, in host memory."""
        found, largest = [], self.largest
        for part in self.parts:
            segment, asked = part.read(), None if most is None else most + len(part.gone)
            shown = progress if segment is largest else False
            near = segment.within(rows, limits, asked, threads, shown, around=True)
            found.append((near, part.names(index_dtype(self.next_id))))
        both = joining.join_within(found, metric)
        return both if most is None else nearest_of(both, most)

    def count(
        self, rows: Any, limits: npt.NDArray[Any], threads: int | None, make: Make, progress: ProgressLike
    ) -> Any:
        """Count the points within the limits of checked rows: those of each segment, less those removed from it."""
        largest, total = self.largest, None
        for part in self.parts:
            shown = progress if part.segment is largest else False
            counts = part.read().count(rows, limits, threads, shown)
            if len(part.gone):
                removed = make(taken(part.segment.points, part.gone), "exact")
                counts = counts - removed.count(rows, limits, threads, False)
            total = counts if total is None else total + counts
        return total


def balanced(pieces: Sequence[Part | tuple[Any, Ids]], make: Make) -> list[Part]:
    """Merge neighbouring pieces, the last of which may be rows and ids, until the parts are few; see the top."""
    groups: list[list[Any]] = []
    for piece in pieces:
        groups.append([piece])
        while len(groups) > 1 and _length(groups[-2]) < max(_SMALL, 2 * _length(groups[-1])):
            groups[-2:] = [groups[-2] + groups[-1]]
    return [_made(group, make) for group in groups]


def _length(group: list[Any]) -> int:
    return sum(piece.n if isinstance(piece, Part) else len(piece[1]) for piece in group)


def _made(group: list[Any], make: Make) -> Part:
    first = group[0]
    if len(group) == 1 and isinstance(first, Part) and len(first.gone) <= _AROUND:
        return first
    rows = [piece.points_left if isinstance(piece, Part) else piece[0] for piece in group]
    ids = [piece.ids_left if isinstance(piece, Part) else piece[1] for piece in group]
    return _part(make(joined(rows), None), np.concatenate(ids))


def _part(segment: Segment, ids: Ids) -> Part:
    return Part(segment, ids, None, None if isinstance(segment.points, np.ndarray) else Written(segment.points))


def joined(rows: list[Any]) -> Any:
    """Put rows one below the other, where they are."""
    if len(rows) == 1:
        return rows[0]
    return np.concatenate(rows) if isinstance(rows[0], np.ndarray) else sys.modules["torch"].cat(rows)


def taken(points: Any, rows: Ids) -> Any:
    """Copy some rows, where they are."""
    if isinstance(points, np.ndarray):
        return points[rows]
    return points[inputs.like("torch", rows).to(points.device)]
