"""Rows of bits on the CPU as a registered method."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.bits.cpu.listed import search_listed
from tonari.bits.cpu.search import PreparedBits, count_bits, find_bits, search_bits
from tonari.bits.plan import BitsPlan, plan_bits, refusal
from tonari.core.method import SearchMethod
from tonari.core.neighbors import Neighbors
from tonari.core.problem import Problem
from tonari.core.progress import ProgressLike
from tonari.core.radius_neighbors import RadiusNeighbors


class BitsOnCpu(SearchMethod):
    """See :class:`tonari.core.method.SearchMethod`."""

    name = "bits"
    device = "cpu"

    def refuses(self, problem: Problem) -> str | None:
        return refusal(problem)

    def plan(self, problem: Problem, *, prepared_by: BitsPlan | None = None, **given: Any) -> BitsPlan:
        return plan_bits(problem, prepared=prepared_by is not None, **given)

    def prepare(self, points: npt.NDArray[Any], plan: BitsPlan, progress: ProgressLike = None) -> PreparedBits:
        return PreparedBits(points, plan)

    def search(
        self,
        queries: npt.NDArray[Any],
        prepared: PreparedBits,
        plan: BitsPlan,
        *,
        self_join: bool = False,
        progress: ProgressLike = None,
    ) -> Neighbors:
        return search_bits(queries, prepared, plan, self_join=self_join, progress=progress)

    def find_within(
        self,
        queries: npt.NDArray[Any],
        prepared: PreparedBits,
        plan: BitsPlan,
        limits: npt.NDArray[Any],
        *,
        self_join: bool = False,
        progress: ProgressLike = None,
    ) -> RadiusNeighbors:
        return find_bits(queries, prepared, plan, limits, self_join=self_join, progress=progress)

    def count_within(
        self,
        queries: npt.NDArray[Any],
        prepared: PreparedBits,
        plan: BitsPlan,
        limits: npt.NDArray[Any],
        *,
        self_join: bool = False,
        progress: ProgressLike = None,
    ) -> npt.NDArray[np.int64]:
        return count_bits(queries, prepared, plan, limits, self_join=self_join, progress=progress)

    def search_listed(
        self,
        queries: npt.NDArray[Any],
        points: npt.NDArray[Any],
        k: int,
        metric: str,
        listed: npt.NDArray[np.int64],
        begins: npt.NDArray[np.int64],
        ends: npt.NDArray[np.int64],
        *,
        self_ids: npt.NDArray[np.int64] | None = None,
        threads: int | None = None,
        found: Neighbors | None = None,
    ) -> Neighbors:
        given: dict[str, Any] = {"self_ids": self_ids, "threads": threads, "progress": False, "found": found}
        return search_listed(queries, points, k, metric, listed, begins, ends, **given)
