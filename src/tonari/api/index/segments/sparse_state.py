"""The state of an Index of sparse rows: segments in ascending order of id. An update makes a new SparseState.

A SparseState has those methods of ``State`` (state.py) that an Index calls. The kernel itself skips filtered and
removed points, so a search finds only k points in each segment.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tonari.api.index.segments import joining
from tonari.api.index.segments.balancing import held_bytes, joined
from tonari.api.index.segments.part import Part
from tonari.api.index.segments.state import Parts
from tonari.api.sparse.among import Among
from tonari.api.sparse.answers import changed_rows
from tonari.core.process.progress import ProgressLike
from tonari.core.results.neighbors import Neighbors, index_dtype
from tonari.core.results.radius_neighbors import RadiusNeighbors, nearest_of, none_within
from tonari.filters.rules import Rules
from tonari.methods.call import Call
from tonari.metrics.transforms.change import Change
from tonari.sparse.rows import SparseRows

if TYPE_CHECKING:
    import scipy.sparse


class SparseSegment:
    """Sparse rows that are prepared once and never change; see :class:`SparsePart`.

    Parameters
    ----------
    given : SparseRows
        The caller's rows, at least one, before their transformation.
    call : Call
        Its metric compares the rows.
    change : Change, optional
        The transformation of rows by weights, which multiplies columns by factors.
    taken : int
        The bytes of the Index's memory that other segments use.

    Raises
    ------
    BudgetExceeded
    """

    def __init__(self, given: SparseRows, call: Call, change: Change | None, taken: int = 0) -> None:
        self.given, self.n = given, len(given)
        self.points = given if change is None else changed_rows(change, given, "points")
        self._also = 0 if self.points is given else given.copied_bytes
        self.among = Among(self.points, call.metric, call.threads, call.memory, False)
        one = self.points.take(np.zeros(1, np.int64))
        whole = dataclasses.replace(self.among, taken=taken + self._also)
        prepared, plan = whole.ready(one, whole.problem(one, 1))
        self.among = dataclasses.replace(self.among, prepared=prepared)
        self.held_bytes = plan.packed_bytes + self.points.copied_bytes + self._also

    def searched(self, call: Call, progress: ProgressLike, left: npt.NDArray[np.bool_] | None, taken: int) -> Among:
        """Return the rows, without the removed ones, as points for a search."""
        taken += self._also
        return dataclasses.replace(self.among, threads=call.threads, progress=progress, left=left, taken=taken)


class SparseState(Parts):
    """The parts of an Index of sparse rows; `sample` has no rows, but the columns and the dtype of the points."""

    only = None  # as in State; always None, because results always have to be converted to ids
    unchanged = ()  # as in State; always empty, because the rows are copies that nobody else can change
    chosen = ("exact", 1)

    def __init__(self, parts: Sequence[Part], next_id: int, sample: SparseRows) -> None:
        super().__init__(parts, next_id)
        self.sample = sample

    def with_parts(self, parts: Sequence[Part], next_id: int) -> SparseState:
        """Return a state of the same kind with other parts."""
        return SparseState(parts, next_id, self.sample)

    def check_unchanged(self) -> None:
        """Do nothing: the Index holds copies of rows, which cannot change."""

    @property
    def rows(self) -> SparseRows:
        """All original points in ascending order of id."""
        rows: SparseRows = joined([part.points_left for part in self.parts]) if self.parts else self.sample
        return rows

    @property
    def points(self) -> scipy.sparse.csr_array:
        """All original points in ascending order of id, as an array of SciPy."""
        from scipy.sparse import csr_array

        rows = self.rows
        return csr_array((rows.values.copy(), rows.columns.copy(), rows.indptr.copy()), shape=rows.shape)

    def copied(self) -> SparseState:
        """Return a new state that shares the prepared points."""
        return self.with_parts(self.parts, self.next_id)

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
        if len(found) == 1:  # the results of a single part need no sorting: ids ascend with row numbers
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

    def _searched(self, call: Call, taken: int) -> list[tuple[Part, Among]]:
        """Return each part with its points for a search; the search of the longest part shows progress."""
        memory = taken + held_bytes(self.parts)
        longest = max((part.segment for part in self.parts), key=lambda segment: segment.n, default=None)
        return [
            (
                part,
                part.segment.searched(
                    call,
                    call.progress if part.segment is longest else False,
                    part.mask_left,
                    memory - part.segment.held_bytes,
                ),
            )
            for part in self.parts
        ]
