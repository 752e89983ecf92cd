"""`tonari.estimators.KNeighborsClassifier` and `RadiusNeighborsClassifier`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, MultiOutputMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import check_classification_targets

from tonari.estimators.bases.predicting import Predicting, PredictingWithin
from tonari.estimators.bases.searching import Searching
from tonari.estimators.predictions.votes import Values, shares, shares_within, weights_of, winners, winners_within
from tonari.estimators.settings import check_weights
from tonari.inputs import parse_memory


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


_NAMED = 5  # largest number of rows that an error message lists


class RadiusNeighborsClassifier(Classifying, PredictingWithin):
    """Classify rows by the neighbours within a radius, as ``sklearn.neighbors.RadiusNeighborsClassifier`` does.

    Parameters
    ----------
    radius : float
        A row is a neighbour if its distance is at most this.
    weights : "uniform", "distance" or callable
        "distance": the weight of a neighbour is 1 / distance; if some neighbours are at distance 0, only these count. A
        callable receives an object array with the float64 distances of each query, in ascending order, and returns
        weights of the same lengths. It is called once for each block of queries.
    outlier_label : label, sequence of labels, "most_frequent" or None
        The class of an outlier, a row without neighbours or whose neighbours all have weight 0; a sequence has a label
        for each output. "most_frequent" is the class with the most fitted rows. None: an outlier raises an error.
    algorithm, leaf_size, p, metric, metric_params, n_jobs, device
        As for :class:`NearestNeighbors`.
    memory : int or str, optional
        Bytes for searches and for the neighbour lists that they find, half for each. Only the lists of one block of
        queries are in memory, so that the result is the only array that grows with the number of queries times the
        number of classes.

    Attributes
    ----------
    classes_, outputs_2d_
        As for :class:`KNeighborsClassifier`.
    outlier_label_ : list, or None
        The label of outliers for each output.
    n_samples_fit_, n_features_in_, feature_names_in_, effective_metric_
        As for :class:`NearestNeighbors`.

    Notes
    -----
    If classes have the same number of votes, the first in ``classes_`` is predicted, as in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from tonari.estimators import RadiusNeighborsClassifier
    >>> X, y = np.array([[0.0], [1.0], [3.0], [4.0]]), ["low", "low", "high", "high"]
    >>> classifier = RadiusNeighborsClassifier(radius=1.0, outlier_label="low").fit(X, y)
    >>> classifier.predict([[0.2], [3.9], [99.0]]).tolist()
    ['low', 'high', 'low']
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
        outlier_label: Any = None,
        metric_params: dict[str, Any] | None = None,
        n_jobs: int | None = None,
        device: Any = "auto",
        memory: int | str | None = None,
    ) -> None:
        self.radius, self.weights, self.outlier_label = radius, weights, outlier_label
        self._set(algorithm, leaf_size, metric, p, metric_params, n_jobs, device, memory)

    def fit(self, X: Any, y: Any) -> RadiusNeighborsClassifier:
        """Store the rows to search, and their classes.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            Classes.

        Raises
        ------
        ValueError, TypeError
            As for :meth:`NearestNeighbors.fit`; or the number of outlier labels is not the number of outputs, or their
            type is not that of the classes.
        """
        self._keep_classes(X, y)
        self.outlier_label_ = self._labels_of_outliers()
        self._prepared()
        return self

    def predict(self, X: Any) -> Values:
        """Return the class of each row, of shape (n_queries,) or (n_queries, n_outputs).

        Parameters
        ----------
        X : array of shape (n_queries, n_features), or None
            The rows to predict. None: the fitted rows, each by its neighbours among the other fitted rows.

        Raises
        ------
        ValueError
            A row has no neighbours, or only neighbours of weight 0, and `outlier_label` is None.
        """
        queries = self._queries(X)
        blocks = [
            [
                winners_within(labels, found, weights, len(classes))
                for labels, classes in zip(self._labels, self._classes, strict=True)
            ]
            for _, found, weights in self._blocks(queries)
        ]
        chosen = []
        for output, classes in enumerate(self._classes):
            won = np.concatenate([block[output] for block in blocks])
            outliers = won < 0
            self._refuse(outliers)
            predicted = classes[won]
            if outliers.any():
                predicted[outliers] = self.outlier_label_[output]  # type: ignore[index]
            chosen.append(predicted)
        return np.stack(chosen, axis=1) if self.outputs_2d_ else chosen[0]

    def predict_proba(self, X: Any) -> Any:
        """Return the share of each class among the neighbours within the radius of each row, weighted by `weights`.

        Parameters
        ----------
        X : array of shape (n_queries, n_features), or None
            As for :meth:`predict`.

        Returns
        -------
        float64 of shape (n_queries, n_classes), or a list of such arrays if there are several outputs
            Columns are in the order of ``classes_``. A row without neighbours has 1 in the column of the outlier label;
            if that label is not one of the classes, the row has zeros, and a warning is issued.

        Raises
        ------
        ValueError
            A row has no neighbours, and `outlier_label` is None.
        """
        queries = self._queries(X)
        m = self.n_samples_fit_ if queries is None else queries.shape[0]
        made, empty = [np.empty((m, len(classes))) for classes in self._classes], np.empty(m, bool)
        for part, found, weights in self._blocks(queries):
            empty[part] = np.diff(found.indptr) == 0
            for votes, labels in zip(made, self._labels, strict=True):
                votes[part] = shares_within(labels, found, weights, votes.shape[1])
        self._refuse(empty)
        if empty.any():
            for votes, classes, label in zip(made, self._classes, self.outlier_label_, strict=True):  # type: ignore[arg-type]
                if not (classes == label).any():
                    warnings.warn(
                        f"Outlier label {label} is not in training classes. All class probabilities of outliers will "
                        "be assigned with 0.",
                        stacklevel=2,
                    )
                votes[empty] = classes == label
        return made if self.outputs_2d_ else made[0]

    def _refuse(self, outliers: Values) -> None:
        """Raise an error that lists the outliers, which are rows without votes, if `outlier_label` is None."""
        if self.outlier_label_ is None and outliers.any():
            rows = np.flatnonzero(outliers)
            more = f" and {len(rows) - _NAMED} more" if len(rows) > _NAMED else ""
            raise ValueError(
                f"rows {', '.join(map(str, rows[:_NAMED]))}{more} have no neighbours of positive weight within "
                f"radius={self.radius!r}; use a larger radius, set outlier_label, or leave these rows out"
            )

    def _labels_of_outliers(self) -> list[Any] | None:
        """Check `outlier_label`, and return the label of outliers for each output, or None."""
        wanted = self.outlier_label
        if wanted is None:
            return None
        if isinstance(wanted, str) and wanted == "most_frequent":
            return [
                classes[np.bincount(each).argmax()] for each, classes in zip(self._labels, self._classes, strict=True)
            ]
        several = np.ndim(wanted) > 0
        labels = list(wanted) if several else [wanted] * len(self._classes)
        if len(labels) != len(self._classes):
            raise ValueError(
                f"outlier_label={wanted!r}: has {len(labels)} labels, expected {len(self._classes)}, one for each "
                "output"
            )
        for label, classes in zip(labels, self._classes, strict=True):
            if np.ndim(label) > 0:
                raise TypeError(f"outlier_label={wanted!r}: expected one label for each output, got {label!r}")
            if np.append(classes, label).dtype != classes.dtype:
                raise TypeError(
                    f"outlier_label={label!r}: does not fit the classes, which are {classes.dtype}; pass a label of "
                    "their type and length"
                )
        return labels
