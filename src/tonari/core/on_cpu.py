"""A method on the CPU, whose searches are of three kinds: nearest points, points within limits, and their numbers."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core.allowed import Allowed
from tonari.core.method import SearchMethod
from tonari.core.process.progress import ProgressLike
from tonari.core.results.neighbors import Neighbors
from tonari.core.results.radius_neighbors import RadiusNeighbors, Within


class OnCpu(SearchMethod):
    """A method on the CPU. In a self-join, each query excludes the point with its own row number."""

    device = "cpu"
    filters = True

    @abstractmethod
    def nearest(
        self,
        queries: npt.NDArray[Any],
        prepared: Any,
        plan: Any,
        self_ids: npt.NDArray[np.int64] | None,
        progress: ProgressLike = None,
    ) -> Neighbors:
        """Search prepared points; query i does not find point ``self_ids[i]``."""

    @abstractmethod
    def lists(self, request: Within, prepared: Any, plan: Any, progress: ProgressLike = None) -> RadiusNeighbors:
        """Find all prepared points within the limits."""

    @abstractmethod
    def counts(self, request: Within, prepared: Any, plan: Any, progress: ProgressLike = None) -> Any:
        """Count the prepared points within the limits, for each query."""

    def search(
        self, queries: Any, prepared: Any, plan: Any, *, self_join: bool = False, progress: ProgressLike = None
    ) -> Neighbors:
        return self.nearest(queries, prepared, plan, own_rows(queries, self_join), progress)

    def find_within(
        self,
        queries: Any,
        prepared: Any,
        plan: Any,
        limits: Any,
        *,
        self_join: bool = False,
        progress: ProgressLike = None,
    ) -> RadiusNeighbors:
        return self.lists(Within(queries, limits, own_rows(queries, self_join)), prepared, plan, progress)

    def find_pairs(
        self, rows: slice, points: Any, prepared: Any, plan: Any, limits: Any, *, progress: ProgressLike = None
    ) -> RadiusNeighbors:
        own = np.arange(rows.start, rows.stop, dtype=np.int64)
        return self.lists(Within(points[rows], limits, own, later=True), prepared, plan, progress)

    def count_within(
        self,
        queries: Any,
        prepared: Any,
        plan: Any,
        limits: Any,
        *,
        self_join: bool = False,
        progress: ProgressLike = None,
    ) -> Any:
        return self.counts(Within(queries, limits, own_rows(queries, self_join)), prepared, plan, progress)

    def find_allowed(
        self, queries: Any, prepared: Any, plan: Any, limits: Any, allowed: Allowed, progress: ProgressLike = None
    ) -> RadiusNeighbors:
        return self.lists(Within(queries, limits, allowed=allowed), prepared, plan, progress)

    def count_allowed(
        self, queries: Any, prepared: Any, plan: Any, limits: Any, allowed: Allowed, progress: ProgressLike = None
    ) -> Any:
        return self.counts(Within(queries, limits, allowed=allowed), prepared, plan, progress)


def own_rows(queries: npt.NDArray[Any], self_join: bool) -> npt.NDArray[np.int64] | None:
    """Return for each query of a self-join its row number among the points; None if the search is no self-join."""
    return np.arange(len(queries), dtype=np.int64) if self_join else None
