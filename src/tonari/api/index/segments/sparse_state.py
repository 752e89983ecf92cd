"""The state of an Index of sparse rows: segments in ascending order of id. An update makes a new SparseState.

A SparseState has those methods of ``State`` (state.py) that an Index calls. The kernel itself skips filtered and
removed points, so a search finds only k points in each segment.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from tonari.api import tuning
from tonari.api.index.segments import joining
from tonari.api.index.segments.balancing import groups_of
from tonari.api.index.segments.part import Ids
from tonari.api.index.segments.state import refuse_absent
from tonari.api.sparse.among import Among
from tonari.api.sparse.answers import changed_rows
from tonari.core.errors import BudgetExceeded
from tonari.core.process.progress import ProgressLike
from tonari.core.results.neighbors import Neighbors, index_dtype
from tonari.core.results.radius_neighbors import RadiusNeighbors, nearest_of, none_within
from tonari.filters.rules import Rules
from tonari.methods.call import Call
from tonari.methods.repeated import Kept, Key
from tonari.metrics.changes.change import Change
from tonari.sparse.rows import SparseRows, joined_rows, no_sparse_rows

if TYPE_CHECKING:
    import scipy.sparse


class SparseKind(NamedTuple):
    """Properties that all segments of an Index of sparse rows share.

    Attributes
    ----------
    call : Call
        Its metric compares the rows.
    change : Change, optional
        The transformation of rows by weights, which multiplies columns by factors.
    none : SparseRows
        A matrix of 0 rows with the number of columns and the dtype of the points.
    """

    call: Call
    change: Change | None
    none: SparseRows

    @classmethod
    def of(cls, rows: SparseRows, call: Call, change: Change | None) -> SparseKind:
        """Return the kind of an Index whose points have the columns and the dtype of these rows."""
        return cls(call, change, no_sparse_rows(rows.d, rows.dtype))


class SparseSegment:
    """Sparse rows that are prepared once and never change.

    Parameters
    ----------
    given : SparseRows
        The caller's rows, at least one, before their transformation.
    kind : SparseKind
    taken : int
        The bytes of the Index's memory that other segments use.

    Raises
    ------
    BudgetExceeded
    """

    def __init__(self, given: SparseRows, kind: SparseKind, taken: int = 0) -> None:
        self.given, self.n = given, len(given)
        self.compared = given if kind.change is None else changed_rows(kind.change, given, "points")
        self._also = 0 if self.compared is given else given.copied_bytes
        self.among = Among(self.compared, kind.call.metric, kind.call.threads, kind.call.memory, False)
        one = self.compared.take(np.zeros(1, np.int64))
        whole = dataclasses.replace(self.among, taken=taken + self._also)
        prepared, plan = whole.ready(one, whole.problem(one, 1))
        self.among = dataclasses.replace(self.among, prepared=prepared)
        self.held_bytes = plan.packed_bytes + self.compared.copied_bytes + self._also

    def searched(self, call: Call, progress: ProgressLike, left: npt.NDArray[np.bool_] | None, taken: int) -> Among:
        """Return the rows, without the removed ones, as points for a search."""
        taken += self._also
        return dataclasses.replace(self.among, threads=call.threads, progress=progress, left=left, taken=taken)


class SparsePart:
    """A segment with the ids of its points, ascending, and the row numbers of its removed points."""

    def __init__(self, segment: SparseSegment, ids: Ids, gone: Ids | None = None) -> None:
        self.segment, self.ids = segment, ids
        self.gone = np.empty(0, np.int64) if gone is None else gone
        self.n = segment.n - len(self.gone)

    @cached_property
    def left(self) -> npt.NDArray[np.bool_] | None:
        """A mask of the points that are not removed; None if no point was removed."""
        if not len(self.gone):
            return None
        mask = np.ones(self.segment.n, bool)
        mask[self.gone] = False
        return mask

    @property
    def ids_left(self) -> Ids:
        """The ids of points that are not removed."""
        return np.delete(self.ids, self.gone)

    @property
    def rows_left(self) -> SparseRows:
        """The caller's points that are not removed."""
        return self.segment.given if self.left is None else self.segment.given.take(np.flatnonzero(self.left))

    def rows_of(self, ids: Ids) -> Ids:
        """Return the row number of each id, or -1 if the part lacks the id or its point was removed."""
        rows = np.minimum(np.searchsorted(self.ids, ids), self.segment.n - 1)
        return np.where((self.ids[rows] == ids) & ~np.isin(rows, self.gone), rows, -1)

    def without(self, rows: Ids) -> SparsePart:
        """Return this part with more of its rows marked as removed."""
        return SparsePart(self.segment, self.ids, np.union1d(self.gone, rows)) if len(rows) else self


class SparseState:
    """All parts of an Index of sparse rows, and the id that the next point gets."""

    only = None  # see State; always None, as results always need a conversion to ids
    unchanged = ()  # see State; empty, as rows are copies that nobody else can change
    chosen = ("exact", 1)

    def __init__(self, parts: Sequence[SparsePart], next_id: int, kind: SparseKind) -> None:
        self.parts, self.next_id, self.kind = tuple(parts), next_id, kind
        self.n = sum(part.n for part in self.parts)
        self.kept: dict[Key, Kept] = {}  # stays empty, since only searches of arrays are cached

    @classmethod
    def of(cls, rows: SparseRows, ids: Ids, next_id: int, kind: SparseKind) -> SparseState:
        """Prepare rows as a single segment; the rows must not be changed afterwards."""
        return cls([SparsePart(SparseSegment(rows, kind), ids)] if len(rows) else [], next_id, kind)

    def check_unchanged(self) -> None:
        """Do nothing: the Index holds copies of rows, which cannot change."""

    @property
    def sample(self) -> SparseRows:
        """A matrix without rows that has the number of columns and the dtype of the points."""
        return self.kind.none

    @cached_property
    def ids(self) -> Ids:
        """The ids of all points, ascending."""
        ids = np.concatenate([np.empty(0, np.int64), *(part.ids_left for part in self.parts)])
        ids.setflags(write=False)
        return ids

    @property
    def rows(self) -> SparseRows:
        """All original points in ascending order of id."""
        rows = [part.rows_left for part in self.parts]
        return self.kind.none if not rows else rows[0] if len(rows) == 1 else joined_rows(rows)

    @property
    def points(self) -> scipy.sparse.csr_array:
        """All original points in ascending order of id, as an array of SciPy."""
        from scipy.sparse import csr_array

        rows = self.rows
        return csr_array((rows.values.copy(), rows.columns.copy(), rows.indptr.copy()), shape=rows.shape)

    def with_rows(self, rows: SparseRows) -> SparseState:
        """Return a state with further points: checked rows, which must not be changed afterwards."""
        ids = np.arange(self.next_id, self.next_id + len(rows))
        return SparseState(self._balanced([*self.parts, (rows, ids)]), self.next_id + len(rows), self.kind)

    def without_ids(self, ids: Ids) -> SparseState:
        """Return a state without the points `ids`; raise ValueError for an id that is absent."""
        rows = [part.rows_of(ids) for part in self.parts]
        refuse_absent(ids, rows, self.next_id)
        if not len(ids):
            return self
        remaining = [part.without(here[here >= 0]) for part, here in zip(self.parts, rows, strict=True)]
        return SparseState(self._balanced([part for part in remaining if part.n]), self.next_id, self.kind)

    def compacted(self) -> SparseState:
        """Return a state with all points packed as one segment; this state if it is one already."""
        if not self.parts or (len(self.parts) == 1 and not len(self.parts[0].gone)):
            return self
        return SparseState([self._packed(self.parts, 0)], self.next_id, self.kind)

    def copied(self) -> SparseState:
        """Return a new state that shares the prepared points."""
        return SparseState(self.parts, self.next_id, self.kind)

    def nearest(self, rows: SparseRows, k: int, rules: Rules | None, call: Call, taken: int = 0) -> Neighbors:
        """Find the k nearest points of checked rows, with k at most n; filters refer to ids.

        Other data than the Index and the rows takes `taken` bytes of the memory.
        """
        found = []
        for part, among in self._searched(call, taken):
            near = among.nearest(rows, min(k, part.n), None if rules is None else rules.part(None, part.ids))
            found.append(joining.allowed_ones(near, part.ids.astype(index_dtype(self.next_id))))
        return joining.join(found, k, call.metric)

    def within(
        self,
        rows: SparseRows,
        limits: npt.NDArray[np.floating],
        rules: Rules | None,
        most: int | None,
        call: Call,
        taken: int = 0,
    ) -> RadiusNeighbors:
        """Find all points within the radius of each checked row, or the `most` nearest; see :meth:`nearest`."""
        found = []
        for part, among in self._searched(call, taken):
            ours = None if rules is None else rules.part(None, part.ids)
            near = among.within(rows, limits, ours, most=most)
            found.append((near, part.ids.astype(index_dtype(self.next_id))))
        if len(found) == 1:  # one part needs no sorting: ids ascend with row numbers
            near, names = found[0]
            return near._replace(indices=names[near.indices])
        if not found:
            return none_within(self.next_id, limits.dtype, len(limits))
        both = joining.join_within(found, call.metric)
        return both if most is None else nearest_of(both, most)

    def count(
        self, rows: SparseRows, limits: npt.NDArray[np.floating], rules: Rules | None, call: Call, taken: int = 0
    ) -> npt.NDArray[np.int64]:
        """Count the points within the limits of checked rows; see :meth:`nearest`."""
        counts = np.zeros(len(limits), np.int64)
        for part, among in self._searched(call, taken):
            counts += among.count(rows, limits, None if rules is None else rules.part(None, part.ids))
        return counts

    def _searched(self, call: Call, taken: int) -> list[tuple[SparsePart, Among]]:
        """Return each part with its points for a search; the search of the longest part shows progress."""
        memory = taken + sum(part.segment.held_bytes for part in self.parts)
        longest = max((part.segment for part in self.parts), key=lambda segment: segment.n, default=None)
        return [
            (
                part,
                part.segment.searched(
                    call,
                    call.progress if part.segment is longest else False,
                    part.left,
                    memory - part.segment.held_bytes,
                ),
            )
            for part in self.parts
        ]

    def _balanced(self, pieces: Sequence[SparsePart | tuple[SparseRows, Ids]]) -> list[SparsePart]:
        """Merge adjacent segments until each is at least twice as long as the next; see balancing.py."""
        lengths = [piece.n if isinstance(piece, SparsePart) else len(piece[1]) for piece in pieces]
        groups = [[pieces[at] for at in group] for group in groups_of(lengths)]
        try:
            parts = list[SparsePart]()
            for group in groups:
                first = group[0]
                unchanged = isinstance(first, SparsePart) and len(first.gone) <= tuning.AROUND and len(group) == 1
                memory = sum(part.segment.held_bytes for part in parts)
                parts.append(first if unchanged and isinstance(first, SparsePart) else self._packed(group, memory))
        except BudgetExceeded:
            if len(groups) == 1:
                raise
            return [self._packed(pieces, 0)]
        return parts

    def _packed(self, group: Sequence[SparsePart | tuple[SparseRows, Ids]], held: int) -> SparsePart:
        """Pack adjacent pieces as one segment, while other segments use `held` bytes."""
        rows = [piece.rows_left if isinstance(piece, SparsePart) else piece[0] for piece in group]
        ids = [piece.ids_left if isinstance(piece, SparsePart) else piece[1] for piece in group]
        joined = rows[0] if len(rows) == 1 else joined_rows(rows)
        return SparsePart(SparseSegment(joined, self.kind, held), np.concatenate(ids))
