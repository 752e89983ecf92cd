"""`tonari.estimators.KNeighborsRegressor` and `RadiusNeighborsRegressor`."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from tonari.estimators.bases.predicting import Predicting, PredictingWithin
from tonari.estimators.bases.searching import Searching
from tonari.estimators.predictions.votes import Values, means, means_within, weights_of
from tonari.estimators.settings import check_weights
from tonari.inputs import parse_memory

if TYPE_CHECKING:
    from typing_extensions import Self


class _Regressing(MultiOutputMixin, RegressorMixin, Searching):
    """The common base of both regressors, which stores the values."""

    weights: Any

    def fit(self, X: Any, y: Any) -> Self:
        """Store the rows to search, and their values.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples,) or (n_samples, n_outputs)
        """
        check_weights(self.weights)
        self._y = self._keep(X, y, multi_output=True, y_numeric=True)
        self._prepared()
        return self


class KNeighborsRegressor(_Regressing, Predicting):
    """Predict the mean value of the nearest neighbours, as ``sklearn.neighbors.KNeighborsRegressor`` does.

    Parameters
    ----------
    n_neighbors : int
    weights : "uniform", "distance" or callable
        As for :class:`KNeighborsClassifier`.
    algorithm, leaf_size, p, metric, metric_params, n_jobs, device, memory
        As for :class:`NearestNeighbors`.

    Attributes
    ----------
    n_samples_fit_, n_features_in_, feature_names_in_, effective_metric_
        As for :class:`NearestNeighbors`.

    Examples
    --------
    >>> import numpy as np
    >>> from tonari.estimators import KNeighborsRegressor
    >>> X, y = np.array([[0.0], [1.0], [3.0]]), [0.0, 1.0, 3.0]
    >>> KNeighborsRegressor(n_neighbors=2).fit(X, y).predict([[0.2], [2.5]]).tolist()
    [0.5, 2.0]
    """

    def predict(self, X: Any) -> Values:
        """Return the weighted mean of the neighbours' values, float64 of shape (n_queries,) or (n_queries, n_outputs).

        Parameters
        ----------
        X : array of shape (n_queries, n_features), or None
            The rows to predict. None: the fitted rows, each by its neighbours among the other fitted rows.
        """
        found = self._lists(X, None)
        weights = weights_of(found, check_weights(self.weights))
        values = means(self._y.reshape(len(self._y), -1), found, weights, parse_memory(self.memory))
        return values if self._y.ndim == 2 else values[:, 0]


class RadiusNeighborsRegressor(_Regressing, PredictingWithin):
    """Predict the mean value of the neighbours within a radius, as ``sklearn.neighbors.RadiusNeighborsRegressor`` does.

    Parameters
    ----------
    radius, weights, memory
        As for :class:`RadiusNeighborsClassifier`.
    algorithm, leaf_size, p, metric, metric_params, n_jobs, device
        As for :class:`NearestNeighbors`.

    Attributes
    ----------
    n_samples_fit_, n_features_in_, feature_names_in_, effective_metric_
        As for :class:`NearestNeighbors`.

    Examples
    --------
    >>> import numpy as np
    >>> from tonari.estimators import RadiusNeighborsRegressor
    >>> X, y = np.array([[0.0], [1.0], [3.0]]), [0.0, 1.0, 3.0]
    >>> RadiusNeighborsRegressor(radius=1.0).fit(X, y).predict([[0.2], [2.5]]).tolist()
    [0.5, 3.0]
    """

    def __init__(
        self,
        radius: float = 1.0,
        *,
        weights: Any = "uniform",
        algorithm: str = "auto",
        leaf_size: int = 30,
        p: float = 2,
        metric: Any = "minkowski",
        metric_params: dict[str, Any] | None = None,
        n_jobs: int | None = None,
        device: Any = "auto",
        memory: int | str | None = None,
    ) -> None:
        self.radius, self.weights = radius, weights
        self._set(algorithm, leaf_size, metric, p, metric_params, n_jobs, device, memory)

    def predict(self, X: Any) -> Values:
        """Return the weighted mean of the neighbours' values, float64 of shape (n_queries,) or (n_queries, n_outputs).

        For a row without neighbours the mean is NaN, and a warning is issued.

        Parameters
        ----------
        X : array of shape (n_queries, n_features), or None
            The rows to predict. None: the fitted rows, each by its neighbours among the other fitted rows.
        """
        check_is_fitted(self)
        values = self._y.reshape(len(self._y), -1)
        blocks = self._blocks(self._queries(X))
        means = np.concatenate([means_within(values, found, weights) for _, found, weights in blocks])
        if np.isnan(means).any():
            warnings.warn(
                "One or more samples have no neighbors within specified radius; predicting NaN.", stacklevel=2
            )
        return means if self._y.ndim == 2 else means[:, 0]
