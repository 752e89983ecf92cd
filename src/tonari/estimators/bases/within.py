"""The base class of the estimators with `radius`, which find all rows within it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tonari.api.radius import radius_graph
from tonari.core.results.radius_neighbors import RadiusNeighbors
from tonari.estimators.bases.searching import Searching, check_mode
from tonari.estimators.predictions.votes import cut_up
from tonari.estimators.settings import check_radius, threads_of

if TYPE_CHECKING:
    import scipy.sparse


class Within(Searching):
    """Base class of the estimators that find all rows within a radius."""

    radius: float

    def _check_sizes(self) -> None:
        super()._check_sizes()
        check_radius(self.radius)

    def _within(self, X: Any, radius: Any) -> RadiusNeighbors:
        """Return the fitted rows within a radius of each row of X.

        If X is None, the queries are the fitted rows, which do not find themselves.
        """
        queries = self._queries(X)
        radius = self.radius if radius is None else radius
        if queries is None:
            return radius_graph(self._rows.array, radius, **self._how())
        return self._prepared().radius_search(queries, radius, threads=threads_of(self.n_jobs))

    def radius_neighbors(
        self, X: Any = None, radius: Any = None, return_distance: bool = True, sort_results: bool = False
    ) -> Any:
        """Find all fitted rows within a radius of each row of X.

        Parameters
        ----------
        X : array of shape (n_queries, n_features), optional
            The query rows. Default: the fitted rows. Each of them is then excluded from its own list by row number, so
            its duplicates are neighbours.
        radius : float or array of shape (n_queries,), optional
            A row is a neighbour if its returned distance is at most this; for "sqeuclidean" it is compared with squared
            distances. Default: `radius` of the estimator.
        return_distance : bool
            Whether to return distances in addition to indices.
        sort_results : bool
            Without effect, since lists are always in order of distance; refused without `return_distance`, as in
            scikit-learn.

        Returns
        -------
        distances : object array of shape (n_queries,)
            For each query an array of distances in ascending order: float64 if X or the fitted rows are float64, else
            float32. Only with ``return_distance=True``.
        indices : object array of shape (n_queries,)
            For each query an int64 array with row numbers of fitted rows; in ascending order at equal distances. The
            arrays are views of one array.

        Raises
        ------
        ValueError
            The radius is negative or NaN, or X is not finite or has another number of columns.
        sklearn.exceptions.NotFittedError
            The estimator is not fitted.

        Notes
        -----
        `memory` does not include the result, whose size is unknown before the search. :func:`tonari.radius_count`
        returns the size.
        """
        if sort_results and not return_distance:
            raise ValueError(
                "return_distance must be True if sort_results is True; leave sort_results out, as lists are sorted"
            )
        found = self._within(X, radius)
        indices = cut_up(found.indices.astype(np.int64), found.indptr)
        return (cut_up(found.distances, found.indptr), indices) if return_distance else indices

    def radius_neighbors_graph(
        self,
        X: Any = None,
        radius: Any = None,
        mode: Literal["connectivity", "distance"] = "connectivity",
        sort_results: bool = False,
    ) -> scipy.sparse.csr_matrix:
        """Build the sparse matrix with an entry (i, j) if fitted row j is within a radius of row i of X.

        Parameters
        ----------
        X, radius
            As for :meth:`radius_neighbors`.
        mode : "connectivity" or "distance"
            The stored values: 1, or the distance. Distances of 0 are stored too.
        sort_results : bool
            Without effect, since entries are always in order of distance.

        Returns
        -------
        scipy.sparse.csr_matrix of shape (n_queries, n_samples_fit)
            The entries of a row are in order of distance, for both modes.
        """
        check_mode(mode)
        from scipy.sparse import csr_matrix

        found = self._within(X, radius)
        values = found.distances if mode == "distance" else np.ones(len(found.indices))
        shape = len(found.indptr) - 1, self.n_samples_fit_
        return csr_matrix((values, found.indices, found.indptr), shape=shape)
