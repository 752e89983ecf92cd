"""The rules for the points that each query of a radius search may find, in the form that kernels on the CPU read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tonari.core import _native

COPIED_POINT = 18  # maximum bytes per point, for each thread that copies rules into the order of a tree


@dataclass(frozen=True, eq=False)
class Allowed:
    """The rules that decide which points each query of a search may find.

    Attributes
    ----------
    native : _native.Allowed
    rows : int64 array, optional
        For each query, its row in the arrays that `native` stores; None if query i has row i.
    """

    native: _native.Allowed
    rows: npt.NDArray[np.int64] | None = None

    def of(self, places: npt.NDArray[np.int64]) -> Allowed:
        """Return the rules for the queries at the positions `places`, in this order."""
        rows = places if self.rows is None else self.rows[places]
        return Allowed(self.native.of_rows(rows), rows)

    def table(self, m: int, n: int) -> npt.NDArray[np.bool_]:
        """Return a mask of shape (m, n) of the points that each query may find."""
        table = np.empty((m, n), bool)
        self.native.fill(table.view(np.uint8))
        return table
