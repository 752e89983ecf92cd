"""The plan of a search among sparse rows on the CPU, and the reasons for refusing one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tonari.core.errors import BudgetExceeded, Unsupported
from tonari.core.plan import Plan
from tonari.core.problem import Problem
from tonari.core.process.isa import chosen_isa
from tonari.core.process.workers import default_threads
from tonari.core.results.neighbors import index_dtype
from tonari.sparse import tuning
from tonari.sparse.memory import RARE_SHARE, block_bytes, packed_bytes, preparing_bytes
from tonari.sparse.rows import Ranking, SparseRows

METRICS = ("cosine", "inner_product", "sqeuclidean", "euclidean", "jaccard")


@dataclass(frozen=True, kw_only=True)
class SparsePlan(Plan):
    """The plan of a search among sparse rows on the CPU.

    Attributes
    ----------
    n, m, d, k : int
        Points, queries, columns, neighbours.
    dtype, metric, method : str
        The dtype of the points, the name of the metric, and "sparse".
    device, devices
        "cpu" and an empty tuple.
    isa : str
        Instruction set of the loops over a block of pairs.
    query_block : int
        Queries per task; a task reads the inverted lists of its queries' columns.
    threads : int
        CPU threads.
    packed_bytes, copied_bytes, working_bytes, output_bytes : int
        Memory beyond the input: prepared points; copied rows and the ranks of queries; running tasks; results.
    seconds : float
        Expected duration of the search, if no pair is ruled out before all of its products have been added.
    """

    query_block: int


def refusal(metric: str) -> str | None:
    """Return the reason why sparse rows cannot be searched by a metric, or None if they can.

    >>> print(refusal("l1").partition(";")[0])
    metric='l1' does not support sparse rows
    """
    if metric in METRICS:
        return None
    return (
        f"metric={metric!r} does not support sparse rows; use {', '.join(METRICS)}, or .toarray() if the rows fit in "
        "memory"
    )


def plan_sparse(
    problem: Problem,
    queries: SparseRows,
    points: SparseRows,
    ranking: Ranking,
    *,
    within: bool = False,
    held: int = 0,
) -> SparsePlan:
    """Plan a search among sparse rows.

    Parameters
    ----------
    problem : Problem
    queries, points : SparseRows
    ranking : Ranking
        The ranking of the columns of the points.
    within : bool
        Whether this is a radius search, whose plan does not include the memory of the result.
    held : int
        Bytes of the budget that filters or other segments of an Index use; part of ``copied_bytes``.

    Raises
    ------
    Unsupported
        The metric does not support sparse rows.
    BudgetExceeded
        The budget is too small for the prepared points, one query per thread, and the results.
    """
    why_not = refusal(problem.metric)
    if why_not is not None:
        raise Unsupported(why_not)
    search = _Search(problem, queries, points, ranking, within, held)
    threads = problem.threads or default_threads(search.work)
    plan = search.planned(threads, min(tuning.QUERY_BLOCK, -(-problem.m // threads)))
    while problem.memory is not None and plan.total_bytes > problem.memory and plan.query_block > 1:
        plan = search.planned(threads, plan.query_block // 2)
    while problem.memory is not None and plan.total_bytes > problem.memory and plan.threads > 1:
        plan = search.planned(plan.threads // 2, 1)
    if problem.memory is not None and plan.total_bytes > problem.memory:
        raise BudgetExceeded(
            f"a memory budget of {problem.memory} bytes cannot hold the lists of {len(points.columns)} sparse values "
            + ("and a search within a radius" if within else f"and the {problem.k} neighbours of {problem.m} queries")
            + f": allow at least {plan.total_bytes}",
            least=plan.total_bytes,
        )
    return plan


class _Search(NamedTuple):
    """A search to be planned; :func:`plan_sparse` describes the fields."""

    problem: Problem
    queries: SparseRows
    points: SparseRows
    ranking: Ranking
    within: bool
    held: int

    @property
    def work(self) -> float:
        """The expected seconds of the search on one thread."""
        counts = self.ranking.counts
        additions = len(self.queries.columns) * float(np.square(counts).sum()) / max(1, int(counts.sum()))
        return additions * tuning.ADDITION_SECONDS + self.problem.m * self.problem.n * tuning.PAIR_SECONDS

    def planned(self, threads: int, block: int) -> SparsePlan:
        """Return the plan with a given number of threads and of queries per task."""
        problem, queries, points, ranking = self.problem, self.queries, self.points, self.ranking
        n, m, k = problem.n, problem.m, 0 if self.within else problem.k
        ends = queries.indptr[np.minimum(np.arange(0, m + block, block), len(queries))]
        frequent = int(np.count_nonzero(ranking.counts * RARE_SHARE >= n))
        copied = points.copied_bytes + (0 if queries is points else queries.copied_bytes + 4 * len(queries.columns))
        value = 8 if "float64" in (problem.dtype, problem.query_dtype) else 4
        tasks = min(threads, -(-m // block))
        fields: dict[str, Any] = {**problem.plan_fields()}
        return SparsePlan(
            **fields,
            method="sparse",
            isa=_isa(),
            threads=threads,
            query_block=block,
            packed_bytes=packed_bytes(n, ranking.counts, problem.metric),
            copied_bytes=copied + self.held,
            working_bytes=max(
                tasks * block_bytes(block, int(np.diff(ends).max()), k, frequent),
                preparing_bytes(len(ranking.counts), ranking.table_bytes),
            ),
            output_bytes=16 * m if self.within else m * k * (value + index_dtype(n).itemsize),
            seconds=self.work / threads,
        )


def _isa() -> str:
    """Return the instruction set to use; AVX-512 if AMX is available, which this search does not use."""
    isa = chosen_isa()
    return "avx512" if isa == "amx" else isa
