"""Searches of some microseconds: exact values alone, without a form, packed points or a screen."""

from __future__ import annotations

import logging
import time
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.core.neighbors import Neighbors, index_dtype
from tonari.core.progress import ProgressLike, counting
from tonari.exact.plan import ExactPlan

logger = logging.getLogger("tonari")


def search_directly(
    queries: npt.NDArray[Any],
    points: npt.NDArray[Any],
    plan: ExactPlan,
    *,
    self_ids: npt.NDArray[np.int64] | None = None,
    progress: ProgressLike = None,
) -> Neighbors:
    """Search checked points for checked queries, on the caller's thread and without a look at Ctrl-C.

    Returns
    -------
    Neighbors of shape (m, k)
    """
    started = time.perf_counter()
    found = _room(queries, points, plan.k)
    _native.search_directly(plan.metric, plan.isa, queries, points, plan.k, self_ids, *found)
    _report(found, len(points), plan, started, progress)
    return found


def search_unchecked(
    queries: npt.NDArray[Any], points: npt.NDArray[Any], plan: ExactPlan, *, progress: ProgressLike = None
) -> Neighbors | None:
    """Do the same for rows whose values are not checked; None if it does not show that all are finite."""
    started = time.perf_counter()
    found = _room(queries, points, plan.k)
    if not _native.search_directly(plan.metric, plan.isa, queries, points, plan.k, None, *found, False):
        return None
    _report(found, len(points), plan, started, progress)
    return found


def _room(queries: npt.NDArray[Any], points: npt.NDArray[Any], k: int) -> Neighbors:
    m, double = len(queries), np.float64 in (queries.dtype, points.dtype)
    values = np.empty((m, k), np.float64 if double else np.float32)
    return Neighbors(values, np.empty((m, k), index_dtype(len(points))))


def _report(found: Neighbors, n: int, plan: ExactPlan, started: float, progress: ProgressLike) -> None:
    m = len(found.indices)
    with counting(progress, total=m * n, seconds=plan.seconds, label="neighbours") as bar:
        bar.add(m * n)
    logger.info("%d rows in %.3g s by exact values alone", m, time.perf_counter() - started)
