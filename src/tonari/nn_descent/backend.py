"""The steps of NN-Descent that a device provides; ``driver.py`` runs them."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from tonari.core.results.neighbors import Neighbors


class Round(NamedTuple):
    """The result of a round.

    Attributes
    ----------
    entries
        The input of the next round. With the update "pull": int32 of shape (n, list_size), see ``entries.py``; rows
        ascend by (returned value, id), and missing entries are at the end. With "gnnd": `Lists` of
        ``papers/cuda/gnnd.py``. None if only `found` was wanted.
    found : Neighbors of shape (n, k)
        The first k neighbours of each row, with the distances that exact search returns.
    changed : int
        Number of entries of `found` that were not in their rows before the round.
    phi : float
        Sum of all distances in `found` (wang2021, equation 3).
    """

    entries: Any
    found: Neighbors
    changed: int
    phi: float


class Known(NamedTuple):
    """The true neighbours of some points.

    Attributes
    ----------
    rows : int64 of shape (count,)
        The row number of each point; a NumPy array.
    indices : int32 of shape (count, k)
        The neighbours of each point; a NumPy array.
    """

    rows: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]


class Backend(Protocol):
    """The steps of NN-Descent on one device, for fixed points and a plan. Arrays are on that device unless noted."""

    def start(self, kind: str, known: Known | None = None) -> Any:
        """Make the initial entries, all marked as new; `kind` is "clusters" or "random".

        A start by clusters may use the neighbours in `known` to choose the number of clusters near each point that it
        compares.
        """

    def seeds(self, boundary: int, size: int) -> Any:
        """Return new entries for a merge of two graphs, int32 (n, size): each point gets points of the other graph.

        Ids below the boundary are points of the first graph.
        """

    def entries_of(self, indices: Any, *, new: bool) -> Any:
        """Convert neighbour ids, int32 (n, columns) with -1 for missing ones, to entries."""

    def joined_entries(self, first: Any, second: Any) -> Any:
        """Concatenate the columns of two arrays of entries, padded or truncated to the list size."""

    def round(self, entries: Any, boundary: int | None = None, *, light: bool = False, last: bool = False) -> Round:
        """Run one round: compare every point with the neighbours of its neighbours.

        `entries` are the result of a start or of the previous round; the round may change them.

        With a boundary, points are compared only with points on the other side of this id. A `light` round reads fewer
        lists (see ``DescentPlan.light``). If the caller expects no further round (`last`), the round may save time by
        returning no entries, and then leaves `entries` unchanged.
        """

    def exact(self, rows: Any, k: int) -> Neighbors:
        """Find the true neighbours of the points `rows` (NumPy int64 row numbers); no point is its own neighbour."""

    def of_rows(self, found: Neighbors, rows: Any) -> Neighbors:
        """Return the neighbour lists of some rows, in host memory."""
