"""`tonari.estimators.NearestNeighbors`."""

from __future__ import annotations

from typing import Any

from tonari.core.hints import Hinted
from tonari.estimators.bases.nearest import Nearest
from tonari.estimators.bases.within import Within


class NearestNeighbors(Nearest, Within, Hinted):
    """Find nearest neighbours exactly, with the interface of ``sklearn.neighbors.NearestNeighbors``.

    Parameters
    ----------
    n_neighbors : int
        Neighbours per row; the argument of :meth:`kneighbors` overrides it.
    radius : float
        Radius of :meth:`radius_neighbors`, whose argument overrides it.
    algorithm : "auto", "brute" or "kd_tree"
        "auto" uses the algorithm that is expected to be faster; all give the same bits. "ball_tree" is refused.
    leaf_size : int
        Only the default of 30 is accepted, since trees choose the size of their leaves themselves.
    metric : str or callable
        "minkowski" with `p`; "euclidean", "sqeuclidean", "cosine", "correlation", "manhattan", "chebyshev",
        "canberra", "chi2", "haversine", "hellinger", "mahalanobis", "seuclidean", "braycurtis" for rows that each sum
        to one, "nan_euclidean" for rows with NaN, and their other names (``tonari.metrics.ALIASES``). "precomputed": X
        is the (n, n) matrix of distances, and queries are rows of distances to the fitted rows. A function of two rows,
        as in scikit-learn, is called for each pair, which is slow; tonari.search takes functions of a row and a block
        of rows. Others are refused with the nearest fix.
    p : float
        0.5, 1, 1.5, 2, 3, 4 or inf, for "minkowski".
    metric_params : dict, optional
        ``{"w": weights}``: a weight for each column, as `weights` of :func:`tonari.search`. For "mahalanobis"
        ``{"VI": inverse covariance}`` or ``{"V": covariance}``; for "seuclidean" ``{"V": variances}``. These two
        metrics need their parameters: tonari does not compute them from the rows. For a function, the keyword arguments
        of its calls.
    n_jobs : int, optional
        Threads on the CPU. None and -1: chosen by the amount of work, at most all processors; -2: at most all
        processors but one.
    device : str or list of str
        As for :func:`tonari.search`. With "cuda", rows in host memory are searched on a GPU.
    memory : int or str, optional
        As for :func:`tonari.search`.

    Attributes
    ----------
    n_samples_fit_, n_features_in_ : int
        Number of fitted rows and columns.
    feature_names_in_ : array of str
        Names of the columns, if X had names.
    effective_metric_ : str
        tonari's name of the metric.

    Notes
    -----
    The fitted rows are not copied. They must not change; a search may raise RuntimeError if they have changed. float64,
    float32, float16, uint8 and int8 keep their dtype; other dtypes become float64.

    Examples
    --------
    >>> import numpy as np
    >>> from tonari.estimators import NearestNeighbors
    >>> nearest = NearestNeighbors(n_neighbors=1).fit(np.array([[0.0], [1.0], [3.0]]))
    >>> nearest.kneighbors([[2.5]])
    (array([[0.5]]), array([[2]]))
    >>> nearest.kneighbors(return_distance=False).ravel().tolist()
    [1, 0, 1]
    >>> nearest.radius_neighbors([[2.5]], radius=1.5)[1][0].tolist()
    [2, 1]
    """

    def __init__(
        self,
        *,
        n_neighbors: int = 5,
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
        self.n_neighbors, self.radius = n_neighbors, radius
        self._set(algorithm, leaf_size, metric, p, metric_params, n_jobs, device, memory)

    def fit(self, X: Any, y: Any = None) -> NearestNeighbors:
        """Store the rows to search.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : ignored

        Raises
        ------
        ValueError
            A parameter has no counterpart in tonari, or X is not finite.
        """
        self._keep(X)
        self._prepared()
        return self
