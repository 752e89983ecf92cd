"""Nearest by the screen's scores alone: nothing certified, nothing refined, at a fraction of what exact search costs.

Good for lists that are improved anyway. The answer of a row depends on it and on the points alone, not on threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.core.workers import Workers
from tonari.exact import PreparedPoints
from tonari.exact.plan import plan_on_cpu
from tonari.metrics.problem import make_problem
from tonari.nn_descent.plan import DescentPlan

Rows = npt.NDArray[Any]

_QUERIES = 256  # of one task
_ENOUGH = 0.95  # of what fine scores find first, coarse ones must find too


class Scores:
    """How rows are compared: their form, and the kernels that can score it.

    Parameters
    ----------
    points : array of shape (n, d), checked
    metric : str
    plan : DescentPlan
        Of it isa and threads are read.

    Attributes
    ----------
    form : Form
    coarse, fine : str
        Kernels: the fastest there is, and the one that rounds least.
    """

    def __init__(self, points: Rows, metric: str, plan: DescentPlan) -> None:
        n, d = points.shape
        problem = make_problem(n, n, d, 1, dtype=points.dtype, metric=metric, threads=plan.threads)
        exact = plan_on_cpu(problem, isa=plan.isa, resident=False)
        self.form = PreparedPoints(points, exact).form
        self.coarse, self.fine = exact.kernel(exact.precisions[0]), exact.kernel(exact.precisions[-1])

    def pack(self, kernel: str, points: Rows) -> _native.PackedPoints:
        """Points made ready for a kernel."""
        return _native.PackedPoints(kernel, self.form, points, 0, len(points), errors=False)

    def best(
        self, kernel: str, queries: Rows, packed: list[_native.PackedPoints], count: int, workers: Workers
    ) -> npt.NDArray[np.int32]:
        """Places of the `count` <= n points of least score for each query, int32 (m, count), the best first."""
        places = np.empty((len(queries), count), np.int32)

        def work(begin: int) -> None:
            workers.check()
            end = min(begin + _QUERIES, len(queries))
            _native.best_scores(kernel, self.form, queries, begin, end, packed, places)

        workers.map(work, range(0, len(queries), _QUERIES))
        return places

    def coarse_is_enough(self, queries: Rows, points: Rows, first: int, count: int, workers: Workers) -> bool:
        """Whether the coarse kernel's best `count` hold nearly all of the fine kernel's best `first`."""
        if self.coarse == self.fine:
            return True
        first, count = min(first, len(points)), min(count, len(points))
        fine = self.best(self.fine, queries, [self.pack(self.fine, points)], first, workers)
        coarse = self.best(self.coarse, queries, [self.pack(self.coarse, points)], count, workers)
        return bool((fine[:, :, None] == coarse[:, None, :]).any(axis=2).mean() >= _ENOUGH)
