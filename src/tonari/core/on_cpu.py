"""A method on the CPU, which excludes the queries of a self-join by their row numbers."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core.method import SearchMethod
from tonari.core.process.progress import ProgressLike
from tonari.core.results.neighbors import Neighbors


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

    def search(
        self, queries: Any, prepared: Any, plan: Any, *, self_join: bool = False, progress: ProgressLike = None
    ) -> Neighbors:
        return self.nearest(queries, prepared, plan, own_rows(queries, self_join), progress)


def own_rows(queries: npt.NDArray[Any], self_join: bool) -> npt.NDArray[np.int64] | None:
    """Return for each query of a self-join its row number among the points; None if the search is no self-join."""
    return np.arange(len(queries), dtype=np.int64) if self_join else None
