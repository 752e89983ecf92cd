"""An order of rows in which neighbours are near each other: by clusters of their leading principal coordinates.

Tiles of queries and groups of points that follow this order have few neighbours in common with most others, so that a
look at contracted rows rules most of them out. The order decides how long a search takes, never what it finds.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.core.slices import cut
from tonari.core.workers import Workers

Numbers = npt.NDArray[np.int64]
Sketch = npt.NDArray[np.float32]

_PER_CENTRE = 16  # rows of the sample for each centre
_ROUNDS = 3
_AT_ONCE = 4096  # rows of a thread's task
_PRODUCTS = 1 << 18  # of a multiplication that OpenBLAS does on one thread


class Near(NamedTuple):
    """Where queries are among points in an order of clusters; their first thresholds are taken there.

    Attributes
    ----------
    places : int64 array of shape (m,)
        Where the points near each query begin.
    asked : float32 array of shape (m, columns)
        The queries as the points are in the sketch.
    """

    places: Numbers
    asked: Sketch

    def of(self, rows: slice | npt.NDArray[np.intp]) -> Near:
        """Return the same of some queries."""
        return Near(self.places[rows], self.asked[rows])


class Clusters:
    """Clusters of rows, in an order in which each is near the one before.

    Parameters
    ----------
    points : array of shape (n, d), checked
    form : Form
        Contracted to the few columns by which clusters are found.
    workers : Workers

    Attributes
    ----------
    order : int64 array of shape (n,)
        The points, by clusters.
    begins : int64 array
        Where the points of each cluster begin in that order.
    sketch : float32 array of shape (columns, n)
        The points in few columns, by their place in that order.
    """

    def __init__(self, points: npt.NDArray[Any], form: _native.Form, workers: Workers) -> None:
        n = len(points)
        self._form = form
        self._workers = workers
        count = min(n, max(1, round(math.sqrt(n))))
        rows = self._rows(points)
        sample = rows[:: max(1, n // (_PER_CENTRE * count))]
        self._centres = _chain(_centres(sample, count))
        found = self._nearest(rows)
        self.order: Numbers = np.argsort(found, kind="stable")
        self.begins: Numbers = np.searchsorted(found[self.order], np.arange(count))
        self.sketch: Sketch = np.ascontiguousarray(rows[self.order].T)

    def near(self, queries: npt.NDArray[Any]) -> Near:
        """Return where queries are in the order."""
        rows = self._rows(queries)
        return Near(self.begins[self._nearest(rows)], rows)

    def of_points(self) -> Near:
        """Return where the points are, in their order."""
        return Near(np.arange(len(self.order)), np.ascontiguousarray(self.sketch.T))

    def _rows(self, rows: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """Return rows in few columns; zeros for those beyond the screen's range."""
        out = np.empty((len(rows), self._form.columns), np.float32)

        def work(part: slice) -> None:
            self._workers.check()
            seen = np.empty((part.stop - part.start, self._form.columns))
            self._form.screened_rows(rows[part], 1, seen)
            out[part] = np.nan_to_num(seen)

        self._workers.map(work, cut(len(rows), _AT_ONCE))
        return out

    def _nearest(self, rows: npt.NDArray[np.float32]) -> Numbers:
        out = np.empty(len(rows), np.int64)

        def work(part: slice) -> None:
            self._workers.check()
            out[part] = _nearest(rows[part], self._centres)

        self._workers.map(work, cut(len(rows), _AT_ONCE))
        return out


def _nearest(rows: npt.NDArray[np.float32], centres: npt.NDArray[np.float32]) -> Numbers:
    found = np.empty(len(rows), np.int64)
    # |c|^2 - 2 <r, c>, by products so small that BLAS leaves them to this thread: threads of its own would spin while
    # those of the caller work.
    factors = np.vstack([-2 * centres.T, np.einsum("ij,ij->i", centres, centres)])
    at_once = max(1, _PRODUCTS // factors.size)
    for part in cut(len(rows), at_once):
        scores = np.column_stack([rows[part], np.ones(part.stop - part.start, np.float32)]) @ factors
        scores.argmin(axis=1, out=found[part])
    return found


def _centres(sample: npt.NDArray[np.float32], count: int) -> npt.NDArray[np.float32]:
    """Return the means of Lloyd's clusters of a sample; those that lose all rows stay where they are."""
    centres = sample[np.linspace(0, len(sample) - 1, count).astype(np.int64)].copy()
    for _ in range(_ROUNDS):
        nearest = _nearest(sample, centres)
        order = np.argsort(nearest, kind="stable")
        kept, begins, sizes = np.unique(nearest[order], return_index=True, return_counts=True)
        centres[kept] = np.add.reduceat(sample[order], begins) / sizes[:, None].astype(np.float32)
    return centres


def _chain(centres: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the centres so that each is followed by the nearest one that is left."""
    left = centres.copy()
    at = 0
    for place in range(len(left) - 1):
        left[[place, at]] = left[[at, place]]
        apart = left[place + 1 :] - left[place]
        at = place + 1 + int(np.einsum("ij,ij->i", apart, apart).argmin())
    return left
