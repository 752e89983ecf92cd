"""The methods of `tonari.Index` that change it: add, remove and compact."""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.api.index.base import IndexBase
from tonari.api.index.segments.sparse_state import SparseState
from tonari.api.index.segments.state import State
from tonari.core.process.floats import in_default_floats

_CHANGED_FILE = "change the file of the rows, and make the Index again"


class ChangingIndex(IndexBase):
    """The methods of :class:`tonari.Index` that change its points."""

    _updating: threading.Lock

    @in_default_floats
    @inputs.without_gradients("use tonari.search with differentiable=True")
    def add(self, points: Any) -> npt.NDArray[np.int64]:
        """Add points, and return their ids.

        Parameters
        ----------
        points : array of shape (any, d)
            Rows of the same dtype as the points, in the same memory (on CUDA, on the same device). They are copied.

        Returns
        -------
        int64 array of shape (rows,)
            The ids of the added points, in the order of the rows: consecutive, from the earlier :attr:`next_id` on.

        Raises
        ------
        TypeError, ValueError
            The rows have another dtype, device or number of columns, or contain NaN, infinity or values that the metric
            refuses. The Index is then unchanged.

        Notes
        -----
        Added rows form a segment of their own, which is merged with adjacent segments of similar length: an Index has
        O(log n) segments, each row is packed O(log n) times in all, and adding a few rows packs at most 1,024 others.
        """
        self._refuse_codes("add", _CHANGED_FILE)
        if isinstance(self._state, SparseState):
            return self._add_sparse(points)
        sample = self._state.sample
        shape = tuple(getattr(points, "shape", ()))
        if shape == (0, self.d) and inputs.dtype_of_rows(points) == inputs.name_of_dtype(sample):
            return np.empty(0, np.int64)
        if self._metric.bits and shape == (0, self._bits) and inputs.name_of_dtype(points) == "bool":
            return np.empty(0, np.int64)
        rows = self._given_rows(points, "points")
        sample = self._state.sample
        inputs.same_width(rows, sample)
        if self._metric.bits:
            inputs.same_bits(inputs.bool_columns(points), self._bits, "points")
        came, expected = (
            f"{inputs.name_of_dtype(x)} in {inputs.place_of(x, 'points') or 'host memory'}" for x in (rows, sample)
        )
        if came != expected:
            raise TypeError(f"points: {came}, expected {expected} as the other points; convert or copy them")
        compared = self._compared(rows, "points")  # refused here, where the rows still have the caller's row numbers
        if not self._metric.missing:  # for metrics of missing values, NaN is valid
            inputs.check_values(compared, "points", first=0, nonnegative=self._call.metric.nonnegative)
        host = isinstance(rows, np.ndarray)
        rows = np.array(rows, order="C") if host else rows.clone(memory_format=sys.modules["torch"].contiguous_format)
        with self._updating:
            now = self._state
            assert isinstance(now, State)
            now.check_unchanged()
            begin = now.next_id
            self._state = now.with_rows(rows, self._segment)
        return np.arange(begin, begin + len(rows))

    def _add_sparse(self, points: Any) -> npt.NDArray[np.int64]:
        """Add sparse points, and return their ids."""
        rows, sample = self._sparse_rows(points, "points"), self._state.sample
        if rows.d != sample.d:
            raise ValueError(f"points: have {rows.d} columns, but the points of this Index have {sample.d}")
        if rows.dtype != sample.dtype and len(rows):
            raise TypeError(f"points: {rows.dtype}, expected {sample.dtype} as the other points; convert them")
        self._compared(rows, "points")  # refused here, where the rows still have the caller's row numbers
        with self._updating:
            now = self._state
            assert isinstance(now, SparseState)
            if len(rows):
                self._state = now.with_rows(rows.owned(), self._segment)
        return np.arange(now.next_id, now.next_id + len(rows))

    @in_default_floats
    def remove(self, ids: Any) -> None:
        """Remove points by their ids.

        Parameters
        ----------
        ids : int, or integers of shape (any,)
            Ids of the points to remove, each once, in any order. All points may be removed.

        Raises
        ------
        TypeError
            An id is not an integer.
        ValueError
            An id was never assigned, is already removed, or occurs twice. The Index is then unchanged.

        Notes
        -----
        Up to 64 removed points stay in their segment: each search finds as many additional points as were removed, and
        drops the removed ones. After more removals, the segment is packed without them. On average, removing a point
        packs n / 64 rows.
        """
        self._refuse_codes("remove", _CHANGED_FILE)
        with self._updating:
            now = self._state
            now.check_unchanged()
            self._state = now.without_ids(checked_ids(ids), self._segment)

    @in_default_floats
    def compact(self) -> None:
        """Pack all remaining points as one segment. Ids and answers do not change."""
        with self._updating:
            now = self._state
            now.check_unchanged()
            self._state = now.compacted(self._segment)


def checked_ids(ids: Any) -> npt.NDArray[np.int64]:
    """Check ids, one or several, and return them as an int64 array of shape (any,)."""
    array = np.atleast_1d(np.asarray(inputs.to_host(ids)))
    if array.size == 0:
        return np.empty(0, np.int64)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise TypeError(f"ids: expected integers of shape (any,), got {array.dtype} of shape {array.shape}")
    return array.astype(np.int64)
