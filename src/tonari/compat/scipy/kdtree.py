"""Drop-ins for ``scipy.spatial.KDTree`` and its base class, ``cKDTree``."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.api.index.base import quick_search_of
from tonari.api.index.index import Index
from tonari.compat.arguments import number_of, threads_of
from tonari.compat.scipy.arguments import box_of, float64_rows, metric_of, queries_of, radii_of, ranks_of
from tonari.compat.scipy.periodic import Periodic
from tonari.compat.scipy.two_trees import NoPoints, TwoTrees, lists_of
from tonari.core.hints import Hinted
from tonari.core.process.compiling import not_compiled
from tonari.core.results.neighbors import Neighbors
from tonari.methods.decision import Decision
from tonari.methods.repeated import Kept, Key, Way, keep, repeating_method


class cKDTree(Hinted, TwoTrees):
    """A set of points with the interface of ``scipy.spatial.cKDTree``.

    :class:`KDTree`, its subclass, describes the parameters and methods.
    """

    @not_compiled
    def __init__(
        self,
        data: Any,
        leafsize: int = 16,
        compact_nodes: bool = True,
        copy_data: bool = False,
        balanced_tree: bool = True,
        boxsize: Any = None,
    ) -> None:
        self.leafsize = inputs.check_count(leafsize, "leafsize")
        inputs.check_flag(compact_nodes, "compact_nodes")
        inputs.check_flag(balanced_tree, "balanced_tree")
        rows = float64_rows(data, "data")
        if rows.ndim != 2 or len(rows) or not rows.shape[1]:
            rows = inputs.as_rows(rows, "data")
        self.data: npt.NDArray[np.float64] = rows.copy() if inputs.check_flag(copy_data, "copy_data") else rows
        self.n, self.m = self.data.shape
        self.boxsize = None if boxsize is None else box_of(boxsize, self.data)
        self.maxes: npt.NDArray[np.float64] = self.data.max(axis=0) if self.n else np.zeros(self.m)
        self.mins: npt.NDArray[np.float64] = self.data.min(axis=0) if self.n else np.zeros(self.m)
        self._indexes: dict[str, Index | Periodic] = {}
        self._kept: dict[Key, Kept] = {}  # prepared searches, by the shapes and arguments of the queries

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_kept": {}}

    def _index(self, metric: str) -> Index | Periodic | NoPoints:
        """Return the index of the points for this metric, which is prepared at the first search."""
        if not self.n:
            return NoPoints()
        if metric not in self._indexes:
            box = self._box()
            self._indexes[metric] = Periodic(self.data, metric, box) if box.any() else Index(self.data, metric=metric)
        return self._indexes[metric]

    @repeating_method(operator.attrgetter("_kept"))
    def query(
        self,
        x: Any,
        k: Any = 1,
        eps: float = 0.0,
        p: float = 2.0,
        distance_upper_bound: float = math.inf,
        workers: int = 1,
    ) -> tuple[Any, Any]:
        """Find the nearest neighbours of each point of x among the points of the tree.

        Parameters
        ----------
        x : array of shape (..., m)
        k : int or list of int
            The number of neighbours, or a list of their ranks: [1] returns only the nearest. It may exceed the number
            of points.
        eps : float
            At least 0, without effect: answers are exact.
        p : 1, 1.5, 2, 3, 4 or inf
        distance_upper_bound : float
            Only neighbours at a distance less than this are returned.
        workers : int
            Number of threads; -1 lets the amount of work decide.

        Returns
        -------
        d : float64 of shape (..., number of ranks)
            Distances in order of the ranks; inf for missing neighbours. With k = 1 the last dimension is dropped.
        i : intp, of the same shape
            Row numbers of points; n for missing neighbours.

        Raises
        ------
        TypeError, ValueError
            x has NaN, infinity or another number of coordinates than the tree; or k or workers is out of range.
        tonari.core.errors.Unsupported
            `p` has another value. Unsupported is a subclass of ValueError.
        """
        metric, threads = metric_of(p, eps), threads_of(workers, "workers")
        if type(k) is int and 0 < k <= self.n and distance_upper_bound is math.inf:
            return self._nearest(x, k, metric, threads)
        ranks = ranks_of(k)
        bound = number_of(distance_upper_bound, "distance_upper_bound", least=0.0)
        rows, lead = queries_of(x, self.m)
        most = int(ranks.max())
        distances = np.full((len(rows), most), np.inf)
        indices = np.full((len(rows), most), self.n, np.intp)
        index = self._index(metric)
        if len(rows) and not isinstance(index, NoPoints):
            found = index.search(rows, min(most, self.n), threads=threads)
            near = found.distances < bound
            distances[:, : self.n][near] = found.distances[near]
            indices[:, : self.n][near] = found.indices[near]
        shape = lead if np.ndim(k) == 0 and most == 1 else (*lead, len(ranks))
        d, i = (part[:, ranks - 1].reshape(shape) for part in (distances, indices))
        return (d, i) if shape else (float(d), np.intp(i))

    def _nearest(self, x: Any, k: int, metric: str, threads: int | None) -> tuple[Any, Any]:
        """Find the k nearest points, for k <= n and without an upper bound on distances.

        No neighbour can then be missing.
        """
        rows, lead = queries_of(x, self.m)
        shape = lead if k == 1 else (*lead, k)
        if not len(rows):
            return np.empty(shape), np.empty(shape, np.intp)
        index = self._index(metric)
        assert not isinstance(index, NoPoints)
        found = index.search(rows, k, threads=threads)
        if isinstance(index, Index):
            self._keep(x, quick_search_of(index, rows, k, threads), rows.shape, shape)
        return _answer_of(found, shape)

    def _keep(self, x: Any, quick: tuple[Way, Decision] | None, rows: tuple[int, ...], shape: tuple[int, ...]) -> None:
        """Cache the prepared search for later queries with the same shapes, dtypes and arguments.

        Parameters
        ----------
        x : array
            The queries as passed by the caller.
        quick : tuple of the search and its decision, optional
            None if the search cannot be repeated; nothing is cached then.
        rows, shape : tuples of int
            The shapes of the queries as rows, and of the results.
        """
        if quick is None:
            return
        search, decision = quick

        def again(x: Any) -> tuple[Any, Any] | None:
            found = search(x.astype(np.float64, copy=False).reshape(rows))
            return None if found is None else _answer_of(found, shape)

        keep(decision, (x,), again, None, kept=self._kept)

    @not_compiled
    def query_ball_point(
        self,
        x: Any,
        r: Any,
        p: float = 2.0,
        eps: float = 0.0,
        workers: int = 1,
        return_sorted: bool | None = None,
        return_length: bool = False,
    ) -> Any:
        """Find all points of the tree within a distance of each point of x.

        Parameters
        ----------
        x : array of shape (..., m)
        r : float or array that can be broadcast to shape (...)
            The radius; points at exactly this distance are found.
        p : 1, 1.5, 2, 3, 4 or inf
        eps : float
            At least 0, without effect: answers are exact.
        workers : int
            Number of threads; -1 lets the amount of work decide.
        return_sorted : bool, optional
            True (default): each list is sorted by row number. False: by distance.
        return_length : bool
            Whether to return only the lengths of the lists.

        Returns
        -------
        list, or object array of shape (...) of lists
            Lists of row numbers; a single list if x is a single point.
        intp array of shape (...), or intp
            The lengths of the lists, with ``return_length``.
        """
        metric, threads = metric_of(p, eps), threads_of(workers, "workers")
        ascending = return_sorted is None or inputs.check_flag(return_sorted, "return_sorted")
        counted = inputs.check_flag(return_length, "return_length")
        rows, lead = queries_of(x, self.m)
        radii: Any = float(r) if isinstance(r, float) and r >= 0 else radii_of(r, "r", lead)
        if not len(rows):
            return np.empty(lead, np.intp if counted else object)
        index = self._index(metric)
        if counted:
            counts = index.radius_count(rows, radii, threads=threads).astype(np.intp).reshape(lead)
            return counts if lead else counts[()]
        lists = lists_of(index.radius_search(rows, radii, threads=threads), ascending=ascending)
        if not lead:
            return lists[0]
        array = np.empty(len(lists), object)
        array[:] = lists
        return array.reshape(lead)


def _answer_of(found: Neighbors, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Return distances and indices as arrays of this shape, or as two numbers if it is ()."""
    d, i = found.distances.reshape(shape), found.indices.astype(np.intp).reshape(shape)
    return (d, i) if shape else (float(d), np.intp(i))


class KDTree(cKDTree):
    """A set of points with the interface of ``scipy.spatial.KDTree``.

    :mod:`tonari.compat.scipy` lists refusals and differences. Each search uses a tree or brute force, whichever is
    expected to be faster, as :class:`tonari.Index` does. A KDTree can be pickled.

    Parameters
    ----------
    data : array of shape (n, m)
        Points, which are converted to float64. There may be none.
    leafsize, compact_nodes, balanced_tree : int, bool, bool
        Checked, but without effect.
    copy_data : bool
        Whether the tree keeps a copy, so that the data may change later.
    boxsize : float or array of shape (m,), optional
        Lengths of a periodic box, 0 for dimensions that are not periodic. Periodic coordinates of the data are at
        least 0 and less than the length; queries may be outside of the box.

    Attributes
    ----------
    data : float64 array of shape (n, m)
    n, m : int
        Number of points and of coordinates.
    maxes, mins : float64 arrays of shape (m,)
    leafsize : int
    boxsize : float64 array of shape (m,), or None

    Examples
    --------
    >>> from tonari.compat.scipy import KDTree
    >>> tree = KDTree([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]])
    >>> tree.query([0.0, 0.0], k=2)
    (array([0., 5.]), array([0, 1]))
    >>> tree.query_ball_point([3.0, 4.0], r=5.0)
    [0, 1, 2]
    """

    @not_compiled
    def __init__(
        self,
        data: Any,
        leafsize: int = 10,
        compact_nodes: bool = True,
        copy_data: bool = False,
        balanced_tree: bool = True,
        boxsize: Any = None,
    ) -> None:
        super().__init__(data, leafsize, compact_nodes, copy_data, balanced_tree, boxsize)
