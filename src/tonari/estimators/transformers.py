"""`tonari.estimators.KNeighborsTransformer` and `RadiusNeighborsTransformer`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from tonari.api.graphs import knn_graph
from tonari.estimators.bases.nearest import Nearest, matrix_of
from tonari.estimators.bases.searching import Searching, check_mode
from tonari.estimators.bases.within import Within
from tonari.estimators.settings import check_n_neighbors

if TYPE_CHECKING:
    import scipy.sparse
    from typing_extensions import Self


class _Transforming(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Searching):
    """The common base of both transformers."""

    mode: str

    def fit(self, X: Any, y: Any = None) -> Self:
        """Store the rows to search; see :meth:`NearestNeighbors.fit`."""
        check_mode(self.mode)
        self._keep(X)
        self._n_features_out = self.n_samples_fit_
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class KNeighborsTransformer(_Transforming, Nearest):
    """Build the sparse graph of nearest neighbours, with the interface of ``sklearn.neighbors.KNeighborsTransformer``.

    Estimators with ``metric="precomputed"`` accept this graph, and ``scanpy.pp.neighbors(transformer=...)`` accepts the
    transformer.

    Parameters
    ----------
    mode : "distance" or "connectivity"
        The values of the matrix: distances, or 1. As in scikit-learn, a row has n_neighbors + 1 entries with
        "distance" and n_neighbors entries with "connectivity"; in :meth:`fit_transform` these include the row itself.
    n_neighbors : int
    algorithm, leaf_size, metric, p, metric_params, n_jobs, device, memory
        As for :class:`NearestNeighbors`.

    Attributes
    ----------
    n_samples_fit_, n_features_in_, feature_names_in_, effective_metric_
        As for :class:`NearestNeighbors`.

    Notes
    -----
    :meth:`fit_transform` puts each row first in its own list by row number, at distance exactly 0, also among
    duplicates. :meth:`transform` treats its rows as new points: if a row equals several fitted rows, these are at
    distance 0, with the smallest row number first.

    Examples
    --------
    >>> import numpy as np
    >>> from tonari.estimators import KNeighborsTransformer
    >>> graph = KNeighborsTransformer(n_neighbors=1).fit_transform(np.array([[0.0], [1.0], [3.0]]))
    >>> graph.indices.reshape(3, 2).tolist(), graph.data.reshape(3, 2).tolist()
    ([[0, 1], [1, 0], [2, 1]], [[0.0, 1.0], [0.0, 1.0], [0.0, 2.0]])
    """

    def __init__(
        self,
        *,
        mode: str = "distance",
        n_neighbors: int = 5,
        algorithm: str = "auto",
        leaf_size: int = 30,
        metric: Any = "minkowski",
        p: float = 2,
        metric_params: dict[str, Any] | None = None,
        n_jobs: int | None = None,
        device: Any = "auto",
        memory: int | str | None = None,
    ) -> None:
        self.mode, self.n_neighbors = mode, n_neighbors
        self._set(algorithm, leaf_size, metric, p, metric_params, n_jobs, device, memory)

    def transform(self, X: Any) -> scipy.sparse.csr_matrix:
        """Build the graph from new rows to the fitted rows: a matrix of shape (n_queries, n_samples_fit).

        Raises
        ------
        ValueError
            Fewer rows were fitted than a row of the matrix has entries.
        """
        return self.kneighbors_graph(X, self._entries(), self.mode)  # type: ignore[arg-type]

    def fit_transform(self, X: Any, y: Any = None) -> scipy.sparse.csr_matrix:
        """Fit rows and build their graph, a matrix of shape (n_samples, n_samples)."""
        self.fit(X)
        k = check_n_neighbors(self._entries(), self.n_samples_fit_, without_self=False)
        graph = knn_graph(self._rows.array, k, include_self=True, **self._how())
        return matrix_of(self._complete(graph.lists.found), self.n_samples_fit_, self.mode)

    def _entries(self) -> int:
        """Return the number of entries in a row of the matrix."""
        return self.n_neighbors + (self.mode == "distance")


class RadiusNeighborsTransformer(_Transforming, Within):
    """Build the sparse graph of neighbours within a radius, as ``sklearn.neighbors.RadiusNeighborsTransformer`` does.

    Estimators with ``metric="precomputed"`` accept this graph.

    Parameters
    ----------
    mode : "distance" or "connectivity"
        The values of the matrix: distances, or 1.
    radius : float
        A row is a neighbour if its distance is at most this.
    algorithm, leaf_size, metric, p, metric_params, n_jobs, device, memory
        As for :class:`NearestNeighbors`. `memory` does not include the graph.

    Attributes
    ----------
    n_samples_fit_, n_features_in_, feature_names_in_, effective_metric_
        As for :class:`NearestNeighbors`.

    Notes
    -----
    :meth:`transform` treats its rows as new points, and so does :meth:`fit_transform`: each row finds itself, at
    distance 0. The entries of a row are in order of (distance, row number).

    Examples
    --------
    >>> import numpy as np
    >>> from tonari.estimators import RadiusNeighborsTransformer
    >>> graph = RadiusNeighborsTransformer(radius=1.0).fit_transform(np.array([[0.0], [1.0], [3.0]]))
    >>> graph.indptr.tolist(), graph.indices.tolist(), graph.data.tolist()
    ([0, 2, 4, 5], [0, 1, 1, 0, 2], [0.0, 1.0, 0.0, 1.0, 0.0])
    """

    def __init__(
        self,
        *,
        mode: str = "distance",
        radius: float = 1.0,
        algorithm: str = "auto",
        leaf_size: int = 30,
        metric: Any = "minkowski",
        p: float = 2,
        metric_params: dict[str, Any] | None = None,
        n_jobs: int | None = None,
        device: Any = "auto",
        memory: int | str | None = None,
    ) -> None:
        self.mode, self.radius = mode, radius
        self._set(algorithm, leaf_size, metric, p, metric_params, n_jobs, device, memory)

    def transform(self, X: Any) -> scipy.sparse.csr_matrix:
        """Build the graph from new rows to the fitted rows: a matrix of shape (n_queries, n_samples_fit)."""
        return self.radius_neighbors_graph(X, mode=self.mode)  # type: ignore[arg-type]

    def fit_transform(self, X: Any, y: Any = None) -> scipy.sparse.csr_matrix:
        """Fit rows and build their graph, a matrix of shape (n_samples, n_samples)."""
        return self.fit(X).transform(X)
