"""Points come and go: the part of `tonari.Index` that changes it."""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.api.index_base import IndexBase
from tonari.core.floats import in_default_floats


class ChangingIndex(IndexBase):
    """The updates of :class:`tonari.Index`."""

    _updating: threading.Lock

    @in_default_floats
    @inputs.without_gradients("use tonari.search with differentiable=True")
    def add(self, points: Any) -> npt.NDArray[np.int64]:
        """Add points, and return their ids.

        Parameters
        ----------
        points : array of shape (any, d)
            Of the dtype of the points and, on CUDA, on their device or in host memory as they are. They are copied.

        Returns
        -------
        int64 array of shape (rows,)
            The numbers that follow the largest id ever given.

        Raises
        ------
        TypeError, ValueError
            Another dtype, device or number of columns, or NaN and the like. Nothing changes.

        Notes
        -----
        A few added rows are packed with at most 1,024 others. Segments merge as they grow, so that each row is packed
        again O(log n) times in all, and there are O(log n) segments.
        """
        sample = self._state.sample
        no_rows = tuple(getattr(points, "shape", ())) == (0, self.d)
        if no_rows and inputs.name_of_dtype(points) == inputs.name_of_dtype(sample):
            return np.empty(0, np.int64)
        rows = self._given_rows(points, "points")
        sample = self._state.sample
        inputs.same_width(rows, sample)
        came, expected = (
            f"{inputs.name_of_dtype(x)} in {inputs.place_of(x, 'points') or 'host memory'}" for x in (rows, sample)
        )
        if came != expected:
            raise TypeError(f"points: {came}, expected {expected} as the other points; convert or copy them")
        compared = self._compared(rows, "points")  # refused here, where rows have the caller's numbers
        inputs.check_values(compared, "points", first=0, nonnegative=self._call.metric.nonnegative)
        host = isinstance(rows, np.ndarray)
        rows = np.array(rows, order="C") if host else rows.clone(memory_format=sys.modules["torch"].contiguous_format)
        with self._updating:
            self._state.check_unchanged()
            begin = self._state.next_id
            self._state = self._state.with_rows(rows, self._segment)
        return np.arange(begin, begin + len(rows))

    @in_default_floats
    def remove(self, ids: Any) -> None:
        """Remove points.

        Parameters
        ----------
        ids : int, or integers of shape (any,)
            Each once. All may go.

        Raises
        ------
        TypeError
            Not integers.
        ValueError
            An id that was never given or is removed already, or named twice. Nothing changes.

        Notes
        -----
        Up to 64 removed points of a segment stay in it: searches ask for as many points more. With more, the segment is
        packed without them, so removing a point packs n / 64 rows on average.
        """
        with self._updating:
            self._state.check_unchanged()
            self._state = self._state.without_ids(checked_ids(ids), self._segment)

    @in_default_floats
    def compact(self) -> None:
        """Pack all points together, without those that were removed. Ids stay, and so do answers."""
        with self._updating:
            self._state.check_unchanged()
            self._state = self._state.compacted(self._segment)


def checked_ids(ids: Any) -> npt.NDArray[np.int64]:
    """Return ids as an int64 array of shape (any,)."""
    array = np.atleast_1d(np.asarray(inputs.to_host(ids)))
    if array.size == 0:
        return np.empty(0, np.int64)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise TypeError(f"ids: expected integers of shape (any,), got {array.dtype} of shape {array.shape}")
    return array.astype(np.int64)
