"""The common base of KNeighborsClassifier and KNeighborsRegressor: parameters of a prediction by the k nearest rows."""

from __future__ import annotations

from typing import Any

from tonari.estimators.nearest import Nearest


class Predicting(Nearest):
    """The base class of the estimators that predict by the k nearest."""

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
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.algorithm = algorithm
        self.leaf_size = leaf_size
        self.p = p
        self.metric = metric
        self.metric_params = metric_params
        self.n_jobs = n_jobs
        self.device = device
        self.memory = memory
