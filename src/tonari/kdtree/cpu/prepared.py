"""Points and their tree on the CPU, kept between searches."""

from __future__ import annotations

import dataclasses
import logging
import threading
import time
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core.process.progress import Progress, ProgressLike, counting
from tonari.core.process.workers import Workers
from tonari.core.results.neighbors import Neighbors, index_dtype
from tonari.core.trail import current
from tonari.costs.formulas import MeanVisits
from tonari.kdtree import tuning
from tonari.kdtree.cpu.build import build
from tonari.kdtree.cpu.search import Visits, search_tree
from tonari.kdtree.cpu.tree import Tree, plan_height
from tonari.kdtree.papers.rounds import Rounds
from tonari.kdtree.plan import TreePlan

logger = logging.getLogger("tonari")


class PreparedTree:
    """Points and the tree built from them.

    Parameters
    ----------
    points : array of shape (n, d), checked
    progress : None or bool
        As in :func:`tonari.search`, for the build. A callback is not called here, because it counts queries and not
        points.
    kept : int64 array, optional
        The row numbers, ascending, of the points that the tree contains, if it does not contain all points.
    """

    def __init__(
        self,
        points: npt.NDArray[Any],
        plan: TreePlan,
        progress: ProgressLike = None,
        *,
        kept: npt.NDArray[np.int64] | None = None,
    ) -> None:
        self.points, self._kept, self._plan = points, kept, plan
        self._building = threading.Lock()  # held by the thread that builds the tree; others wait
        self._tree: Tree | None = None
        if plan.build_seconds >= tuning.BUILT_LATER:
            self._build(None if callable(progress) else progress)

    @property
    def tree(self) -> Tree:
        """The tree of the points; a tree that takes only a few milliseconds to build is built at its first use."""
        return self._tree or self._build(False)

    def _build(self, progress: ProgressLike) -> Tree:
        with self._building:
            if self._tree is None:
                self._tree = self._built(progress)
            return self._tree

    def _built(self, progress: ProgressLike) -> Tree:
        points, kept, plan = self.points, self._kept, self._plan
        rows = points if kept is None else points[kept]
        height = plan.height if kept is None else min(plan.height, plan_height(len(kept), plan.leaf))
        bar = Progress(progress, total=len(rows), seconds=plan.build_seconds, label="k-d tree", unit="row")
        with bar, Workers(plan.threads) as workers:  # the threads live through all passes of the build
            tree = build(rows, height=height, double=plan.held == "float64", workers=workers, bar=bar)
        if kept is None:
            return tree
        return dataclasses.replace(tree, ids=kept[tree.ids].astype(index_dtype(len(points))))

    def search(
        self,
        queries: npt.NDArray[Any],
        plan: TreePlan,
        *,
        self_ids: npt.NDArray[np.int64] | None = None,
        progress: ProgressLike = None,
        rounds: Rounds | None = None,
    ) -> Neighbors:
        """Find the k nearest points of every query; see :func:`tonari.kdtree.cpu.search.search_tree`."""
        started = time.perf_counter()
        seconds = plan.seconds - plan.build_seconds
        with counting(progress, total=len(queries), seconds=seconds, label="neighbours", unit="query") as bar:
            found, visits = search_tree(
                queries, self.points, self.tree, plan, self_ids=self_ids, bar=bar, rounds=rounds
            )
        self.report(len(queries), visits, time.perf_counter() - started)
        return found

    def report(self, m: int, visits: Visits, seconds: float) -> None:
        """Add a search of m queries to the record of the call, and log it."""
        record = current.get()
        if record is None and not logger.isEnabledFor(logging.INFO):
            return
        leaves, nodes = visits.leaves / m, visits.nodes / m
        if record is not None:
            note = f"{leaves:.1f} leaves and {nodes:.1f} nodes visited per row"
            record.tried(f"k-d tree of height {self.tree.height}", m, m, seconds, note)
        logger.info(
            "%d rows in %.3g s by a k-d tree of height %d: %.1f leaves and %.1f nodes visited per row",
            *(m, seconds, self.tree.height, leaves, nodes),
        )

    def visits(self, queries: npt.NDArray[Any], plan: TreePlan) -> MeanVisits:
        """Search `queries`, and return the mean visits of a query: the counts of leaves, of nodes, and of points."""
        with Progress(False, total=len(queries), seconds=0.0, label="probe") as bar:
            _, total = search_tree(queries, self.points, self.tree, plan, bar=bar)
        return MeanVisits(*(count / len(queries) for count in (total.leaves, total.nodes, total.points)))
