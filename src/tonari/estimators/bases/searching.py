"""The common base of the estimators: checks of parameters and rows, and the Index of the fitted rows.

A fitted estimator stores the rows, as in scikit-learn, and builds the Index at its first search. A graph of the fitted
rows themselves (``kneighbors()`` without X, ``KNeighborsTransformer.fit_transform``) needs no Index.
"""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from tonari.api.index.index import Index
from tonari.api.sparse.answers import are_sparse
from tonari.api.user_metrics.call import is_given
from tonari.core.results.neighbors import Neighbors
from tonari.estimators.predictions.blocks import GivenRows, Rows
from tonari.estimators.settings import DTYPES, SPARSE_DTYPES, columns_of, method_of, metric_of, searched_by, threads_of
from tonari.inputs import parse_memory
from tonari.metrics import MISSING_METRICS
from tonari.metrics.names import PRECOMPUTED
from tonari.metrics.transforms.change import change_for


class Searching(BaseEstimator):
    """Base class of all estimators; the constructors of its subclasses set the parameters that it declares."""

    algorithm: str
    leaf_size: int
    p: float | None
    metric: Any
    metric_params: dict[str, Any] | None
    n_jobs: int | None
    device: Any
    memory: int | str | None

    def _set(
        self,
        algorithm: str,
        leaf_size: int,
        metric: Any,
        p: float | None,
        metric_params: dict[str, Any] | None,
        n_jobs: int | None,
        device: Any,
        memory: int | str | None,
    ) -> None:
        """Store the parameters that all estimators share, unchanged, as scikit-learn requires of constructors."""
        self.algorithm, self.leaf_size, self.n_jobs = algorithm, leaf_size, n_jobs
        self.metric, self.p, self.metric_params = metric, p, metric_params
        self.device, self.memory = device, memory

    def _check_sizes(self) -> None:
        """Check `n_neighbors` or `radius`, in the subclasses that have these parameters; do nothing here."""

    def _keep(self, X: Any, y: Any = "no_validation", **checks: Any) -> Any:
        """Check the parameters, the rows X and, if passed, y; store the rows and return the checked y."""
        metric = metric_of(self.metric, self.p, self.metric_params, sets=are_sparse(X))
        method_of(self.algorithm, self.leaf_size)
        threads_of(self.n_jobs)
        parse_memory(self.memory)
        checks |= self._checks(X)
        self._check_sizes()
        if isinstance(y, str):
            X = validate_data(self, X, **checks)
        else:
            X, y = validate_data(self, X, y, **checks)
        if metric == PRECOMPUTED and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"metric='precomputed': X has the shape {X.shape}, expected (n, n), the distances of all "
                "rows to all rows"
            )
        self._rows = Rows(X)
        self.n_samples_fit_ = X.shape[0]
        self.effective_metric_ = metric
        self.effective_metric_params_: dict[str, Any] = dict(self.metric_params or {})
        if not is_given(metric):
            change_for(metric, **columns_of(metric, self.effective_metric_params_))
        return y

    def _how(self) -> dict[str, Any]:
        """Return the keyword arguments of tonari's searches for the parameters of this estimator."""
        return {
            "metric": searched_by(self.effective_metric_, self.effective_metric_params_),
            **columns_of(self.effective_metric_, self.effective_metric_params_),
            "method": method_of(self.algorithm, self.leaf_size),
            "device": self.device,
            "threads": threads_of(self.n_jobs),
            "memory": self.memory,
        }

    def _prepared(self) -> Index | GivenRows:
        """Return the prepared fitted rows, an Index if the metric allows it."""
        return self._rows.prepared(self._how())

    def _queries(self, X: Any) -> Any:
        """Check that the estimator is fitted, and return X as checked rows; None, for the fitted rows, remains None."""
        check_is_fitted(self)
        return None if X is None else validate_data(self, X, **self._checks(X), reset=False)

    def _complete(self, found: Neighbors) -> Neighbors:
        """Return the lists; raise an error if one lacks neighbours, as rows with NaN may have no column in common."""
        if self._takes_nan and (found.indices[:, -1] < 0).any():
            row = int((found.indices[:, -1] < 0).argmax())
            raise ValueError(
                f"X: row {row} shares a column with {int((found.indices[row] >= 0).sum())} fitted rows, expected at "
                f"least {found.indices.shape[1]}; drop such rows, or use tonari.search, which marks missing neighbours "
                "by -1"
            )
        return found

    def _checks(self, X: Any) -> dict[str, Any]:
        """Return the keyword arguments of scikit-learn's ``validate_data`` for the rows X."""
        if are_sparse(X):
            return {"accept_sparse": "csr", "dtype": SPARSE_DTYPES}
        return {"dtype": DTYPES, "ensure_all_finite": "allow-nan" if self._takes_nan else True}

    @property
    def _takes_nan(self) -> bool:
        """Whether the metric treats NaN as a missing value."""
        return isinstance(self.metric, str) and self.metric in MISSING_METRICS

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.metric == PRECOMPUTED
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self._takes_nan
        return tags


def check_mode(mode: Any) -> None:
    """Raise an error unless `mode` is "connectivity" or "distance"."""
    if mode not in ("connectivity", "distance"):
        raise ValueError(f"mode={mode!r}: expected 'connectivity' or 'distance'")
