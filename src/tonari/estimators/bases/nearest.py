"""The base class of the estimators with `n_neighbors`, which find the k nearest rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tonari.api.graphs import knn_graph
from tonari.core.results.neighbors import Neighbors
from tonari.estimators.bases.searching import Searching, check_mode
from tonari.estimators.settings import check_n_neighbors, threads_of
from tonari.graph.knn_graph import KNNGraph

if TYPE_CHECKING:
    import scipy.sparse


class Nearest(Searching):
    """Base class of the estimators that find the k nearest rows."""

    n_neighbors: int

    def _check_sizes(self) -> None:
        super()._check_sizes()
        check_n_neighbors(self.n_neighbors, np.iinfo(np.int64).max, without_self=False)

    def _lists(self, X: Any, n_neighbors: int | None) -> Neighbors:
        """Return the k nearest fitted rows of each row of X.

        If X is None, the queries are the fitted rows, which do not find themselves.
        """
        queries = self._queries(X)
        k = self.n_neighbors if n_neighbors is None else n_neighbors
        k = check_n_neighbors(k, self.n_samples_fit_, without_self=X is None)
        if queries is None:
            graph: KNNGraph = knn_graph(self._rows.array, k, **self._how())
            found = graph.lists.found
        else:
            found = self._prepared().search(queries, k, threads=threads_of(self.n_jobs))
        return self._complete(found)

    def kneighbors(self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True) -> Any:
        """Find the nearest fitted rows of each row of X.

        Parameters
        ----------
        X : array of shape (n_queries, n_features), optional
            The query rows. Default: the fitted rows. Each of them is then excluded from its own list by row number, so
            its duplicates are neighbours.
        n_neighbors : int, optional
            Neighbours per row. Default: `n_neighbors` of the estimator.
        return_distance : bool
            Whether to return distances in addition to indices.

        Returns
        -------
        distances : float32 or float64 of shape (n_queries, n_neighbors)
            Distances in ascending order; float64 if X or the fitted rows are float64. Only with
            ``return_distance=True``.
        indices : int64 of shape (n_queries, n_neighbors)
            Row numbers of fitted rows; in ascending order at equal distances.

        Raises
        ------
        ValueError
            n_neighbors exceeds the number of fitted rows, or X is not finite or has another number of columns.
        sklearn.exceptions.NotFittedError
            The estimator is not fitted.
        """
        found = self._lists(X, n_neighbors)
        indices = found.indices.astype(np.int64)
        return (found.distances, indices) if return_distance else indices

    def kneighbors_graph(
        self,
        X: Any = None,
        n_neighbors: int | None = None,
        mode: Literal["connectivity", "distance"] = "connectivity",
    ) -> scipy.sparse.csr_matrix:
        """Build the sparse matrix with an entry (i, j) if fitted row j is one of the nearest neighbours of row i of X.

        Parameters
        ----------
        X, n_neighbors
            As for :meth:`kneighbors`.
        mode : "connectivity" or "distance"
            The stored values: 1, or the distance. Distances of 0 are stored too.

        Returns
        -------
        scipy.sparse.csr_matrix of shape (n_queries, n_samples_fit)
            The entries of a row are in order of distance.
        """
        check_mode(mode)
        found = self._lists(X, n_neighbors)
        return matrix_of(found, self.n_samples_fit_, mode)


def matrix_of(found: Neighbors, columns: int, mode: str) -> scipy.sparse.csr_matrix:
    """Return neighbour lists as a sparse matrix whose rows keep the order of the lists; `mode` selects the values."""
    from scipy.sparse import csr_matrix

    distances, indices = found
    m, k = indices.shape
    values = distances.ravel() if mode == "distance" else np.ones(m * k)
    ends = np.arange(0, m * k + 1, k)
    return csr_matrix((values, indices.ravel(), ends), shape=(m, columns))
