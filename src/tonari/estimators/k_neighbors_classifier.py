"""`tonari.estimators.KNeighborsClassifier`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tonari.estimators.answers.votes import Values, shares, weights_of, winners
from tonari.estimators.bases.classifying import Classifying
from tonari.estimators.bases.predicting import Predicting
from tonari.estimators.settings import check_weights
from tonari.inputs import parse_memory


class KNeighborsClassifier(Classifying, Predicting):
    """Classify rows by their nearest neighbours, with the interface of ``sklearn.neighbors.KNeighborsClassifier``.

    Parameters
    ----------
    n_neighbors : int
    weights : "uniform", "distance" or callable
        "distance": the weight of a neighbour is 1 / distance; if some neighbours are at distance 0, only these count. A
        callable receives float64 distances of shape (n_queries, n_neighbors) and returns weights of the same shape.
    algorithm, leaf_size, p, metric, metric_params, n_jobs, device, memory
        As for :class:`NearestNeighbors`.

    Attributes
    ----------
    classes_ : array, or list of arrays
        The classes in ascending order; a list with one array for each output, if there are several.
    outputs_2d_ : bool
        Whether y had more than one column.
    n_samples_fit_, n_features_in_, feature_names_in_, effective_metric_
        As for :class:`NearestNeighbors`.

    Notes
    -----
    If classes have the same number of votes, the first in ``classes_`` is predicted, as in scikit-learn. The choice of
    the neighbours that vote is deterministic too: of rows at equal distances, the ones with smaller row numbers vote.

    Examples
    --------
    >>> import numpy as np
    >>> from tonari.estimators import KNeighborsClassifier
    >>> X, y = np.array([[0.0], [1.0], [3.0], [4.0]]), ["low", "low", "high", "high"]
    >>> KNeighborsClassifier(n_neighbors=3).fit(X, y).predict([[0.2], [3.9]]).tolist()
    ['low', 'high']
    """

    def fit(self, X: Any, y: Any) -> KNeighborsClassifier:
        """Store the rows to search, and their classes.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            Classes.
        """
        self._keep_classes(X, y)
        self._prepared()
        return self

    def predict(self, X: Any) -> Values:
        """Return the class of each row, of shape (n_queries,) or (n_queries, n_outputs).

        Parameters
        ----------
        X : array of shape (n_queries, n_features), or None
            The rows to predict. None: the fitted rows, each by its neighbours among the other fitted rows.
        """
        voted = self._voted(X, winners)
        chosen = [classes[each] for classes, each in zip(self._classes, voted, strict=True)]
        return np.stack(chosen, axis=1) if self.outputs_2d_ else chosen[0]

    def predict_proba(self, X: Any) -> Any:
        """Return the share of each class among the neighbours of each row, weighted by `weights`.

        Parameters
        ----------
        X : array of shape (n_queries, n_features), or None
            As for :meth:`predict`.

        Returns
        -------
        float64 of shape (n_queries, n_classes), or a list of such arrays if there are several outputs
            Columns are in the order of ``classes_``.
        """
        found = self._voted(X, shares)
        return found if self.outputs_2d_ else found[0]

    def _voted(self, X: Any, count: Callable[..., Values]) -> list[Values]:
        """Return the result of :func:`winners` or :func:`shares`, passed as `count`, for each output."""
        found = self._lists(X, None)
        weights, memory = weights_of(found, check_weights(self.weights)), parse_memory(self.memory)
        return [
            count(labels, found, weights, len(classes), memory)
            for labels, classes in zip(self._labels, self._classes, strict=True)
        ]
