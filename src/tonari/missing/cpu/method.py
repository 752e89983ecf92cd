"""The registered method for rows with missing values on the CPU."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from tonari.core.on_cpu import OnCpu
from tonari.core.problem import Problem
from tonari.core.process.progress import ProgressLike
from tonari.missing.cpu.listed import count_listed, search_listed
from tonari.missing.cpu.search import PreparedMissing, count_missing, find_missing, search_missing
from tonari.missing.plan import MissingPlan, plan_missing, refusal


class MissingOnCpu(OnCpu):
    """The method "missing" on the CPU, with the interface of :class:`tonari.core.method.SearchMethod`."""

    name = "missing"
    filters = False

    refuses = staticmethod(refusal)
    nearest = staticmethod(search_missing)
    find_within = staticmethod(find_missing)
    count_within = staticmethod(count_missing)
    search_listed = staticmethod(search_listed)
    count_listed = staticmethod(count_listed)

    def plan(self, problem: Problem, *, prepared_by: MissingPlan | None = None, **given: Any) -> MissingPlan:
        return plan_missing(problem, prepared=prepared_by is not None, **given)

    def prepare(self, points: npt.NDArray[Any], plan: MissingPlan, progress: ProgressLike = None) -> PreparedMissing:
        return PreparedMissing(points)
