"""The common base of the classifier and the regressor: the parameters of a prediction by neighbours."""

from __future__ import annotations

from typing import Any

from tonari.estimators.searching import Searching


class Predicting(Searching):
    """The base class of the estimators that predict."""

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
