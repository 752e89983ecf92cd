"""Exact brute force: a low-precision screen rules out most pairs of a query and a point; exact values decide the rest.

    plan.py         every choice of a search on the CPU: instruction set, precisions, block sizes
    planning/       how these choices are made
    memory.py       the memory that a plan needs, and how a plan is changed to fit a budget
    precisions.py   chooses the precisions of the screen on the CPU
    report.py       statistics of a run: rows per precision, survivors per row
    cpu/            packing of points; blocks of queries x slices of points -> screen, select, refine, certify
    cuda/           the same on CUDA, with its own plan and memory

docs/exactness.md proves that no true neighbour is missed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.core.process.progress import ProgressLike
from tonari.core.results.neighbors import Neighbors
from tonari.exact.cpu.rows.contraction import Arrangement
from tonari.exact.cpu.rows.prepared import PreparedPoints
from tonari.exact.cpu.search import search_prepared
from tonari.exact.planning.planner import plan_on_cpu
from tonari.exact.report import Report
from tonari.metrics.problem import make_problem

__all__ = ["PreparedPoints", "Report", "neighbors", "neighbors_by_contraction", "search_prepared"]


def neighbors(
    queries: npt.NDArray[Any],
    points: npt.NDArray[Any],
    k: int,
    *,
    metric: str,
    self_ids: npt.NDArray[np.int64] | None = None,
    threads: int | None = None,
    memory: int | str | None = None,
    progress: ProgressLike = None,
) -> Neighbors:
    """Find the exact k nearest points of every query on the CPU; the caller has checked the arrays.

    Parameters
    ----------
    queries, points : array of shape (m, d) and (n, d), C-contiguous, finite, of an accepted dtype
    k : int
    metric : str
    self_ids : int64 array of shape (m,), optional
        For each query, the row number of the same object among the points, which is excluded from its answer.
    threads, memory, progress
        As in :func:`tonari.search`.

    Returns
    -------
    Neighbors
        distances and indices of shape (m, k), ordered by (returned distance, index).
    """
    n, d = points.shape
    problem = make_problem(
        n,
        len(queries),
        d,
        k,
        dtype=points.dtype,
        query_dtype=queries.dtype,
        metric=metric,
        threads=threads,
        memory=memory,
    )
    plan = plan_on_cpu(problem)
    prepared = PreparedPoints(points, plan, progress)
    return search_prepared(queries, prepared, plan, self_ids=self_ids, progress=progress)[0]


def neighbors_by_contraction(
    queries: npt.NDArray[Any],
    points: npt.NDArray[Any],
    k: int,
    form: _native.Form,
    *,
    metric: str,
    self_ids: npt.NDArray[np.int64],
    threads: int,
) -> Neighbors:
    """Find the same neighbours as :func:`neighbors`; the screen compares rows in the columns of a contracted form."""
    sizes = (len(points), len(queries), points.shape[1], k)
    problem = make_problem(*sizes, dtype=points.dtype, metric=metric, threads=threads)
    plan = plan_on_cpu(problem, form_dim=form.columns, precisions=("float32",))
    prepared = PreparedPoints(points, plan, made=Arrangement(form, form.columns))
    return search_prepared(queries, prepared, plan, self_ids=self_ids)[0]
