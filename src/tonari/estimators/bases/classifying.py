"""The common base of both classifiers, which checks and numbers the classes and computes the score."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, MultiOutputMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import check_classification_targets

from tonari.estimators.bases.searching import Searching
from tonari.estimators.settings import check_weights


class Classifying(MultiOutputMixin, ClassifierMixin, Searching):
    """Base class of KNeighborsClassifier and RadiusNeighborsClassifier."""

    weights: Any

    def _keep_classes(self, X: Any, y: Any) -> None:
        """Check and store the rows X and, for each output, the distinct classes of y and each row's index into them."""
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
                stacklevel=3,
            )
        self._labels = [labels.astype(np.intp) for _, labels in columns]
        self.classes_ = self._classes if self.outputs_2d_ else self._classes[0]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy: the share of rows whose predicted class equals y; X is as for :meth:`predict`."""
        found = self.predict(X)
        if _is_plain(y) and sample_weight is None and found.shape == y.shape and found.dtype.kind == y.dtype.kind:
            return float(np.mean(found == y))
        from sklearn.metrics import accuracy_score

        return float(accuracy_score(y, found, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


def _is_plain(y: Any) -> bool:
    """Return whether y is a NumPy array of one dimension with integers, booleans or text.

    scikit-learn's checks accept any such y and are skipped, since for 100 rows they would take a third of the time of
    a cross-validated search.
    """
    return type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "biuU"
