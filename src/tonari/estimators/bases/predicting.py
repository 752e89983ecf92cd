"""The common base of KNeighborsClassifier and KNeighborsRegressor, with their constructor."""

from __future__ import annotations

from typing import Any

from tonari.estimators.bases.nearest import Nearest


class Predicting(Nearest):
    """Base class of the estimators that predict from the k nearest rows."""

    def __init__(
        self,
        n_neighbors: int = 5,
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
        self.n_neighbors, self.weights = n_neighbors, weights
        self._set(algorithm, leaf_size, metric, p, metric_params, n_jobs, device, memory)
