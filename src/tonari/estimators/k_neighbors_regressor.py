"""`tonari.estimators.KNeighborsRegressor`."""

from __future__ import annotations

from typing import Any

from sklearn.base import MultiOutputMixin, RegressorMixin

from tonari.estimators.answers.votes import Values, means, weights_of
from tonari.estimators.bases.predicting import Predicting
from tonari.estimators.settings import check_weights
from tonari.inputs import parse_memory


class KNeighborsRegressor(MultiOutputMixin, RegressorMixin, Predicting):
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

    def fit(self, X: Any, y: Any) -> KNeighborsRegressor:
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
