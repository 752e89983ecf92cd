"""Detect that an array of points has changed since it was prepared, by comparing a few rows with copies of them.

A search reads the packed points, which are a copy in the layout of the method, and the original array for exact values.
If the caller writes to the array after the points were packed, the answers are correct neither for the old nor for the
new rows. Only a few rows are compared, since comparing all of them would take as long as a search.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.inputs import tuning
from tonari.inputs.arrays.kinds import kind_of


class Unchanged:
    """Copies of a few rows of a writable array, kept to detect later changes of the array.

    Parameters
    ----------
    rows : C-contiguous array of shape (n, d), or tensor
        The rows to watch. A few rows of a NumPy array are compared. A tensor on CUDA is not read, since this would wait
        for the device; instead, torch's version counter is compared, which counts writes to a tensor and its views.
    source : optional
        The caller's array from which `rows` were made. If it is a torch tensor over the same memory, its version
        counter is compared too.
    """

    def __init__(self, rows: Any, source: Any = None) -> None:
        self._few: list[memoryview] = []
        self._rows: npt.NDArray[np.uint8] = np.empty((0, 0), np.uint8)
        tensor = rows if kind_of(rows) == "torch" else None
        if tensor is None:
            least, most = tuning.LEAST_COMPARED, tuning.MOST_COMPARED
            step = max(1, (len(rows) - 1) // (min(most, max(least, len(rows) // tuning.COMPARED_ONE_OF)) - 1))
            self._step, self._rows = step, rows.view(np.uint8)[::step][:most]
            apart = max(1, (len(self._rows) - 1) // (least - 1))
            self._few = [row.data for row in self._rows[::apart][:least]]
            if kind_of(source) == "torch" and source.device.type == "cpu" and source.data_ptr() == rows.ctypes.data:
                tensor = source
        self._few_before, self._before = b"".join(self._few), self._rows.tobytes()
        self._tensor = None if tensor is None or tensor.is_inference() else tensor.detach()
        self._version = None if self._tensor is None else self._tensor._version

    def check(self, queries: Any = None) -> None:
        """Raise RuntimeError if the compared rows, or the version counter, show that the array has changed.

        Parameters
        ----------
        queries : array, optional
            The queries of the next search. If they are so few that it takes only microseconds, fewer rows are
            compared.
        """
        few = (queries.size if type(queries) is np.ndarray else _size(queries)) < tuning.FEW_VALUES
        same = b"".join(self._few) == self._few_before if few else self._rows.tobytes() == self._before
        if not same or (self._tensor is not None and self._tensor._version != self._version):
            raise RuntimeError(f"points: the array {self._what()} after it was prepared for searches, {_FIX}")

    def _what(self) -> str:
        before = np.frombuffer(self._before, np.uint8).reshape(self._rows.shape)
        changed = (self._rows != before).any(axis=1)
        return f"has changed (row {int(changed.argmax()) * self._step})" if changed.any() else "was written to"


def _size(queries: Any) -> float:
    return queries.numel() if kind_of(queries) == "torch" else math.inf


_FIX = (
    "and must stay as it was; make the Index anew (fit an estimator again) after such a change, or keep a copy of the "
    "points: tonari.Index(points, copy=True), or copy_data=True of a KDTree"
)


def can_change(rows: Any) -> bool:
    """Return whether the memory of an array can be written to, through the array itself or through one of its bases.

    >>> import numpy as np
    >>> from tonari.inputs.arrays.unchanged import can_change
    >>> can_change(np.zeros(3)), can_change(np.frombuffer(bytes(8)))
    (True, False)
    """
    while isinstance(rows, np.ndarray):
        if rows.flags.writeable:
            return True
        rows = rows.base
    if rows is None:
        return False
    try:
        return not memoryview(rows).readonly
    except TypeError:  # the base is not a buffer, so it is not known whether it is writable
        return True


def shares_memory(rows: Any, source: Any) -> bool:
    """Return whether the checked rows share memory with the caller's array `source`; True if this is not known."""
    if kind_of(rows) == "torch":
        return kind_of(source) != "torch" or rows.data_ptr() == source.data_ptr()
    return not isinstance(source, list | tuple) and (
        not isinstance(source, np.ndarray) or np.may_share_memory(rows, source)
    )
