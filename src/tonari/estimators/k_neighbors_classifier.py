"""`tonari.estimators.KNeighborsClassifier`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, MultiOutputMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import check_classification_targets

from tonari.estimators.predicting import Predicting
from tonari.estimators.settings import check_weights
from tonari.estimators.votes import Values, shares, weights_of, winners
from tonari.inputs import parse_memory


class KNeighborsClassifier(MultiOutputMixin, ClassifierMixin, Predicting):
    """Classify by the nearest neighbours, with the interface of ``sklearn.neighbors.KNeighborsClassifier``.

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
        check_weights(self.weights)
        y = self._keep(X, y, multi_output=True)
        plain = _is_plain(y)
        if not plain:
            check_classification_targets(y)
        columns = [np.unique(column, return_inverse=True) for column in y.reshape(len(y), -1).T]
        self._classes = [classes for classes, _ in columns]
        if plain and 2 * len(self._classes[0]) > len(y):
            check_classification_targets(y)  # warns if there are many classes
        self.outputs_2d_ = y.ndim == 2 and y.shape[1] != 1
        if y.ndim == 2 and not self.outputs_2d_:
            warnings.warn(
                "A column-vector y was passed when a 1d array was expected; use y.ravel()",
                DataConversionWarning,
                stacklevel=2,
            )
        self._labels = [labels.astype(np.intp) for _, labels in columns]
        self.classes_ = self._classes if self.outputs_2d_ else self._classes[0]
        self._rows.prepared(self._how())
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
        """Return the share of each class among the neighbours, by weight.

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

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows whose predicted class equals y; for X see :meth:`predict`."""
        found = self.predict(X)
        if _is_plain(y) and sample_weight is None and found.shape == y.shape and found.dtype.kind == y.dtype.kind:
            return float(np.mean(found == y))
        from sklearn.metrics import accuracy_score

        return float(accuracy_score(y, found, sample_weight=sample_weight))

    def _voted(self, X: Any, count: Callable[..., Values]) -> list[Values]:
        """Apply a function to the votes for each output."""
        found = self._lists(X, None)
        weights, memory = weights_of(found, check_weights(self.weights)), parse_memory(self.memory)
        return [
            count(labels, found, weights, len(classes), memory)
            for labels, classes in zip(self._labels, self._classes, strict=True)
        ]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


def _is_plain(y: Any) -> bool:
    """Whether y is one column of integers, booleans or text, which scikit-learn's checks of classes accept.

    For 100 rows these checks would take a third of the time of a cross-validated search.
    """
    return type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "biuU"
