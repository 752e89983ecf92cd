"""Choose between codes on the device (routes/codes/) and streaming, for prepared points that do not fit there.

An Index does not know how often it will be searched. Its first search streams the points, unless codes take less time
even with their preparation. The second search makes codes, and later ones use them. Since the preparation takes about
as long as one streamed search, all searches together take at most about twice the time of the better choice.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from tonari import inputs
from tonari.core.errors import BudgetExceeded
from tonari.core.problem import Problem
from tonari.core.process.caches import cached
from tonari.core.trail import decided
from tonari.cuda import tuning as cuda_tuning
from tonari.cuda.memory import available
from tonari.exact.cuda import tuning
from tonari.exact.cuda.plan import CudaPlan
from tonari.exact.cuda.planning import plan_on_cuda, rounded
from tonari.exact.cuda.rows.codes import code_columns, codes_bytes
from tonari.metrics import get_metric


def is_coded_for(problem: Problem, searched: int) -> bool:
    """Whether to search prepared points by codes, after earlier searches with `searched` queries in all."""
    if not _may_be_coded(problem):
        return False
    if searched > 0:  # all m and k share one cached plan: a new plan would not fit once codes take memory
        return _plans(dataclasses.replace(problem, m=1, k=1))[1] is not None
    streamed, coded = _plans(problem)
    return coded is not None and coded.seconds < streamed.seconds


def coded_plan(problem: Problem) -> CudaPlan:
    """Return the plan that makes codes; raise BudgetExceeded if they do not fit on the device."""
    streamed, coded = _plans(problem)
    plan = plan_on_cuda(problem, route="codes")
    if coded is not None:
        decided(
            "codes",
            f"int8 in {plan.form_dim} coordinates on {' and '.join(plan.devices)}: {coded.seconds:.3g} s expected for "
            f"this search with the preparation of codes, {streamed.seconds:.3g} s by streaming each time",
        )
    return plan


def plan_again(problem: Problem, prepared_by: CudaPlan, overrides: dict[str, Any]) -> CudaPlan:
    """Return the plan for a search of points that are prepared as codes; equal searches share a cached plan."""
    free = rounded(available(problem.devices))
    return _plan_again(problem, prepared_by, free, tuple(overrides.items()))


@cached(maxsize=1024)
def _plan_again(problem: Problem, prepared_by: CudaPlan, free: int, overrides: tuple[tuple[str, Any], ...]) -> CudaPlan:
    return plan_on_cuda(problem, free_bytes=free + cuda_tuning.RESERVE, prepared_by=prepared_by, **dict(overrides))


def _may_be_coded(problem: Problem) -> bool:
    """Whether the points are in host memory, and large, and much larger than their codes."""
    metric, size = get_metric(problem.metric), problem.n * problem.d * inputs.dtype_of(problem.dtype).itemsize
    if not problem.host_points or size < tuning.CODED_BYTES:
        return False
    if not (metric.squares or metric.angular) or problem.d < tuning.LEAST_CODED:
        return False
    return tuning.CODED_WORTH * codes_bytes(problem.n, code_columns(problem.d)[-1]) <= size


@cached(maxsize=256)
def _plans(problem: Problem) -> tuple[CudaPlan, CudaPlan | None]:
    """Return the plan without codes and the plan with codes.

    The plan with codes is None if all points fit on the device, or if their codes do not. The first call caches both
    plans; at that time no codes take memory yet.
    """
    usual = plan_on_cuda(problem)
    if usual.route != "streamed":
        return usual, None
    try:
        return usual, plan_on_cuda(problem, route="codes")
    except BudgetExceeded:
        return usual, None
