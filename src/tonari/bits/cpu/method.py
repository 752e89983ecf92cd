"""The registered method for rows of bits on the CPU."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from tonari.bits.cpu.listed import search_listed
from tonari.bits.cpu.search import PreparedBits, UnpackedBits, count_bits, find_bits, search_bits
from tonari.bits.plan import BitsPlan, plan_bits, refusal
from tonari.core.on_cpu import OnCpu, own_rows
from tonari.core.problem import Problem
from tonari.core.process.progress import ProgressLike
from tonari.core.results.neighbors import Neighbors


class BitsOnCpu(OnCpu):
    """The method "bits" on the CPU, with the interface of :class:`tonari.core.method.SearchMethod`."""

    name = "bits"
    filters = False

    refuses = staticmethod(refusal)
    nearest = staticmethod(search_bits)
    find_within = staticmethod(find_bits)
    count_within = staticmethod(count_bits)
    search_listed = search_listed

    def plan(self, problem: Problem, *, prepared_by: BitsPlan | None = None, **given: Any) -> BitsPlan:
        return plan_bits(problem, prepared=prepared_by is not None, **given)

    def prepare(self, points: npt.NDArray[Any], plan: BitsPlan, progress: ProgressLike = None) -> PreparedBits:
        return PreparedBits(points, plan)

    def search_once(
        self,
        queries: npt.NDArray[Any],
        points: npt.NDArray[Any],
        plan: BitsPlan,
        *,
        self_join: bool = False,
        progress: ProgressLike = None,
    ) -> Neighbors:
        prepared = UnpackedBits(points) if plan.query_block >= len(queries) else PreparedBits(points, plan)
        return search_bits(queries, prepared, plan, own_rows(queries, self_join), progress)
