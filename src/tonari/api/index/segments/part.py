"""A segment of an Index, with the ids of its points and a record of the removed ones."""

from __future__ import annotations

import sys
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.api.index.segments.segment import Segment
from tonari.cuda.streams import Written
from tonari.sparse.rows import SparseRows

Ids = npt.NDArray[np.int64]


class Part:
    """A segment with the ids of its points, ascending, and the row numbers of its removed points.

    `written` is the CUDA event that marks the end of writing the points; searches on other streams wait for it.
    """

    segment: Any  # a Segment, or a SparseSegment

    def __init__(
        self, segment: Any, ids: Ids | None = None, gone: Ids | None = None, written: Written | None = None
    ) -> None:
        self.segment, self._ids, self.written = segment, ids, written
        self.gone = np.empty(0, np.int64) if gone is None else gone
        self.n = segment.n - len(self.gone)
        self._there: dict[Any, Any] = {}

    @cached_property
    def ids(self) -> Ids:
        """The ids of all rows of the segment, removed ones included: stored ids, or row numbers."""
        return np.arange(self.segment.n) if self._ids is None else self._ids

    @property
    def are_rows(self) -> bool:
        """Whether results need no conversion.

        This is the case if ids are row numbers, no point was removed, and no stream has to wait for the points.
        """
        return (
            self.written is None
            and not len(self.gone)
            and (self._ids is None or bool(self._ids[-1] == self.segment.n - 1))
        )

    def rows_of(self, ids: Ids) -> Ids:
        """Return the row number of each id; -1 if the part does not contain the id, or its point was removed."""
        rows = np.minimum(np.searchsorted(self.ids, ids), self.segment.n - 1)
        return np.where((self.ids[rows] == ids) & ~np.isin(rows, self.gone), rows, -1)

    def copied(self) -> Part:
        """Return a copy that shares the points and the packed data; data that is prepared later is not shared."""
        return Part(self.segment.__copy__(), self._ids, self.gone, self.written)

    def names(self, dtype: Any, device: Any = None) -> Any:
        """Return the ids of all rows, in host memory or as a tensor on a device; -1 for removed points."""
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
        """The row numbers of the points that are not removed."""
        return np.delete(np.arange(self.segment.n), self.gone)

    @cached_property
    def mask_left(self) -> npt.NDArray[np.bool_] | None:
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

    @cached_property
    def points_left(self) -> Any:
        """The original points that are not removed."""
        points = self.read().given
        if not len(self.gone):
            return points
        return points.take(self.left) if isinstance(points, SparseRows) else inputs.rows_at(points, self.left)

    def without(self, rows: Ids) -> Part:
        """Return this part, with further rows marked as removed."""
        return Part(self.segment, self._ids, np.union1d(self.gone, rows), self.written) if len(rows) else self

    def read(self) -> Segment:
        """Return the segment, and let the current CUDA stream wait until its points are written."""
        if self.written is not None:
            self.written.read()
        segment: Segment = self.segment
        return segment
