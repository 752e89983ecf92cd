"""Order rows by clusters of their leading principal coordinates, so that near rows are adjacent.

In this order, the neighbours of a tile of queries are in few groups of points. A look, which is a comparison of
contracted rows (of fewer columns) before the screen, therefore rules out most groups. The order affects the time of a
search, never its result.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.core.process.workers import Workers
from tonari.core.rows.slices import cut
from tonari.exact import tuning

Numbers = npt.NDArray[np.int64]
Sketch = npt.NDArray[np.float32]


class Near(NamedTuple):
    """Positions in the cluster order of the points, around which the first thresholds of queries are computed.

    Attributes
    ----------
    places : int64 array of shape (m,)
        For each query, a position in the order; points packed near this position are near the query.
    asked : float32 array of shape (m, columns)
        The sketches of the queries: their coordinates in the few columns that determine the clusters.
    """

    places: Numbers
    asked: Sketch

    def of(self, rows: slice | npt.NDArray[np.intp]) -> Near:
        """Return the entries of `places` and `asked` for some of the queries."""
        return Near(self.places[rows], self.asked[rows])


class Clusters:
    """Clusters of rows, ordered so that consecutive clusters are near each other.

    Parameters
    ----------
    points : array of shape (n, d), checked
    form : Form
        The form, contracted to the few columns that determine the clusters.
    kernel : str
        The name of a kernel that compares rows in those few columns.
    workers : Workers
    kept : int64 array, optional
        Row numbers of the points to cluster. Default: all points.

    Attributes
    ----------
    order : int64 array of shape (count,)
        The points in the order of clusters.
    middles : int64 array
        The middle position of each cluster in `order`.
    sketch : float32 array of shape (columns, count)
        The coordinates of the points, in the order of clusters, in the columns of the form.
    """

    def __init__(
        self,
        points: npt.NDArray[Any],
        form: _native.Form,
        kernel: str,
        workers: Workers,
        kept: Numbers | None = None,
    ) -> None:
        n = len(points) if kept is None else len(kept)
        self._form, self._kernel = form, kernel
        self._workers = workers
        count = min(n, max(1, round(math.sqrt(n))))
        rows = self._rows(points, kept)
        sample = np.ascontiguousarray(rows[:: max(1, n // (tuning.CENTRE_ROWS * count))])
        self._centres = _chain(self._lloyd(sample, count))
        found = self._nearest(rows, self._centres)
        order: Numbers = np.argsort(found, kind="stable")
        self.order = order if kept is None else kept[order]
        sizes = np.bincount(found, minlength=count)
        # A query may be nearest to an empty cluster. If this is the last cluster, its middle would be n, which is not a
        # valid position.
        self.middles: Numbers = np.minimum(np.cumsum(sizes) - (sizes + 1) // 2, n - 1)
        self.sketch = self._by_place(rows, order)

    def near(self, queries: npt.NDArray[Any]) -> Near:
        """Return, for each query, the middle position of its nearest cluster, and its coordinates in the form."""
        rows = self._rows(queries)
        return Near(self.middles[self._nearest(rows, self._centres)], rows)

    def of_points(self) -> Near:
        """Return the position of each point in the order of clusters, and the point's column of `sketch`."""
        return Near(np.arange(len(self.order)), np.ascontiguousarray(self.sketch.T))

    def _by_place(self, rows: Sketch, order: Numbers) -> Sketch:
        sketch = np.empty(rows.shape[::-1], np.float32)

        def work(part: slice) -> None:
            self._workers.check()
            sketch[:, part] = rows[order[part]].T

        self._workers.map(work, cut(len(rows), tuning.CENTRE_TASK))
        return sketch

    def _rows(self, rows: npt.NDArray[Any], kept: Numbers | None = None) -> Sketch:
        """Return the rows' coordinates in the columns that determine clusters; rows beyond the range become zeros."""
        count = len(rows) if kept is None else len(kept)
        out = np.empty((count, self._form.columns), np.float32)

        def work(part: slice) -> None:
            self._workers.check()
            seen = np.empty((part.stop - part.start, self._form.columns))
            self._form.screened_rows(rows[part] if kept is None else rows[kept[part]], 1, seen)
            out[part] = np.nan_to_num(seen)

        self._workers.map(work, cut(count, tuning.CENTRE_TASK))
        return out

    def _nearest(self, rows: Sketch, centres: Sketch) -> npt.NDArray[Any]:
        """Return the index of each row's nearest centre, in the smallest integer dtype, because that sorts fastest."""
        form = _native.Form("sqeuclidean", [0.0] * centres.shape[1], 1.0)
        packed = [_native.PackedPoints(self._kernel, form, centres, 0, len(centres), errors=False)]
        places = np.empty((len(rows), 1), np.int32)

        def work(part: slice) -> None:
            self._workers.check()
            for begin in range(part.start, part.stop, tuning.CENTRE_BLOCK):
                end = min(begin + tuning.CENTRE_BLOCK, part.stop)
                _native.best_scores(self._kernel, form, rows, begin, end, packed, places)

        self._workers.map(work, cut(len(rows), tuning.CENTRE_TASK))
        return places[:, 0].astype(np.min_scalar_type(len(centres)))

    def _lloyd(self, sample: Sketch, count: int) -> Sketch:
        """Return the centres of clusters of a sample, by Lloyd's algorithm; an empty cluster keeps its centre."""
        centres = sample[np.linspace(0, len(sample) - 1, count).astype(np.int64)].copy()
        for _ in range(tuning.CENTRE_ROUNDS):
            nearest = self._nearest(sample, centres)
            order = np.argsort(nearest, kind="stable")
            kept, begins, sizes = np.unique(nearest[order], return_index=True, return_counts=True)
            centres[kept] = np.add.reduceat(sample[order], begins) / sizes[:, None].astype(np.float32)
        return centres


def _chain(centres: Sketch) -> Sketch:
    """Order the centres of clusters so that each centre is followed by the nearest of those that remain."""
    left = centres.copy()
    at = 0
    for place in range(len(left) - 1):
        left[[place, at]] = left[[at, place]]
        apart = left[place + 1 :] - left[place]
        at = place + 1 + int(np.einsum("ij,ij->i", apart, apart).argmin())
    return left
