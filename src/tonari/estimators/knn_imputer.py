"""`tonari.estimators.KNNImputer`."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn import impute
from sklearn.utils.validation import check_is_fitted, validate_data

from tonari.api.index.index import Index
from tonari.core.results.neighbors import Neighbors
from tonari.estimators import tuning
from tonari.estimators.predictions.votes import weights_of
from tonari.estimators.settings import threads_of

Float64 = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]


class KNNImputer(impute.KNNImputer):
    """Fill missing values from exact nearest neighbours, with the interface of ``sklearn.impute.KNNImputer``.

    A missing value is replaced by the mean of its column over those `n_neighbors` fitted rows that have a number in the
    column and are nearest by the distance "nan_euclidean".

    Parameters
    ----------
    missing_values, n_neighbors, weights, metric, copy, add_indicator, keep_empty_features
        As for scikit-learn's class. For a metric that is a function, scikit-learn's own code runs.
    n_jobs : int, optional
        Threads, as for :class:`NearestNeighbors`.
    memory : int or str, optional
        Limit on the memory of searches, as for :func:`tonari.search`. It does not include the neighbour lists that
        they return.

    Attributes
    ----------
    indicator_, n_features_in_, feature_names_in_
        As for scikit-learn's class.

    Notes
    -----
    Of rows at the same distance, the ones with smaller row numbers are chosen; scikit-learn's choice depends on its
    partial sort. If no fitted row with a number in the column has another column in common with the row to be filled,
    the column's mean is filled in, as in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from tonari.estimators import KNNImputer
    >>> KNNImputer(n_neighbors=1).fit_transform(np.array([[1.0, 10.0], [1.5, np.nan], [4.0, 40.0]])).tolist()
    [[1.0, 10.0], [1.5, 10.0], [4.0, 40.0]]
    """

    def __init__(
        self,
        *,
        missing_values: Any = np.nan,
        n_neighbors: int = 5,
        weights: Any = "uniform",
        metric: Any = "nan_euclidean",
        copy: bool = True,
        add_indicator: bool = False,
        keep_empty_features: bool = False,
        n_jobs: int | None = None,
        memory: int | str | None = None,
    ) -> None:
        super().__init__(
            missing_values=missing_values,
            n_neighbors=n_neighbors,
            weights=weights,
            metric=metric,
            copy=copy,
            add_indicator=add_indicator,
            keep_empty_features=keep_empty_features,
        )
        self.n_jobs = n_jobs
        self.memory = memory

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **impute.KNNImputer._parameter_constraints,
        "n_jobs": "no_validation",
        "memory": "no_validation",
    }

    def transform(self, X: Any) -> Any:
        """Fill the missing values of X.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_output_features)
            Without the columns that had no number in the fitted rows, unless `keep_empty_features`.
        """
        if callable(self.metric):
            return super().transform(X)
        check_is_fitted(self)
        X = validate_data(
            self,
            X,
            dtype=(np.float64, np.float32, np.float16),
            force_writeable=True,
            ensure_all_finite="allow-nan" if self._is_nan else True,
            copy=self.copy,
            reset=False,
        )
        missing = self._missing(X)
        indicator = self._transform_indicator(missing)
        used = self._valid_mask
        rows = np.flatnonzero(missing[:, used].any(axis=1))
        if len(rows):
            X[rows] = self._filled(X[rows], missing[rows])
        if self.keep_empty_features:
            X[:, ~used] = 0
        else:
            X = X[:, used]
        return self._concatenate_indicator(X, indicator)

    @property
    def _is_nan(self) -> bool:
        return isinstance(self.missing_values, float | np.floating) and bool(np.isnan(self.missing_values))

    def _missing(self, rows: Any) -> npt.NDArray[np.bool_]:
        return np.asarray(np.isnan(rows) if self._is_nan else rows == self.missing_values)

    def _filled(self, rows: Any, missing: npt.NDArray[np.bool_]) -> Any:
        """Return rows with missing values filled, except in columns without a number in any fitted row."""
        fitted, fitted_missing = self._fit_X, self._mask_fit_X
        there = np.ascontiguousarray(~fitted_missing)
        index = Index(
            np.where(fitted_missing, np.nan, fitted),
            metric="nan_euclidean",
            threads=threads_of(self.n_jobs),
            memory=self.memory,
        )
        queries, filled = np.where(missing, np.nan, rows), rows.copy()
        wanted = missing & self._valid_mask
        share = there[:, wanted.any(axis=0)].mean(axis=0).min(initial=1.0)
        most = len(fitted)
        k = min(most, int(np.ceil(self.n_neighbors / share * tuning.IMPUTED_SPARE)) + 1)
        left = np.flatnonzero(wanted.any(axis=1))
        while len(left):
            found = index.search(queries[left], k)
            again = np.zeros(len(left), bool)
            for column in np.flatnonzero(wanted[left].any(axis=0)).tolist():
                own = np.flatnonzero(wanted[left, column])
                near, whole = self._donors(Neighbors(*(part[own] for part in found)), there[:, column], k == most)
                again[own[~whole]] = True
                known = near if whole.all() else Neighbors(*(part[whole] for part in near))
                filled[left[own[whole]], column] = self._means(known, column)
                wanted[left[own[whole]], column] = False
            left, k = left[again], min(most, k * 4)
        return filled

    def _donors(self, found: Neighbors, there: npt.NDArray[np.bool_], everything: bool) -> tuple[Neighbors, Any]:
        """Select from each neighbour list the nearest rows that have a value in the column to fill.

        Parameters
        ----------
        found : Neighbors of shape (m, k)
        there : bool array of shape (n,)
            Whether each fitted row has a number in the column.
        everything : bool
            Whether each list contains all fitted rows.

        Returns
        -------
        near : Neighbors
            At most n_neighbors rows for each list; missing ones have index -1.
        whole : bool array of shape (m,)
            Whether each selection is final. If not, a search for more neighbours is needed.
        """
        distances, indices = found
        k = min(self.n_neighbors, int(there.sum()))
        gives = (indices >= 0) & there[np.maximum(indices, 0)]
        rank = np.cumsum(gives, axis=1) - 1
        first = gives & (rank < k)
        near = Neighbors(np.full((len(indices), k), np.nan, np.float64), np.full((len(indices), k), -1, np.int64))
        row, place = np.nonzero(first)
        near.distances[row, rank[row, place]] = distances[row, place]
        near.indices[row, rank[row, place]] = indices[row, place]
        whole = (gives.sum(axis=1) >= k) | (indices[:, -1] < 0) | everything
        return near, whole

    def _means(self, near: Neighbors, column: int) -> Float64:
        """Return the weighted mean of a column over the rows in each list; for an empty list over all fitted rows."""
        values = self._fit_X[:, column].astype(np.float64)
        donors = values[near.indices]
        factors = self.weights(near.distances) if callable(self.weights) else weights_of(near, self.weights)
        weights = (
            np.ones(donors.shape) if factors is None else np.broadcast_to(np.nan_to_num(factors, nan=0.0), donors.shape)
        )
        weights = np.where(near.indices < 0, 0.0, weights)
        sums = weights.sum(axis=1)
        alone = (near.indices < 0).all(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            means = (np.where(near.indices < 0, 0.0, donors) * weights).sum(axis=1) / sums
        means[alone] = values[~self._mask_fit_X[:, column]].mean()
        return np.asarray(means)
