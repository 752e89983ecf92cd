"""Searches of some microseconds: the exact value of every pair, without a form, packed points or a screen."""

from __future__ import annotations

import logging
import time
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.core.neighbors import Neighbors, index_dtype
from tonari.core.progress import Progress, ProgressLike
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
    (m, n), k = (len(queries), len(points)), plan.k
    double = np.float64 in (queries.dtype, points.dtype)
    found = Neighbors(np.empty((m, k), np.float64 if double else np.float32), np.empty((m, k), index_dtype(n)))
    with Progress(progress, total=m * n, seconds=plan.seconds, label="neighbours") as bar:
        _native.search_directly(plan.metric, plan.isa, queries, points, k, self_ids, *found)
        bar.add(m * n)
    logger.info("%d rows in %.3g s by exact values alone", m, time.perf_counter() - started)
    return found
