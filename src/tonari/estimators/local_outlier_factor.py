"""`tonari.estimators.LocalOutlierFactor`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Real
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from tonari.core.results.neighbors import Neighbors
from tonari.core.rows.slices import cut
from tonari.estimators.bases.nearest import Nearest
from tonari.estimators.predictions.votes import Float64, Values, rows_at_once
from tonari.inputs import parse_memory

_Method = TypeVar("_Method", bound=Callable[..., Any])
_AUTO_OFFSET = -1.5  # scikit-learn's offset for contamination="auto"
_TINY = 1e-10  # added to mean distances, as in scikit-learn, so that duplicate rows have a finite density
_INCORRECT = -1e7  # scikit-learn warns about duplicate rows if a negative outlier factor is below this


def _for_novelty(wanted: bool, reason: str) -> Callable[[_Method], _Method]:
    """Return a decorator that makes a method available only for one value of `novelty`, as in scikit-learn."""

    def check(estimator: Any) -> bool:
        if bool(estimator.novelty) != wanted:
            raise AttributeError(reason)
        return True

    return cast("Callable[[_Method], _Method]", available_if(check))


_ONLY_FITTED = (
    "{} is not available when novelty=False: use fit_predict or negative_outlier_factor_, or set novelty=True"
)
_ONLY_NEW = "fit_predict is not available when novelty=True: use predict for new rows, or set novelty=False"


class LocalOutlierFactor(OutlierMixin, Nearest):
    """Find outliers by their local density, with the interface of ``sklearn.neighbors.LocalOutlierFactor``.

    The reachability distance from a row to a neighbour is the larger of two distances: from the row to the neighbour,
    and from the neighbour to its own k-th neighbour. The local reachability density of a row is the inverse of its mean
    reachability distance to its k nearest neighbours. The outlier factor is the mean density of the neighbours divided
    by the density of the row: about 1 for inliers, larger for outliers.

    Parameters
    ----------
    n_neighbors : int
        Neighbours per row. It is reduced to the number of other fitted rows if it is larger, with a warning if it
        exceeds the number of fitted rows.
    algorithm, leaf_size, metric, p, metric_params, n_jobs, device
        As for :class:`NearestNeighbors`.
    contamination : "auto" or float
        The share of outliers among the fitted rows, above 0 and at most 0.5; with "auto", rows with a factor above 1.5
        are outliers.
    novelty : bool
        False: outliers among the fitted rows, by :meth:`fit_predict`. True: outliers among new rows, by
        :meth:`predict`, :meth:`decision_function` and :meth:`score_samples`.
    memory : int or str, optional
        As for :func:`tonari.search`. It does not include the lists of neighbours, n_samples times n_neighbors entries.

    Attributes
    ----------
    negative_outlier_factor_ : float32 or float64 of shape (n_samples,)
        The factor of each fitted row, multiplied by -1; float32 unless X is float64.
    n_neighbors_ : int
        The number of neighbours per row after any reduction.
    offset_ : float
        Rows with a smaller negative factor are outliers.
    n_samples_fit_, n_features_in_, feature_names_in_, effective_metric_
        As for :class:`NearestNeighbors`.

    Notes
    -----
    Densities are computed in float64 from exact distances and rounded once at the end; of rows at equal distances, the
    ones with smaller row numbers are neighbours. scikit-learn computes with the dtype of X.

    Examples
    --------
    >>> import numpy as np
    >>> from tonari.estimators import LocalOutlierFactor
    >>> X = np.array([[-1.1], [0.2], [101.1], [0.3]])
    >>> factor = LocalOutlierFactor(n_neighbors=2)
    >>> factor.fit_predict(X).tolist(), factor.negative_outlier_factor_.round(4).tolist()
    ([1, 1, -1, 1], [-0.9821, -1.037, -73.3697, -0.9821])
    """

    def __init__(
        self,
        n_neighbors: int = 20,
        *,
        algorithm: str = "auto",
        leaf_size: int = 30,
        metric: Any = "minkowski",
        p: float = 2,
        metric_params: dict[str, Any] | None = None,
        contamination: Any = "auto",
        novelty: bool = False,
        n_jobs: int | None = None,
        device: Any = "auto",
        memory: int | str | None = None,
    ) -> None:
        self.n_neighbors, self.contamination, self.novelty = n_neighbors, contamination, novelty
        self._set(algorithm, leaf_size, metric, p, metric_params, n_jobs, device, memory)

    def fit(self, X: Any, y: Any = None) -> LocalOutlierFactor:
        """Compute the outlier factor of each row from its neighbours among the other rows.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            At least two rows.
        y : ignored

        Raises
        ------
        ValueError
            A parameter has no counterpart in tonari, X is not finite, or it has a single row.
        """
        share = _check_contamination(self.contamination)
        self._keep(X)
        if self.n_neighbors > self.n_samples_fit_:
            warnings.warn(
                f"n_neighbors ({self.n_neighbors}) is greater than the total number of samples "
                f"({self.n_samples_fit_}). n_neighbors will be set to (n_samples - 1) for estimation.",
                stacklevel=2,
            )
        self.n_neighbors_ = max(1, min(self.n_neighbors, self.n_samples_fit_ - 1))
        found = self._lists(None, self.n_neighbors_)
        self._farthest = found.distances[:, -1].astype(np.float64)
        self._density = self._densities(found)
        self.negative_outlier_factor_ = self._negative_factors(found, self._density)
        scores = self.negative_outlier_factor_
        self.offset_ = _AUTO_OFFSET if share is None else np.percentile(scores, 100.0 * share)
        if scores.min() < _INCORRECT and not self.novelty:
            warnings.warn(
                "Duplicate values are leading to incorrect results. Increase the number of neighbors for more accurate "
                "results.",
                stacklevel=2,
            )
        return self

    @_for_novelty(False, _ONLY_NEW)
    def fit_predict(self, X: Any, y: Any = None) -> Values:
        """Fit rows, and return 1 for inliers and -1 for outliers among them; only with ``novelty=False``."""
        self.fit(X)
        return np.where(self.negative_outlier_factor_ < self.offset_, -1, 1)

    @_for_novelty(True, _ONLY_FITTED.format("predict"))
    def predict(self, X: Any = None) -> Values:
        """Return 1 for inliers and -1 for outliers among new rows; only with ``novelty=True``."""
        return np.where(self.decision_function(X) < 0, -1, 1)

    @_for_novelty(True, _ONLY_FITTED.format("decision_function"))
    def decision_function(self, X: Any) -> Any:
        """Return :meth:`score_samples` minus ``offset_``: below 0 for outliers. Only with ``novelty=True``."""
        return self.score_samples(X) - self.offset_

    @_for_novelty(True, _ONLY_FITTED.format("score_samples"))
    def score_samples(self, X: Any) -> Any:
        """Return the outlier factor of new rows, multiplied by -1; only with ``novelty=True``.

        Parameters
        ----------
        X : array of shape (n_queries, n_features)
            New rows; if a new row equals a fitted row, the fitted row is one of its neighbours. None: the fitted rows,
            as in ``negative_outlier_factor_``.

        Returns
        -------
        float32 or float64 of shape (n_queries,)
            float64 if X or the fitted rows are float64.
        """
        check_is_fitted(self)
        found = self._lists(X, self.n_neighbors_)
        return self._negative_factors(found, self._densities(found))

    def _densities(self, found: Neighbors) -> Float64:
        """Return the local reachability density of each row, from its neighbours, as float64 of shape (m,)."""
        mean = np.empty(len(found.indices))
        for part in self._parts(found):
            reach = np.maximum(found.distances[part], self._farthest[found.indices[part]])
            mean[part] = reach.mean(axis=1)
        return 1.0 / (mean + _TINY)

    def _negative_factors(self, found: Neighbors, density: Float64) -> Any:
        """Return the negated outlier factor of each row, from its neighbours and its own density, of shape (m,)."""
        factors = np.empty(len(found.indices), found.distances.dtype)
        for part in self._parts(found):
            factors[part] = -(self._density[found.indices[part]] / density[part, None]).mean(axis=1)
        return factors

    def _parts(self, found: Neighbors) -> list[slice]:
        m, k = found.indices.shape
        return cut(m, rows_at_once(k, parse_memory(self.memory)))


def _check_contamination(contamination: Any) -> float | None:
    """Check the share of outliers and return it as a float, or None for "auto".

    >>> _check_contamination(0.7)
    Traceback (most recent call last):
    ValueError: contamination=0.7: expected 'auto', or a number above 0 and at most 0.5
    """
    if isinstance(contamination, str) and contamination == "auto":
        return None
    if not isinstance(contamination, Real) or not 0 < float(contamination) <= 0.5:
        raise ValueError(f"contamination={contamination!r}: expected 'auto', or a number above 0 and at most 0.5")
    return float(contamination)
