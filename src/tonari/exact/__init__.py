"""Brute force, exact: every query against every point, on matrix or vector units at low precision, with a proof.

    plan.py      every choice of a search on the CPU: instruction set, precisions, block sizes
    memory.py    what that holds in memory, and what gives way to a budget
    report.py    what a run did: rows per precision, survivors per row
    cpu/         points packed; blocks of queries x slices of points -> screen, select, refine, certified rows
    cuda/        the same on CUDA, with a plan and a memory of its own

docs/exactness.md proves that no true neighbour can be lost.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core.neighbors import Neighbors
from tonari.core.progress import ProgressLike
from tonari.exact.cpu.prepared import PreparedPoints
from tonari.exact.cpu.search import search_prepared
from tonari.exact.plan import plan_on_cpu
from tonari.exact.report import Report
from tonari.metrics.problem import make_problem

__all__ = ["PreparedPoints", "Report", "neighbors", "search_prepared"]


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
    """The k nearest points of every query, exactly, for arrays that were checked at the border.

    Parameters
    ----------
    queries, points : array of shape (m, d) and (n, d), C-contiguous, finite, of an accepted dtype
    k : int
    metric : str
    self_ids : int64 array of shape (m,), optional
        The point that each query is, which it must not find.
    threads, memory, progress
        As in :func:`tonari.search`.

    Returns
    -------
    Neighbors
        distances and indices of shape (m, k), ordered by (returned distance, index).
    """
    n, d = points.shape
    given: dict[str, Any] = {"dtype": points.dtype, "query_dtype": queries.dtype, "threads": threads, "memory": memory}
    plan = plan_on_cpu(make_problem(n, len(queries), d, k, metric=metric, **given))
    prepared = PreparedPoints(points, plan, progress)
    return search_prepared(queries, prepared, plan, self_ids=self_ids, progress=progress)[0]
