"""The plan of a search among rows with missing values on the CPU, and the reasons for refusing a search."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from tonari.core.errors import BudgetExceeded, Unsupported
from tonari.core.plan import Override, Plan
from tonari.core.problem import Problem
from tonari.exact.plan import ExactPlan
from tonari.exact.planning.planner import plan_on_cpu
from tonari.inputs.overrides import check_overrides
from tonari.metrics import MISSING_METRICS
from tonari.missing import tuning

OVERRIDES = {"query_block": Override("queries at once")}
_PAIR = 40  # bytes of a candidate pair: query, point, distance, and position in the sorted order


@dataclass(frozen=True, kw_only=True)
class MissingPlan(Plan):
    """The plan of a search among rows with missing values on the CPU.

    Attributes
    ----------
    n, m, d, k, dtype, metric, method, device, devices, isa, threads, packed_bytes, copied_bytes, working_bytes
        See :class:`tonari.core.plan.Plan`. Copied rows are the transformed points. The memory does not include the
        candidates, whose number depends on the data.
    output_bytes, seconds
        See :class:`tonari.core.plan.Plan`.
    query_block : int
        The number of queries in a block, which are transformed and searched together.
    sample : int
        The number of points in the sample for estimates of the distance of the k-th neighbour.
    """

    query_block: int
    sample: int


def refusal(problem: Problem) -> str | None:
    """Return the reason why this method does not support a problem, or None if it does.

    >>> from tonari.metrics.problem import make_problem
    >>> refusal(make_problem(1000, 10, 8, 10, dtype="float32", metric="euclidean"))
    "method='missing' supports nan_euclidean, not euclidean; use method='auto'"
    """
    if problem.metric not in MISSING_METRICS:
        return f"method='missing' supports {', '.join(MISSING_METRICS)}, not {problem.metric}; use method='auto'"
    if problem.devices:
        return f"metric={problem.metric!r} runs on the CPU alone; copy the rows to host memory, and use device='cpu'"
    return None


def products_of(problem: Problem) -> Problem:
    """Return the problem of a search by inner products, which finds the pairs within a limit."""
    return dataclasses.replace(
        problem,
        d=3 * problem.d + 1,
        k=1,
        dtype="float64",
        query_dtype="float64",
        metric="inner_product",
        self_join=False,
        memory=None,
    )


def plan_products(problem: Problem, *, prepared: bool = False) -> ExactPlan:
    """Plan the search by inner products that finds the pairs within a limit."""
    return plan_on_cpu(products_of(problem), prepared=prepared)


def plan_missing(problem: Problem, *, prepared: bool = False, **overrides: Any) -> MissingPlan:
    """Plan a search among rows with missing values on the CPU; see :func:`tonari.plan`.

    Raises
    ------
    Unsupported
        The metric does not compare rows with missing values, or the device is not the CPU.
    BudgetExceeded
        The budget is too small for the transformed points and one query.

    Examples
    --------
    >>> from tonari.metrics.problem import make_problem
    >>> plan_missing(make_problem(10**5, 10**4, 100, 10, dtype="float32", metric="nan_euclidean")).query_block
    8192
    """
    why_not = refusal(problem)
    if why_not is not None:
        raise Unsupported(why_not)
    check_overrides(overrides, OVERRIDES)
    block = min(overrides.get("query_block") or tuning.QUERY_BLOCK, problem.m)
    plan = _made(problem, block, prepared=prepared)
    while problem.memory is not None and plan.total_bytes > problem.memory and block > 1:
        if "query_block" in overrides:
            break
        block //= 2
        plan = _made(problem, block, prepared=prepared)
    if problem.memory is not None and plan.total_bytes > problem.memory:
        raise BudgetExceeded(
            f"a memory budget of {problem.memory} bytes cannot hold these transformed rows with missing values, and "
            f"their search: allow at least {plan.total_bytes}",
            least=plan.total_bytes,
        )
    return plan


def _made(problem: Problem, block: int, *, prepared: bool) -> MissingPlan:
    wide, sample = 8 * (3 * problem.d + 1), min(problem.n, tuning.SAMPLE)
    inner = plan_products(dataclasses.replace(problem, m=block), prepared=prepared)
    expected = min(problem.n, 2 * problem.k + 2 * problem.n // sample)
    return MissingPlan(
        **problem.plan_fields(),
        method="missing",
        isa=inner.isa,
        threads=inner.threads,
        packed_bytes=inner.packed_bytes,
        copied_bytes=wide * problem.n,
        working_bytes=inner.working_bytes + block * (2 * wide + 24 * sample + _PAIR * expected),
        output_bytes=problem.m * problem.k * 12,
        query_block=block,
        sample=sample,
        seconds=inner.seconds * -(-problem.m // block),
    )
