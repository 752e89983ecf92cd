"""The bases of classifiers and regressors: of the k nearest rows, and of the rows within a radius, block by block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tonari.api.index.index import Index
from tonari.core.results.radius_neighbors import RadiusNeighbors
from tonari.estimators.bases.nearest import Nearest
from tonari.estimators.bases.within import Within
from tonari.estimators.predictions.blocks import Budget, GivenRows, lists_within, without_own
from tonari.estimators.predictions.votes import Float64, weights_within
from tonari.estimators.settings import check_weights, threads_of
from tonari.inputs import parse_memory


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


class PredictingWithin(Within):
    """Base class of the estimators that predict from the rows within a radius."""

    weights: Any

    def _how(self) -> dict[str, Any]:
        return super()._how() | {"memory": self._budget().searching}

    def _budget(self) -> Budget:
        return Budget(parse_memory(self.memory))

    def _prepared(self) -> Index | GivenRows:
        with self._budget().refusals():
            return super()._prepared()

    def _blocks(self, queries: Any) -> Iterator[tuple[slice, RadiusNeighbors, Float64 | None]]:
        """Yield for each block of queries its slice, its neighbour lists, and the weights of the listed neighbours.

        Queries are checked rows, or None for the fitted rows, which are then not in their own lists.
        """
        weights = check_weights(self.weights)
        rows = self._rows.array if queries is None else queries
        index, threads = self._prepared(), threads_of(self.n_jobs)
        for part, lists in lists_within(index, rows, self.radius, self._budget(), threads=threads):
            found = without_own(lists, part.start) if queries is None else lists
            yield part, found, weights_within(found, weights)
