"""The fitted rows of an estimator, prepared for searches."""

from __future__ import annotations

from typing import Any

from tonari.api.index.index import Index
from tonari.api.radius import radius_count, radius_search
from tonari.api.searching import search
from tonari.api.user_metrics.replacing import is_given
from tonari.core.results.neighbors import Neighbors
from tonari.core.results.radius_neighbors import RadiusNeighbors
from tonari.metrics.names import PRECOMPUTED


class Rows:
    """The fitted rows of an estimator, with an Index that is built at the first search."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self._index: Index | None = None

    def prepared(self, how: dict[str, Any]) -> Index | GivenRows:
        """Return an object that searches the fitted rows: an Index, or GivenRows for a metric without an Index."""
        if is_given(how["metric"]):
            return GivenRows(self.array, how)
        if self._index is None:
            self._index = Index(self.array, **how)
        return self._index


class GivenRows:
    """Fitted rows for metrics that Index does not support: functions, and "precomputed" distances.

    Attributes
    ----------
    array : array of shape (n, d), or (n, n) for "precomputed"
        The fitted rows, or the distances between them.
    how : dict
        The keyword arguments of each search.
    """

    def __init__(self, array: Any, how: dict[str, Any]) -> None:
        self.array, self.how = array, how

    def search(self, queries: Any, k: int, *, threads: int | None) -> Neighbors:
        """Find the k nearest fitted rows of each query; for "precomputed", a query is a row of distances to them."""
        points = None if self.how["metric"] == PRECOMPUTED else self.array
        found: Neighbors = search(queries, points, k, **self.how | {"threads": threads})
        return found

    def __len__(self) -> int:
        return int(self.array.shape[0])

    def radius_search(
        self, queries: Any, radius: Any, *, threads: int | None, progress: bool | None = None
    ) -> RadiusNeighbors:
        """Find the fitted rows within a radius of each query."""
        points = None if self.how["metric"] == PRECOMPUTED else self.array
        return radius_search(queries, points, radius, **self.how | {"threads": threads, "progress": progress})

    def radius_count(self, queries: Any, radius: Any, *, threads: int | None, progress: bool | None = None) -> Any:
        """Count the fitted rows within a radius of each query."""
        points = None if self.how["metric"] == PRECOMPUTED else self.array
        return radius_count(queries, points, radius, **self.how | {"threads": threads, "progress": progress})
