"""Searches in a periodic box, which look for the neighbours of shifted copies (images) of each query.

In a periodic dimension of length L, with coordinates from 0 to L, the difference of two coordinates is

    w = |q - x|,  or  L - w  if  w > L / 2       (exact, as L / 2 <= w <= L)

and the distance of two points is the metric's value of these differences, as SciPy defines it. Let D be the set of
dimensions with w > L / 2 between a query q and a point x. The distance from q to x in the box is the plain distance
from x to the image of q that is shifted by L in the dimensions of D: up if q < L / 2, else down. A query therefore has
one image for each set of periodic dimensions. An image is searched only if the points' bounding box is within the
radius, and the radius of this search is extended by more than the rounding errors of the image and of the distances to
it. The distances of all points found are then computed from the differences above, and compared with the radius.

For a search of k neighbours, the radius is the k-th distance of a plain search of the query. It is an upper bound of
the k-th distance in the box, because the box makes no difference of coordinates larger.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tonari.api.index.index import Index
from tonari.compat.scipy import tuning
from tonari.core.results.neighbors import Neighbors, index_dtype
from tonari.core.results.radius_neighbors import RadiusNeighbors
from tonari.metrics import get_metric
from tonari.metrics.transforms.change import change_of

Float64 = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]

_ROUNDING = 2.0**-46  # bound on the rounding errors of an image and of the distances to it, per dimension


class _Request(NamedTuple):
    """Queries moved into the box, their radii, and which of their images are within reach of the points.

    Attributes
    ----------
    rows : float64 array of shape (m, d)
        The queries.
    limits, reach : float64 arrays of shape (m,)
        Each query's radius, and the radius extended by more than the rounding errors of images and distances to them.
    masks : list of bool arrays of shape (m,)
        For each set of dimensions, whether a query's image that is shifted in them is within reach of the points'
        bounding box.
    is_near : bool array of shape (m,)
        Whether an image other than the query itself is within reach. If not, a plain search of the query suffices.
    """

    rows: Float64
    limits: Float64
    reach: Float64
    masks: list[npt.NDArray[np.bool_]]
    is_near: npt.NDArray[np.bool_]

    @property
    def near(self) -> Ids:
        """The row numbers of queries for which :attr:`is_near` is True."""
        return np.flatnonzero(self.is_near)


class Periodic:
    """An index of points in a periodic box, with the search methods of :class:`tonari.Index`.

    Parameters
    ----------
    points : float64 array of shape (n, m)
        Points; periodic coordinates are at least 0 and less than the length of the box.
    metric : str
        A Minkowski distance with p of at least 1.
    boxsize : float64 array of shape (m,)
        Lengths of the box; 0 for dimensions that are not periodic.
    """

    def __init__(self, points: Float64, metric: str, boxsize: Float64) -> None:
        self.points, self.boxsize = points, boxsize
        self.index = Index(points, metric=metric)
        change = change_of(metric)
        value = get_metric(change.base if change else metric).value
        assert value is not None
        self._value, self._finish = value, change.finish if change else None
        self._mins, self._maxes = points.min(axis=0), points.max(axis=0)
        periodic = np.flatnonzero(boxsize)
        self._sets = (
            [] if len(periodic) > tuning.MOST_PERIODIC else [np.array(each, int) for each in _subsets(periodic)]
        )

    def search(self, rows: Float64, k: int, *, threads: int | None = None) -> Neighbors:
        """Find the k nearest points of each row; see :meth:`tonari.Index.search`."""
        rows = self.inside(rows)
        direct = self.index.search(rows, k, threads=threads)
        request = self._request(rows, direct.distances[:, -1])
        distances, indices = np.array(direct.distances), np.array(direct.indices)
        for some, left, right, values in self._blocks(request, request.near, threads):
            first = np.searchsorted(left, some)[:, None] + np.arange(k)
            distances[some], indices[some] = values[first], right[first]
        return Neighbors(distances, indices)

    def radius_search(self, rows: Float64, radius: Any, *, threads: int | None = None) -> RadiusNeighbors:
        """Find all points within a radius of each row; see :meth:`tonari.Index.radius_search`."""
        request = self._request(self.inside(rows), radius)
        far = np.flatnonzero(~request.is_near)
        direct = self.index.radius_search(request.rows[far], request.limits[far], threads=threads)
        parts = [(np.repeat(far, np.diff(direct.indptr)), direct.indices, direct.distances)]
        parts += [found[1:] for found in self._blocks(request, request.near, threads)]
        left, right, values = (np.concatenate(each) for each in zip(*parts, strict=True))
        order = np.argsort(left, kind="stable")
        counts = np.bincount(left, minlength=len(request.rows))
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return RadiusNeighbors(indptr, right[order].astype(index_dtype(len(self.points))), values[order])

    def radius_count(self, rows: Float64, radius: Any, *, threads: int | None = None) -> Ids:
        """Count the points within a radius of each row; see :meth:`tonari.Index.radius_count`."""
        request = self._request(self.inside(rows), radius)
        far = ~request.is_near
        counts = np.zeros(len(request.rows), np.int64)
        counts[far] = self.index.radius_count(request.rows[far], request.limits[far], threads=threads)
        for _, left, _, _ in self._blocks(request, request.near, threads):
            counts += np.bincount(left, minlength=len(counts))
        return counts

    def inside(self, rows: Float64) -> Float64:
        """Return rows whose periodic coordinates are shifted into the box: at least 0 and less than its length.

        The formula is SciPy's. If its rounded result is outside of the box, ``numpy.mod`` computes the coordinate.
        """
        periodic = self.boxsize > 0
        length = np.where(periodic, self.boxsize, 1.0)
        moved = rows - np.floor(rows / length) * length
        moved = np.where((moved >= 0) & (moved < length), moved, np.mod(rows, length))
        return np.where(periodic, moved, rows)

    def _request(self, rows: Float64, radius: Any) -> _Request:
        """Find the images of each query that are near enough to the points' bounding box to have neighbours."""
        limits = np.broadcast_to(np.asarray(radius, np.float64), len(rows))
        reach = np.asarray(limits + (limits + self.boxsize.max()) * (len(self.boxsize) * _ROUNDING))
        masks = [self._near(rows, moved, reach) for moved in self._sets]
        far = np.zeros(len(rows), bool) if self._sets else np.ones(len(rows), bool)
        return _Request(rows, limits, reach, masks, np.logical_or.reduce([far, *masks[1:]]))

    def _blocks(self, request: _Request, rows: Ids, threads: int | None) -> Iterator[tuple[Ids, Ids, Ids, Float64]]:
        """Find all points within the radius of each of the queries `rows`, in blocks of queries to bound the memory.

        Yields
        ------
        some : int64 array
            The row numbers of the queries in this block.
        left, right, distances : arrays of shape (pairs,)
            The query, the point and the distance of each pair, in order of (query, distance, point). Distances that
            are equal only after taking the p-th root are ordered by the sums before it.
        """
        if not len(rows):
            return
        counts = self._counts(request, rows, threads)
        blocks = (np.cumsum(counts) - counts) // tuning.PAIRS
        for some in np.split(rows, np.flatnonzero(np.diff(blocks)) + 1):
            left, right = self._pairs(request, some, threads)
            values = self._values(request.rows, left, right)
            distances = values if self._finish is None else self._finish(values)
            within = np.flatnonzero(distances <= request.limits[left])
            order = within[np.lexsort((right[within], values[within], left[within]))]
            yield some, left[order], right[order], distances[order]

    def _counts(self, request: _Request, rows: Ids, threads: int | None) -> Ids:
        """Return for each of the queries `rows` an upper bound on the number of points that :meth:`_pairs` finds."""
        if not self._sets:
            return np.full(len(rows), len(self.points))
        counts = np.zeros(len(rows), np.int64)
        for moved, mask in zip(self._sets, request.masks, strict=True):
            these = rows[mask[rows]]
            image = self._image(request.rows[these], moved)
            counts[mask[rows]] += self.index.radius_count(image, request.reach[these], threads=threads)
        return counts

    def _pairs(self, request: _Request, rows: Ids, threads: int | None) -> tuple[Ids, Ids]:
        """Return all pairs of a query in `rows` and a point within reach of one of its images, each pair once."""
        n = len(self.points)
        if not self._sets:
            return np.repeat(rows, n), np.tile(np.arange(n), len(rows))
        keys = []
        for moved, mask in zip(self._sets, request.masks, strict=True):
            these = rows[mask[rows]]
            found = self.index.radius_search(
                self._image(request.rows[these], moved), request.reach[these], threads=threads
            )
            keys.append(np.repeat(these, np.diff(found.indptr)) * n + found.indices)
        left, right = np.divmod(np.unique(np.concatenate(keys)), n)
        return left, right

    def _near(self, rows: Float64, moved: npt.NDArray[Any], reach: Float64) -> npt.NDArray[np.bool_]:
        """Return, for each row, whether its image is within reach of the points' bounding box.

        Only the shifted dimensions are tested.
        """
        length = self.boxsize[moved]
        coordinates = rows[:, moved]
        gaps = np.where(
            coordinates < length / 2,
            coordinates + length - self._maxes[moved],
            self._mins[moved] - (coordinates - length),
        )
        return np.asarray((gaps <= reach[:, None]).all(axis=1))

    def _image(self, rows: Float64, moved: npt.NDArray[Any]) -> Float64:
        image = rows.copy()
        length = self.boxsize[moved]
        image[:, moved] += np.where(rows[:, moved] < length / 2, length, -length)
        return image

    def _values(self, rows: Float64, left: Ids, right: Ids) -> Float64:
        """Return the distances of pairs in the box.

        For p other than 1, 2 and inf, return the sums before the p-th root is taken.
        """
        found = np.empty(len(left))
        step = max(1, tuning.ELEMENTS // len(self.boxsize))
        for begin in range(0, len(left), step):
            part = slice(begin, begin + step)
            gaps = np.abs(rows[left[part]] - self.points[right[part]])
            gaps = np.where((self.boxsize > 0) & (gaps > self.boxsize / 2), self.boxsize - gaps, gaps)
            found[part] = self._value(np.ascontiguousarray(gaps.T), np.zeros_like(gaps.T))
        return found


def _subsets(dimensions: npt.NDArray[Any]) -> Iterator[tuple[int, ...]]:
    """Generate all subsets of the dimensions, beginning with the empty one.

    >>> list(_subsets(np.array([0, 2])))
    [(), (0,), (2,), (0, 2)]
    """
    names = dimensions.tolist()
    return chain.from_iterable(combinations(names, size) for size in range(len(names) + 1))
