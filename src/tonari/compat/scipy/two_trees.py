"""The methods of ``scipy.spatial.KDTree`` that return pairs of points, within one tree or between two trees."""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import pairwise
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.api.index.index import Index
from tonari.api.pairing import pairs
from tonari.compat.arguments import number_of
from tonari.compat.scipy.arguments import metric_of, radii_of, weights_of
from tonari.compat.scipy.periodic import Periodic
from tonari.core.process.compiling import not_compiled
from tonari.core.results.pairs import Pairs
from tonari.core.results.radius_neighbors import RadiusNeighbors, none_within

_OUTPUTS = ("dok_matrix", "coo_matrix", "dict", "ndarray")
_ENTRY = np.dtype([("i", np.intp), ("j", np.intp), ("v", np.float64)], align=True)


class NoPoints:
    """The index of a tree without points: every search returns an empty result."""

    def radius_search(
        self, rows: npt.NDArray[np.float64], radius: Any, *, threads: int | None = None
    ) -> RadiusNeighbors:
        """Return an empty list for each row."""
        return none_within(0, np.float64, len(rows))

    def radius_count(
        self, rows: npt.NDArray[np.float64], radius: Any, *, threads: int | None = None
    ) -> npt.NDArray[np.int64]:
        """Return 0 for each row."""
        return np.zeros(len(rows), np.int64)


class TwoTrees(ABC):
    """The base of ``KDTree``, with methods for pairs of points."""

    data: npt.NDArray[np.float64]
    n: int
    m: int
    boxsize: npt.NDArray[np.float64] | None

    @abstractmethod
    def _index(self, metric: str) -> Index | Periodic | NoPoints:
        """Return the index of the tree's points for a metric."""

    def _other(self, other: Any) -> TwoTrees:
        """Check that `other` is a KDTree with the same number of coordinates and the same periodic box."""
        if not isinstance(other, TwoTrees):
            raise TypeError(f"other: expected a tonari.compat.scipy.KDTree, got {type(other).__name__}")
        if other.m != self.m:
            raise ValueError(f"other: its points have {other.m} coordinates, expected {self.m} as here")
        if not np.array_equal(self._box(), other._box()):
            raise ValueError(f"other: has boxsize={other.boxsize}, expected {self.boxsize} as here")
        return other

    def _box(self) -> npt.NDArray[np.float64]:
        return np.zeros(self.m) if self.boxsize is None else self.boxsize

    @not_compiled
    def query_ball_tree(self, other: Any, r: float, p: float = 2.0, eps: float = 0.0) -> list[list[int]]:
        """Find all points of another tree within a distance of each point of this one.

        Parameters
        ----------
        other : KDTree
        r : float
            The radius; points at exactly this distance are found.
        p : 1, 1.5, 2, 3, 4 or inf
        eps : float
            At least 0, without effect: answers are exact.

        Returns
        -------
        list of n lists of int
            Row numbers of the other tree's points, ascending.
        """
        metric, radius = metric_of(p, eps), number_of(r, "r", least=0.0)
        return lists_of(self._other(other)._index(metric).radius_search(self.data, radius), ascending=True)

    @not_compiled
    def query_pairs(self, r: float, p: float = 2.0, eps: float = 0.0, output_type: str = "set") -> Any:
        """Find all pairs of points of this tree whose distance is at most r.

        Parameters
        ----------
        r : float
            The radius; pairs at exactly this distance are found.
        p : 1, 1.5, 2, 3, 4 or inf
        eps : float
            At least 0, without effect: answers are exact.
        output_type : "set" or "ndarray"

        Returns
        -------
        set of tuples (i, j), or intp array of shape (pairs, 2)
            Pairs with i < j. Rows of the array are in order of (i, distance, j).
        """
        metric, radius = metric_of(p, eps), number_of(r, "r", least=0.0)
        if output_type not in ("set", "ndarray"):
            raise ValueError(f"output_type={output_type!r}: expected 'set' or 'ndarray'")
        if self._box().any() or not self.n:
            indptr, right, _ = self._index(metric).radius_search(self.data, radius)
            left = np.repeat(np.arange(self.n), np.diff(indptr))
            left, right = left[left < right], right[left < right]
        else:
            found = cast(Pairs, pairs(self.data, radius, metric=metric))  # given only with out=
            left, right = found.left, found.right
        both = np.stack([left, right], axis=1).astype(np.intp)
        return both if output_type == "ndarray" else set(map(tuple, both.tolist()))

    @not_compiled
    def count_neighbors(self, other: Any, r: Any, p: float = 2.0, weights: Any = None, cumulative: bool = True) -> Any:
        """Count the pairs of a point of this tree and a point of `other` within each radius, or sum the pairs' weights.

        Parameters
        ----------
        other : KDTree
            The other tree. If it is the same tree, each point also forms a pair with itself.
        r : float or array of shape (radii,)
        p : 1, 1.5, 2, 3, 4 or inf
        weights : array of shape (n,), or tuple of two arrays or None, optional
            The weights of the points of both trees, None for weights of 1; a single array if `other` is this tree. The
            weight of a pair is the product of the weights of its points.
        cumulative : bool
            True: count all pairs whose distance is at most r. False: for ascending radii, count only the pairs whose
            distance is greater than the previous radius.

        Returns
        -------
        int, or intp array of shape (radii,)
            The counts; with weights, the sums as a float or a float64 array.
        """
        metric = metric_of(p, 0.0)
        if np.ndim(r) > 1:
            raise ValueError(f"r: has shape {np.shape(r)}, expected one number or one dimension")
        radii = radii_of(r, "r", np.shape(r))
        tree = self._other(other)
        index = tree._index(metric)
        counts: npt.NDArray[Any]
        if weights is None:
            counts = np.array([index.radius_count(self.data, radius).sum() for radius in radii], np.intp)
        else:
            both = weights_of(weights, (self.n, tree.n), self is tree)
            counts = summed(index.radius_search(self.data, radii.max(initial=0.0)), both, radii)
        if not inputs.check_flag(cumulative, "cumulative"):
            if (np.diff(radii) < 0).any():
                raise ValueError("r: expected radii that do not descend, for cumulative=False")
            counts = np.diff(counts, prepend=counts.dtype.type(0))
        return counts if np.ndim(r) else (int(counts[0]) if weights is None else counts[0])

    @not_compiled
    def sparse_distance_matrix(
        self, other: Any, max_distance: float, p: float = 2.0, output_type: str = "dok_matrix"
    ) -> Any:
        """Return the distances of all pairs of a point of this tree and a point of `other` within `max_distance`.

        Parameters
        ----------
        other : KDTree
        max_distance : float
        p : 1, 1.5, 2, 3, 4 or inf
        output_type : "dok_matrix", "coo_matrix", "dict" or "ndarray"
            A sparse matrix, which requires SciPy; a dict from (i, j) to the distance; or an array of records with the
            fields i, j and v.

        Returns
        -------
        sparse matrix of shape (self.n, other.n), dict, or ndarray
            Distances of 0 are stored. Records are in order of (i, v, j).
        """
        metric, radius = metric_of(p, 0.0), number_of(max_distance, "max_distance", least=0.0)
        if output_type not in _OUTPUTS:
            raise ValueError(f"output_type={output_type!r}: expected one of {', '.join(map(repr, _OUTPUTS))}")
        tree = self._other(other)
        indptr, indices, distances = tree._index(metric).radius_search(self.data, radius)
        rows = np.repeat(np.arange(self.n), np.diff(indptr))
        if output_type == "dict":
            return dict(zip(zip(rows.tolist(), indices.tolist(), strict=True), distances.tolist(), strict=True))
        if output_type == "ndarray":
            records = np.empty(len(rows), _ENTRY)
            records["i"], records["j"], records["v"] = rows, indices, distances
            return records
        from scipy.sparse import coo_matrix

        matrix = coo_matrix((distances, (rows, indices)), shape=(self.n, tree.n))
        return matrix if output_type == "coo_matrix" else matrix.todok()


def lists_of(found: RadiusNeighbors, *, ascending: bool) -> list[list[int]]:
    """Return the row numbers of each query's neighbours as a list, in ascending order or nearest first.

    >>> found = RadiusNeighbors(np.array([0, 2, 3]), np.array([4, 1, 0]), np.array([0.0, 1.0, 0.5]))
    >>> lists_of(found, ascending=True)
    [[1, 4], [0]]
    """
    indices = found.indices
    if len(found.indptr) == 2:
        ids = indices.tolist()
        return [sorted(ids) if ascending else ids]
    if ascending:
        rows = np.repeat(np.arange(len(found.indptr) - 1), np.diff(found.indptr))
        indices = indices[np.lexsort((indices, rows))]
    ids, ends = indices.tolist(), found.indptr.tolist()
    return [ids[begin:end] for begin, end in pairwise(ends)]


def summed(
    found: RadiusNeighbors, weights: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]], radii: npt.NDArray[Any]
) -> npt.NDArray[np.float64]:
    """Return for each radius the sum of the weights of the pairs whose distance is at most the radius.

    `weights` are those of the queries and of the points; the weight of a pair is their product.

    >>> found = RadiusNeighbors(np.array([0, 2]), np.array([1, 0]), np.array([1.0, 2.0]))
    >>> summed(found, (np.array([3.0]), np.array([1.0, 10.0])), np.array([2.0, 1.0]))
    array([33., 30.])
    """
    indptr, right, distances = found
    left = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    ascending, of = np.unique(radii, return_inverse=True)
    first = np.searchsorted(ascending, distances)  # for each pair, the position of the smallest radius that includes it
    sums = np.bincount(first, weights[0][left] * weights[1][right], minlength=len(ascending))
    return np.asarray(np.cumsum(sums)[of], np.float64)
