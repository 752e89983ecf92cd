"""The base class of search methods on the CPU."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core.method import SearchMethod
from tonari.core.process.progress import ProgressLike
from tonari.core.results.neighbors import Neighbors


class OnCpu(SearchMethod):
    """The base class of search methods on the CPU; in self-joins, it excludes each query's own point by row number."""

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
        """Find the k nearest prepared points of every query, except point ``self_ids[i]`` for query i."""

    def search(
        self, queries: Any, prepared: Any, plan: Any, *, self_join: bool = False, progress: ProgressLike = None
    ) -> Neighbors:
        return self.nearest(queries, prepared, plan, own_rows(queries, self_join), progress)


def own_rows(queries: npt.NDArray[Any], self_join: bool) -> npt.NDArray[np.int64] | None:
    """Return the row number of each query's own point in a self-join, or None if the search is no self-join."""
    return np.arange(len(queries), dtype=np.int64) if self_join else None
