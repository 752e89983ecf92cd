"""Find approximate neighbours by the low-precision scores of a screen, without refinement or certificate.

This takes a fraction of the time of exact search, and the neighbours are good enough for lists that later rounds
improve. The result for a row depends only on the row and the points, not on the number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.core.process.workers import Workers
from tonari.exact import PreparedPoints
from tonari.exact.planning.planner import plan_on_cpu
from tonari.metrics.problem import make_problem
from tonari.nn_descent import tuning
from tonari.nn_descent.plan import DescentPlan

Rows = npt.NDArray[Any]


class Scores:
    """The packed form of rows and points, and the kernels that compute their scores.

    Parameters
    ----------
    points : array of shape (n, d), checked
    plan : DescentPlan
        The plan; its isa and threads are used.

    Attributes
    ----------
    form : Form
    coarse, fine : str
        The names of the fastest kernel and of the most precise kernel.
    """

    def __init__(self, points: Rows, metric: str, plan: DescentPlan) -> None:
        n, d = points.shape
        problem = make_problem(n, n, d, 1, dtype=points.dtype, metric=metric, threads=plan.threads)
        exact = plan_on_cpu(problem, isa=plan.isa, resident=False)
        self.form = PreparedPoints(points, exact).form
        self.coarse, self.fine = (exact.kernels[exact.precisions[at]] for at in (0, -1))

    def pack(self, kernel: str, points: Rows) -> _native.PackedPoints:
        """Pack points for a kernel."""
        return _native.PackedPoints(kernel, self.form, points, 0, len(points), errors=False)

    def best(
        self, kernel: str, queries: Rows, packed: list[_native.PackedPoints], count: int, workers: Workers
    ) -> npt.NDArray[np.int32]:
        """Return the positions of the `count` points with the lowest scores, int32 (m, count), best first.

        `count` must not exceed n.
        """
        places = np.empty((len(queries), count), np.int32)

        def work(begin: int) -> None:
            workers.check()
            end = min(begin + tuning.TASK_QUERIES, len(queries))
            _native.best_scores(kernel, self.form, queries, begin, end, packed, places)

        workers.map(work, range(0, len(queries), tuning.TASK_QUERIES))
        return places

    def coarse_share(self, queries: Rows, points: Rows, first: int, count: int, workers: Workers) -> float:
        """Return the share of the fine kernel's `first` best points that are among the coarse kernel's `count` best."""
        if self.coarse == self.fine:
            return 1.0
        first, count = min(first, len(points)), min(count, len(points))
        fine = self.best(self.fine, queries, [self.pack(self.fine, points)], first, workers)
        coarse = self.best(self.coarse, queries, [self.pack(self.coarse, points)], count, workers)
        return float((fine[:, :, None] == coarse[:, None, :]).any(axis=2).mean())
