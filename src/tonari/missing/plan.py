"""The plan of a search among rows with missing values on the CPU, and the reasons for refusing a search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tonari.core.errors import BudgetExceeded, Unsupported
from tonari.core.plan import Override, Plan
from tonari.core.problem import Problem
from tonari.core.process.isa import without_amx
from tonari.core.process.workers import default_threads
from tonari.core.results.neighbors import index_dtype
from tonari.inputs.overrides import check_overrides
from tonari.metrics import MISSING_METRICS
from tonari.missing import tuning
from tonari.missing.memory import block_bytes, packed_bytes, preparing_bytes

OVERRIDES = {"query_block": Override("queries at once")}


@dataclass(frozen=True, kw_only=True)
class MissingPlan(Plan):
    """The plan of a search among rows with missing values on the CPU.

    Attributes
    ----------
    n, m, d, k, dtype, metric, method, device, devices, isa, threads, packed_bytes, copied_bytes, working_bytes
        See :class:`tonari.core.plan.Plan`.
    output_bytes, seconds
        See :class:`tonari.core.plan.Plan`.
    query_block : int
        The number of queries per task.
    """

    query_block: int


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


def plan_missing(problem: Problem, *, prepared: bool = False, **overrides: Any) -> MissingPlan:
    """Plan a search among rows with missing values on the CPU; see :func:`tonari.plan`.

    Parameters
    ----------
    prepared : bool
        Whether the points are packed already.
    **overrides
        Fields listed in :data:`OVERRIDES`.

    Raises
    ------
    Unsupported
        The metric does not compare rows with missing values, or the device is not the CPU.
    BudgetExceeded
        The budget is too small for the packed points, one query per thread, and the results.

    Examples
    --------
    >>> from tonari.metrics.problem import make_problem
    >>> made = plan_missing(make_problem(10**5, 10**4, 100, 10, dtype="float32", metric="nan_euclidean", threads=2))
    >>> made.query_block, made.packed_bytes
    (256, 41620364)
    """
    why_not = refusal(problem)
    if why_not is not None:
        raise Unsupported(why_not)
    check_overrides(overrides, OVERRIDES)
    work = problem.m * problem.n * problem.d * tuning.COLUMN_SECONDS
    if not prepared:
        work += problem.n * problem.d * tuning.PACKED_SECONDS
    threads = problem.threads or default_threads(work)
    block = min(overrides.get("query_block") or tuning.QUERY_BLOCK, -(-problem.m // threads))
    plan = _made(problem, threads, block, work)
    while problem.memory is not None and plan.total_bytes > problem.memory and block > 1:
        if "query_block" in overrides:
            break
        block //= 2
        plan = _made(problem, threads, block, work)
    if problem.memory is not None and plan.total_bytes > problem.memory:
        raise BudgetExceeded(
            f"a memory budget of {problem.memory} bytes cannot hold these rows with missing values, packed, and "
            f"their search: allow at least {plan.total_bytes}",
            least=plan.total_bytes,
        )
    return plan


def _made(problem: Problem, threads: int, block: int, work: float) -> MissingPlan:
    n, m, d, k = problem.n, problem.m, problem.d, problem.k
    value = 8 if "float64" in (problem.dtype, problem.query_dtype) else 4
    tasks = min(threads, -(-m // block))
    return MissingPlan(
        **problem.plan_fields(),
        method="missing",
        isa=without_amx(None),
        threads=threads,
        packed_bytes=packed_bytes(n, d),
        copied_bytes=0,
        working_bytes=max(tasks * block_bytes(block, d, k), preparing_bytes(n, d)),
        output_bytes=m * k * (value + index_dtype(n).itemsize),
        query_block=block,
        seconds=work / threads,
    )
