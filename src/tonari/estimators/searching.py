"""The common base of the four estimators: rows checked by scikit-learn, an Index of them, and lists of neighbours.

A fitted estimator stores the rows, as in scikit-learn, and builds the Index at its first search. A graph of the rows
themselves (``kneighbors()`` without queries, ``KNeighborsTransformer.fit_transform``) needs no Index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from tonari.api.given import is_given
from tonari.api.graphs import knn_graph
from tonari.api.index.index import Index
from tonari.api.searching import search
from tonari.core.results.neighbors import Neighbors
from tonari.estimators.settings import check_n_neighbors, columns_of, method_of, metric_of, searched_by, threads_of
from tonari.metrics import PRECOMPUTED
from tonari.metrics.changed import change_for

if TYPE_CHECKING:
    import scipy.sparse

_DTYPES = (np.float64, np.float32, np.float16, np.uint8, np.int8)  # all others are converted to the first


class Searching(BaseEstimator):
    """The base of the estimators; subclasses define the parameters that it reads."""

    n_neighbors: int
    algorithm: str
    leaf_size: int
    p: float
    metric: Any
    metric_params: dict[str, Any] | None
    n_jobs: int | None
    device: Any
    memory: int | str | None

    def _keep(self, X: Any, y: Any = "no_validation", **checks: Any) -> Any:
        """Check parameters, rows and, if it is set, y; store the rows and return y."""
        metric = metric_of(self.metric, self.p, self.metric_params)
        method_of(self.algorithm, self.leaf_size)
        threads_of(self.n_jobs)
        checks |= {"dtype": _DTYPES}
        check_n_neighbors(self.n_neighbors, np.iinfo(np.int64).max, without_self=False)
        if isinstance(y, str):
            X = validate_data(self, X, **checks)
        else:
            X, y = validate_data(self, X, y, **checks)
        if metric == PRECOMPUTED and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"metric='precomputed': X has the shape {X.shape}, expected (n, n), the distances of all "
                "rows to all rows"
            )
        self._rows = Rows(X)
        self.n_samples_fit_ = len(X)
        self.effective_metric_ = metric
        self.effective_metric_params_: dict[str, Any] = dict(self.metric_params or {})
        if not is_given(metric):
            change_for(metric, **columns_of(metric, self.effective_metric_params_))
        return y

    def _how(self) -> dict[str, Any]:
        """The keyword arguments of a search."""
        return {
            "metric": searched_by(self.effective_metric_, self.effective_metric_params_),
            **columns_of(self.effective_metric_, self.effective_metric_params_),
            "method": method_of(self.algorithm, self.leaf_size),
            "device": self.device,
            "threads": threads_of(self.n_jobs),
            "memory": self.memory,
        }

    def _lists(self, X: Any, n_neighbors: int | None) -> Neighbors:
        """Return the neighbours of the rows of X; if X is None, of the fitted rows, without themselves."""
        check_is_fitted(self)
        k = self.n_neighbors if n_neighbors is None else n_neighbors
        k = check_n_neighbors(k, self.n_samples_fit_, without_self=X is None)
        if X is None:
            return knn_graph(self._rows.array, k, **self._how()).lists.found
        queries = validate_data(self, X, dtype=_DTYPES, reset=False)
        return self._rows.prepared(self._how()).search(queries, k, threads=threads_of(self.n_jobs))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.metric == PRECOMPUTED
        return tags

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
        """Build the sparse matrix with an entry (i, j) for each fitted row j among the nearest of row i of X.

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


class Rows:
    """The fitted rows, and their Index after the first search."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self._index: Index | None = None

    def prepared(self, how: dict[str, Any]) -> Index | GivenRows:
        """Return the Index; for distances that a function or a matrix gives, which no Index takes, its counterpart."""
        if is_given(how["metric"]):
            return GivenRows(self.array, how)
        if self._index is None:
            self._index = Index(self.array, **how)
        return self._index


class GivenRows:
    """The fitted rows for a metric that is a function, or the matrix of their distances."""

    def __init__(self, array: Any, how: dict[str, Any]) -> None:
        self.array, self.how = array, how

    def search(self, queries: Any, k: int, *, threads: int | None) -> Neighbors:
        """Find the k nearest fitted rows of each query; for a matrix, `queries` are distances to the fitted rows."""
        points = None if self.how["metric"] == PRECOMPUTED else self.array
        return search(queries, points, k, **self.how | {"threads": threads})


def check_mode(mode: Any) -> None:
    """Refuse an unknown mode."""
    if mode not in ("connectivity", "distance"):
        raise ValueError(f"mode={mode!r}: expected 'connectivity' or 'distance'")


def matrix_of(found: Neighbors, columns: int, mode: str) -> scipy.sparse.csr_matrix:
    """Return lists as a sparse matrix whose rows keep the order of the lists."""
    from scipy.sparse import csr_matrix

    distances, indices = found
    m, k = indices.shape
    values = distances.ravel() if mode == "distance" else np.ones(m * k)
    ends = np.arange(0, m * k + 1, k)
    return csr_matrix((values, indices.ravel(), ends), shape=(m, columns))
