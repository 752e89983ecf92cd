"""The steps of NN-Descent on the CPU."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import exact
from tonari.core.process.workers import Workers
from tonari.core.results.neighbors import Neighbors
from tonari.nn_descent.backend import Known, Round
from tonari.nn_descent.cpu.init import best_of_clusters
from tonari.nn_descent.cpu.rounds import Helps, point_terms, run_round
from tonari.nn_descent.cpu.short_rows import ShortRows, short_rows
from tonari.nn_descent.entries import MISSING, NEW, random_entries
from tonari.nn_descent.plan import DescentPlan

Entries = npt.NDArray[np.int32]


class CpuBackend:
    """:class:`tonari.nn_descent.backend.Backend` for points in host memory.

    Parameters
    ----------
    points : array of shape (n, d), checked

    Examples
    --------
    >>> import numpy as np
    >>> from tonari.metrics.problem import make_problem
    >>> from tonari.nn_descent.planning.planner import plan_descent
    >>> points = np.arange(6, dtype=np.float32)[:, None] ** 2
    >>> problem = make_problem(6, 6, 1, 2, dtype="float32", metric="euclidean", self_join=True)
    >>> plan = plan_descent(problem, recall=0.9, seed=0)
    >>> steps = CpuBackend(points, plan)
    >>> steps.round(steps.start("clusters")).found.indices.tolist()
    [[1, 2], [0, 2], [1, 0], [2, 4], [3, 5], [4, 3]]
    """

    def __init__(self, points: npt.NDArray[Any], plan: DescentPlan) -> None:
        self.points, self.plan = points, plan
        self._terms = point_terms(points, plan.metric, self._workers)
        self._order: npt.NDArray[np.int32] | None = None
        self._short: ShortRows | None = None

    @property
    def _workers(self) -> Workers:
        """Start new worker threads for a step; threads that Ctrl-C has stopped cannot be used again."""
        return Workers(self.plan.threads)

    def start(self, kind: str, known: Known | None = None) -> Entries:
        """Make the initial entries, all marked as new; `kind` is "clusters" or "random"."""
        if kind == "random":
            return random_entries(self.plan.n, self.plan.list_size, self.plan.seed)
        points, plan = self.points, self.plan
        short = None if known is None else short_rows(points, plan, known, self._workers)
        if short is not None:
            self._short = short
            points, plan = short.rows, dataclasses.replace(plan, metric="sqeuclidean", d=short.rows.shape[1])
        entries, self._order = best_of_clusters(
            points, plan, plan.list_size, self._workers, known=known, precise=short is not None
        )
        return entries

    def seeds(self, boundary: int, size: int) -> Entries:
        """Return new entries to merge two graphs, int32 (n, size): each point gets near points of the other graph."""
        entries, self._order = best_of_clusters(self.points, self.plan, size, self._workers, boundary=boundary)
        return entries

    def entries_of(self, indices: npt.NDArray[Any], *, new: bool) -> Entries:
        """Convert neighbour ids, int32 (n, columns) with -1 for missing ones, to entries."""
        ids = indices.astype(np.int32)
        return np.where(ids < 0, np.int32(MISSING), ids | np.int32(NEW if new else 0))

    def joined_entries(self, first: Entries, second: Entries) -> Entries:
        """Concatenate the columns of two arrays of entries, padded or truncated to the list size."""
        size = self.plan.list_size
        both = np.full((len(first), size), MISSING, np.int32)
        width = min(first.shape[1], size)
        both[:, :width] = first[:, :width]
        both[:, width : width + second.shape[1]] = second[:, : size - width]
        return both

    def round(self, entries: Entries, boundary: int | None = None, *, light: bool = False, last: bool = False) -> Round:
        """Run one round; with a boundary, compare only points on different sides of it.

        A last round returns no entries if contracted rows bound distances. Otherwise the time saved would be less than
        the time lost whenever the round is not the last one after all.
        """
        short = self._short if self._short is not None and self._short.bounds else None
        return run_round(
            self.points,
            entries,
            self.plan.light if light else self.plan,
            self._workers,
            helps=Helps(self._terms, short),
            order=self._order,
            boundary=boundary,
            last=last and short is not None,
        )

    def exact(self, rows: npt.NDArray[np.int64], k: int) -> Neighbors:
        """Find the true neighbours of the points with the row numbers `rows`; no point is its own neighbour.

        After a start that compares contracted rows, exact search screens contracted rows as well.
        """
        some, points, plan = self.points[rows], self.points, self.plan
        if self._short is None:
            return exact.neighbors(some, points, k, metric=plan.metric, self_ids=rows, threads=plan.threads)
        form = self._short.form
        return exact.neighbors_by_contraction(
            some, points, k, form, metric=plan.metric, self_ids=rows, threads=plan.threads
        )

    def of_rows(self, found: Neighbors, rows: npt.NDArray[np.int64]) -> Neighbors:
        """Return the neighbour lists of the rows with the row numbers `rows`, in host memory."""
        return Neighbors(found.distances[rows], found.indices[rows])
