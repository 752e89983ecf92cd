"""The rules of a call, which decide which points each query may find."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.core.rows.allowed import Allowed
from tonari.core.rows.slices import cut
from tonari.filters import tuning
from tonari.filters.excluded import Excluded, distinct
from tonari.filters.shared import SharedMask, true_places

Ids = npt.NDArray[np.int64]


def are_among(numbers: Ids, some: Ids) -> npt.NDArray[np.bool_]:
    """Return, for each number, whether it is one of the ascending and distinct numbers in `some`.

    If there are many numbers, each one is first looked up by its lowest bits in a table of bytes, because a binary
    search takes 30 times as long.

    >>> are_among(np.array([7, 2, 5]), np.array([2, 7])).tolist()
    [True, True, False]
    """
    if tuning.SEARCHED_NUMBERS * len(numbers) <= len(some):
        return _are_found(numbers, some)
    low = (1 << (tuning.TABLE_BYTES * len(some)).bit_length()) - 1
    table, found = np.zeros(low + 1, bool), np.zeros(len(numbers), bool)
    for block in cut(len(some), tuning.TABLE_BLOCK):
        table[some[block] & low] = True
    for block in cut(len(numbers), tuning.TABLE_BLOCK):
        places = np.flatnonzero(table.take(numbers[block] & low)) + block.start
        found[places] = _are_found(numbers.take(places), some)
    return found


def _are_found(numbers: Ids, some: Ids) -> npt.NDArray[np.bool_]:
    """Return, for each number, whether it is one of `some`, by binary searches."""
    if not len(some):
        return np.zeros(len(numbers), bool)
    found: npt.NDArray[np.bool_] = some[np.minimum(np.searchsorted(some, numbers), len(some) - 1)] == numbers
    return found


@dataclass(frozen=True, kw_only=True, eq=False)
class Rules:
    """The rules of a call with m queries and n points; a query may find a point if all rules allow it.

    A call may be divided into searches among some points for some queries. The rules for such a search have `rows` and
    `ids`, and their methods take and return positions: indices into the queries and points of this search.

    Attributes
    ----------
    m, n : int
        The number of queries and points of the whole call. All arrays below except `rows` and `ids` cover these.
    shared : SharedMask of n points, optional
        The points that any query may find.
    mask : bool array of shape (m, n), or uint8 of shape (m, ceil(n / 8)), optional
        The points that each query may find; in bytes, point j is bit j % 8, counted from the lowest, of byte j // 8.
    excluded : Excluded, optional
        Pairs that are not allowed.
    query_groups, point_groups : int64 arrays of shape (m,) and (n,), optional
        The group of each query and of each point.
    same : bool
        Whether a query may find only points of its own group; otherwise only points of other groups.
    own : bool
        Whether the queries are the points, and no point may find itself.
    window : int, optional
        Query i may find point j only if i and j differ by more than this number.
    rows, ids : int64 arrays, optional
        The row numbers of the queries and points of the current search, ascending; None for all.
    """

    m: int
    n: int
    shared: SharedMask | None = None
    mask: npt.NDArray[Any] | None = None
    excluded: Excluded | None = None
    query_groups: Ids | None = None
    point_groups: Ids | None = None
    same: bool = True
    own: bool = False
    window: int | None = None
    rows: Ids | None = None
    ids: Ids | None = None

    @property
    def grouped(self) -> bool:
        """Whether a query may find only points of its own group."""
        return self.query_groups is not None and self.same

    @property
    def by_pairs(self) -> bool:
        """Whether different queries may find different points by a rule other than groups="same"."""
        other = self.query_groups is not None and not self.same
        return self.mask is not None or self.excluded is not None or self.window is not None or other

    def without(self, *names: str) -> Rules:
        """Return a copy without the rules in the attributes `names`, which all points of the search satisfy already."""
        left_out: dict[str, Any] = dict.fromkeys(names)
        return dataclasses.replace(self, **left_out)

    def part(self, rows: Ids | None, ids: Ids | None) -> Rules:
        """Return the rules for a search of only some queries and points, given as positions; None for all."""
        rows = rows if self.rows is None or rows is None else self.rows[rows]
        ids = ids if self.ids is None or ids is None else self.ids[ids]
        return dataclasses.replace(self, rows=self.rows if rows is None else rows, ids=self.ids if ids is None else ids)

    def allowed(self, rows: Ids, ids: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Return whether each query in `rows` may find each point in `ids`; the two arrays are broadcast together."""
        kept = ids >= 0
        at = np.maximum(ids, 0)
        at = at if self.ids is None else self.ids.take(at)
        asked = rows if self.rows is None else self.rows.take(rows)
        if self.shared is not None:
            kept &= self.shared.host.take(at)
        if self.mask is not None:
            kept &= self._in_mask(self.mask, asked, at)
        if self.query_groups is not None and self.point_groups is not None:
            own = self.query_groups.take(asked) == self.point_groups.take(at)
            kept &= own if self.same else ~own
        if self.own:
            kept &= asked != at
        if self.window is not None:
            kept &= abs(asked - at) > self.window
        if self.excluded is not None and asked.size:
            pairs = self.excluded.pairs
            first, last = np.searchsorted(pairs, np.array([asked.min(), asked.max() + 1]) * self.n)
            kept &= ~are_among((asked * self.n + at).ravel(), pairs[first:last]).reshape(kept.shape)
        return kept

    @staticmethod
    def _in_mask(mask: npt.NDArray[Any], asked: Ids, at: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Return a mask's entries for the queries `asked` and the points `at`, which are broadcast together."""
        column = at if mask.dtype == np.bool_ else at >> 3
        if mask.flags.c_contiguous:  # one flat index is twice as fast as a pair of indices
            entries = mask.reshape(-1).take(asked * mask.shape[1] + column)
        else:
            entries = mask[asked, column]
        kept: npt.NDArray[np.bool_] = entries
        return kept if mask.dtype == np.bool_ else (entries >> (at & 7).astype(np.uint8) & 1).astype(bool)

    def as_allowed(self, *, copies: bool = True) -> Allowed | None:
        """Return the rules in the form that CPU kernels read; None if this would require a copy of a mask.

        If `copies` is true, a tree may copy the rules in its own order: `COPIED_POINT` bytes per point and thread.
        """
        source = self.mask if self.shared is None else self.shared.host[None]
        mask: npt.NDArray[np.uint8] | None = None
        if source is not None:
            if (self.shared is not None and self.mask is not None) or not source.flags.c_contiguous:
                return None
            mask = source.view(np.uint8)
        packed = source is not None and source.dtype != np.bool_
        groups = self.query_groups, self.point_groups
        listed, begins = (None, None) if self.excluded is None else (self.excluded.ids, self.excluded.indptr)
        rows, ids = (None if x is None else np.ascontiguousarray(x, np.int64) for x in (self.rows, self.ids))
        window = max(-1 if self.window is None else min(self.window, self.n), int(self.own) - 1)
        native = _native.Allowed(
            self.m, self.n, mask, packed, *groups, self.same, listed, begins, window, copies, rows, ids
        )
        return Allowed(native, rows)

    def table(self, rows: Ids) -> npt.NDArray[np.bool_]:
        """Return a mask of the allowed points for the queries `rows`, of shape (len(rows), number of points)."""
        asked = rows if self.rows is None else self.rows[rows]
        at = slice(None) if self.ids is None else self.ids
        if self.mask is None:
            kept = np.ones((len(asked), self.n if self.ids is None else len(self.ids)), bool)
        else:
            kept = self.mask[asked]
            if kept.dtype != np.bool_:
                kept = np.unpackbits(kept, axis=1, count=self.n, bitorder="little").view(bool)
            kept = kept if self.ids is None else kept[:, self.ids]
        if self.shared is not None:
            kept &= self.shared.host[at]
        if self.query_groups is not None and self.point_groups is not None and not self.same:
            kept &= self.query_groups[asked][:, None] != self.point_groups[at]
        which, places = self.without("window")._excluded_places(rows)
        kept[which, places] = False
        if self.window is not None:
            for row, begin, end in zip(kept, *(each.tolist() for each in self._near(asked)), strict=True):
                row[begin:end] = False
        return kept

    def lists(self, rows: Ids, *, allowed: bool) -> tuple[Ids, Ids]:
        """Return the positions of the allowed points of the queries `rows`, or of their forbidden points.

        Returns
        -------
        places, bounds : int64 arrays
            The points of query ``rows[i]`` are ``places[bounds[i]:bounds[i + 1]]``, ascending.
        """
        if allowed or not self.only_excluded:
            table = self.table(rows)
            places, n = np.flatnonzero(table if allowed else np.logical_not(table, out=table)), table.shape[1]
            bounds = np.searchsorted(places, np.arange(len(rows) + 1) * n)
            return np.remainder(places, max(1, n), out=places), bounds
        queries = rows if self.rows is None else self.rows[rows]
        others = self.own or self.window is not None or self.ids is not None
        if self.excluded is None or others or not len(queries) or (np.diff(queries) != 1).any():
            which, places = self._excluded_places(rows)
            return np.ascontiguousarray(places), np.searchsorted(which, np.arange(len(rows) + 1))
        bounds = np.searchsorted(self.excluded.pairs, np.arange(queries[0], queries[-1] + 2) * self.n)
        pairs = self.excluded.pairs[bounds[0] : bounds[-1]]
        return pairs - np.repeat(queries * self.n, np.diff(bounds)), bounds - bounds[0]

    @property
    def only_excluded(self) -> bool:
        """Whether the only rules, except for groups="same", are excluded pairs, the window and `own`."""
        return self.mask is None and self.shared is None and (self.query_groups is None or self.same)

    def held_bytes(self) -> int:
        """Return an estimate of the bytes that the rules take, for excluded pairs, for each query and for each point.

        The bytes for a point include the order of points by group, and the copy that a tree makes of groups or a mask.
        """
        pairs = 0 if self.excluded is None else len(self.excluded.ids)
        entry = 64 if self.query_groups is not None else 8 if self.shared is not None else 0
        return 24 * pairs + 128 * self.m + entry * self.n

    def _excluded_places(self, rows: Ids) -> tuple[Ids, Ids]:
        """Return the pairs that `excluded`, `window` and `own` forbid: indices into `rows`, and positions of points."""
        asked = rows if self.rows is None else self.rows[rows]
        which = points = np.empty(0, np.int64)
        if self.excluded is not None:
            excluded = self.excluded.pairs
            begins, ends = (np.searchsorted(excluded, (asked + more) * self.n) for more in (0, 1))
            lengths = ends - begins
            which = np.repeat(np.arange(len(asked)), lengths)
            if bool((np.diff(asked) == 1).all()):
                pairs = excluded[begins[0] : ends[-1]] if len(asked) else which
            else:
                ahead = np.cumsum(lengths) - lengths
                pairs = excluded.take(np.repeat(begins - ahead, lengths) + np.arange(len(which)))
            points = pairs - np.repeat(asked * self.n, lengths)
        if self.own or self.window is not None:
            begins, ends = np.maximum(asked - (self.window or 0), 0), np.minimum(asked + (self.window or 0) + 1, self.n)
            lengths = ends - begins
            of = np.repeat(np.arange(len(asked)), lengths)
            near = np.arange(len(of)) + np.repeat(begins - (np.cumsum(lengths) - lengths), lengths)
            pairs = np.concatenate([which * self.n + points, of * self.n + near])
            which, points = np.divmod(distinct(pairs), self.n)
        if self.ids is None or not len(which):
            return which, points
        if not len(self.ids):
            return which[:0], points[:0]
        places = np.minimum(np.searchsorted(self.ids, points), len(self.ids) - 1)
        here = self.ids[places] == points
        return which[here], places[here]

    def _near(self, asked: Ids) -> tuple[Ids, Ids]:
        """Return, for each query, the positions at which its window of points begins and ends."""
        assert self.window is not None
        first, last = asked - self.window, asked + self.window + 1
        if self.ids is None:
            return np.clip(first, 0, self.n), np.clip(last, 0, self.n)
        return np.searchsorted(self.ids, first), np.searchsorted(self.ids, last)

    def forbidden_bounds(self, room: int) -> tuple[Ids, Ids]:
        """Return lower and upper bounds of the number of forbidden points for each query of the current search.

        The lower bound is the number that the strictest rule forbids; the upper bound is the sum over all rules, which
        may overlap. `room` is the largest number of bytes of a block of mask entries that are counted together.
        """
        rows = np.arange(self.m) if self.rows is None else self.rows
        n = self.n if self.ids is None else len(self.ids)
        most = np.full(len(rows), int(self.own), np.int64)
        least = np.zeros(len(rows), np.int64)
        if self.shared is not None:
            most += (one := n - len(self.open_places()))
            least = np.maximum(least, one)
        if self.mask is not None:
            most += (each := n - self._counts(rows, room))
            least = np.maximum(least, each)
        if self.excluded is not None:
            most += np.diff(self.excluded.indptr)[rows]
        if self.window is not None:
            begins, ends = self._near(rows)
            most += (each := ends - begins)
            least = np.maximum(least, each)
        if self.query_groups is not None and self.point_groups is not None and not self.same:
            groups = np.sort(self.point_groups if self.ids is None else self.point_groups[self.ids])
            own = self.query_groups[rows]
            most += (each := np.searchsorted(groups, own, "right") - np.searchsorted(groups, own, "left"))
            least = np.maximum(least, each)
        return least, np.minimum(most, n)

    def longest(self) -> int:
        """Return the number of points in the longest list to check for a query: all points, or the largest group."""
        n = self.n if self.ids is None else len(self.ids)
        if not self.grouped or not n:
            return n
        assert self.point_groups is not None
        groups = self.point_groups if self.ids is None else self.point_groups[self.ids]
        return int(np.unique(groups, return_counts=True)[1].max())

    def open_places(self) -> Ids:
        """Return the positions of the points that `shared` allows, which must be set."""
        assert self.shared is not None
        return self.shared.host_places if self.ids is None else true_places(self.shared.host[self.ids])

    def own_places(self) -> Ids | None:
        """Return the position of each query among the points, or -1 if it is not among them.

        Return None if queries may find themselves.
        """
        if not self.own:
            return None
        rows = np.arange(self.m) if self.rows is None else self.rows
        if self.ids is None:
            return rows
        if not len(self.ids):
            return np.full(len(rows), -1)
        at = np.minimum(np.searchsorted(self.ids, rows), len(self.ids) - 1)
        return np.where(self.ids[at] == rows, at, -1)

    def _counts(self, rows: Ids, room: int) -> Ids:
        """Return the number of points that `mask` allows for each of the queries `rows`."""
        assert self.mask is not None
        counts, step = np.empty(len(rows), np.int64), max(1, room // (3 * self.n))
        for begin in range(0, len(rows), step):
            part = self.mask[rows[begin : begin + step]]
            if part.dtype != np.bool_:
                part = np.unpackbits(part, axis=1, count=self.n, bitorder="little")
            part = part if self.ids is None else part[:, self.ids]
            # counting row by row is ten times as fast as with an axis argument
            counts[begin : begin + step] = [np.count_nonzero(row) for row in part]
        return counts
