"""The common base of the estimators: rows checked by scikit-learn, and an Index of them.

A fitted estimator stores the rows, as in scikit-learn, and builds the Index at its first search. A graph of the rows
themselves (``kneighbors()`` without queries, ``KNeighborsTransformer.fit_transform``) needs no Index.
"""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from tonari.api.index.index import Index
from tonari.estimators.settings import DTYPES, method_of, metric_of, threads_of
from tonari.inputs import parse_memory
from tonari.metrics.changed import check_weights as check_column_weights


class Searching(BaseEstimator):
    """The base of the estimators; subclasses define the parameters that it reads."""

    algorithm: str
    leaf_size: int
    p: float | None
    metric: str
    metric_params: dict[str, Any] | None
    n_jobs: int | None
    device: Any
    memory: int | str | None

    def _check_sizes(self) -> None:
        """Check the numbers of neighbours and the radii among the parameters."""

    def _keep(self, X: Any, y: Any = "no_validation", **checks: Any) -> Any:
        """Check parameters, rows and, if it is set, y; store the rows and return y."""
        metric = metric_of(self.metric, self.p, self.metric_params)
        method_of(self.algorithm, self.leaf_size)
        threads_of(self.n_jobs)
        parse_memory(self.memory)
        checks |= {"dtype": DTYPES}
        self._check_sizes()
        if isinstance(y, str):
            X = validate_data(self, X, **checks)
        else:
            X, y = validate_data(self, X, y, **checks)
        self._rows = Rows(X)
        self.n_samples_fit_ = len(X)
        self.effective_metric_ = metric
        self.effective_metric_params_: dict[str, Any] = dict(self.metric_params or {})
        check_column_weights(metric, self.effective_metric_params_.get("w"))
        return y

    def _how(self) -> dict[str, Any]:
        """The keyword arguments of a search."""
        return {
            "metric": self.effective_metric_,
            "weights": self.effective_metric_params_.get("w"),
            "method": method_of(self.algorithm, self.leaf_size),
            "device": self.device,
            "threads": threads_of(self.n_jobs),
            "memory": self.memory,
        }

    def _prepared(self) -> Index:
        """Return the Index of the fitted rows."""
        return self._rows.prepared(self._how())

    def _queries(self, X: Any) -> Any:
        """Check that the estimator is fitted, and return the rows of X; None remains None, the fitted rows."""
        check_is_fitted(self)
        return None if X is None else validate_data(self, X, dtype=DTYPES, reset=False)


class Rows:
    """The fitted rows, and their Index after the first search."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self._index: Index | None = None

    def prepared(self, how: dict[str, Any]) -> Index:
        """Return the Index."""
        if self._index is None:
            self._index = Index(self.array, **how)
        return self._index


def check_mode(mode: Any) -> None:
    """Refuse an unknown mode."""
    if mode not in ("connectivity", "distance"):
        raise ValueError(f"mode={mode!r}: expected 'connectivity' or 'distance'")
