"""Make the initial lists: compare each block of neighbouring points with the members of the clusters near them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core.process.workers import Workers
from tonari.core.trail import decided
from tonari.nn_descent import tuning
from tonari.nn_descent.backend import Known
from tonari.nn_descent.cpu.cluster_blocks import Members, Pieces, Reach, pieces_of, search_clusters
from tonari.nn_descent.cpu.clusters import Form, Nearest, find_centres
from tonari.nn_descent.cpu.scores import Scores
from tonari.nn_descent.entries import ID, MISSING, NEW
from tonari.nn_descent.plan import DescentPlan

Entries = npt.NDArray[np.int32]


def best_of_clusters(
    points: npt.NDArray[Any],
    plan: DescentPlan,
    size: int,
    workers: Workers,
    *,
    boundary: int | None = None,
    known: Known | None = None,
    precise: bool = False,
) -> tuple[Entries, npt.NDArray[np.int32]]:
    """Find, for each point, the nearest members of the clusters near it.

    Parameters
    ----------
    points : array of shape (n, d), checked
    size : int
        The number of neighbours to find.
    boundary : int, optional
        Compare only points of different graphs: ids below this number belong to the first graph.
    known : Known, optional
        The true neighbours of some points, which determine the number of clusters. Default: the plan's number.
    precise : bool
        Whether to compare points by the most precise scores. By default, faster scores are used if they suffice to
        separate points.

    Returns
    -------
    int32 of shape (n, size)
        New entries, nearest first by approximate scores (``scores.py``). Entries are missing only if a side has fewer
        than `size` points.
    int32 of shape (n,)
        The ids of all points, ordered so that points that were compared with the same clusters are adjacent.
    """
    start = _Start(points, plan, workers, boundary)
    start.pack(size, precise=precise)
    entries = np.full((len(points), size), MISSING, np.int32)
    start.fill(entries, start.clusters_needed(entries, known) if known is not None and plan.widens else plan.n_probe)
    return entries, start.seekers.order


class _Start:
    """The data of one start: the clusters of the points, and the packed members of each cluster."""

    def __init__(self, points: npt.NDArray[Any], plan: DescentPlan, workers: Workers, boundary: int | None) -> None:
        self._points, self._plan, self._workers, self._boundary = points, plan, workers, boundary
        n, clusters = len(points), plan.n_clusters
        form = Form(points, plan.metric)
        self._centres = find_centres(points, form, plan, workers)
        self._nearest = nearest = Nearest(self._centres, plan, workers)
        self._near = near = nearest.of_all(points, min(tuning.NEAR_CLUSTERS, clusters), form, as_queries=True)
        homes = near if form.queries_are_points else nearest.of_all(points, min(2, clusters), form, as_queries=False)
        self._pieces = pieces_of(homes, clusters, max(1, tuning.LARGEST_CLUSTER * n // clusters), boundary)
        self.seekers = pieces_of(near, clusters, tuning.POINT_BLOCK, boundary)

    def pack(self, size: int, *, precise: bool) -> None:
        """Pack the members of the clusters for the fastest kernel that can distinguish near points.

        If `precise`, pack them for the most precise kernel instead.
        """
        points, plan, workers = self._points, self._plan, self._workers
        scores = Scores(points, plan.metric, plan)
        kernel = scores.fine if precise else _kernel(points, plan, size, workers, self._near, self._pieces, scores)
        packed = self._pieces.pack(lambda rows: scores.pack(kernel, points[rows]), workers)
        self._members = Members(kernel, scores.form, self._pieces, packed)

    def fill(self, entries: Entries, probes: int, blocks: npt.NDArray[np.intp] | None = None) -> None:
        """Fill the entries of all points, or of some blocks, with the best members of `probes` near clusters."""
        ranks = min(probes, tuning.MOST_RANKED, self._plan.n_clusters)
        reach = Reach(
            probes=probes,
            most=tuning.MOST_MEMBERS * probes * max(1, len(self._points) // self._plan.n_clusters),
            without_self=self._boundary is None,
            boundary=self._boundary,
            ranked=self._nearest(self._centres, ranks),
            blocks=blocks,
        )
        search_clusters(self._points, self._near, self.seekers, self._members, reach, entries, self._workers, mark=NEW)

    def clusters_needed(self, entries: Entries, known: Known) -> int:
        """Return about the smallest number of near clusters that contain enough of a point's true neighbours.

        It is found by comparing some blocks, which contain points of `known`, with more and more clusters. This also
        writes the entries of the points in these blocks.
        """
        plan, seekers = self._plan, self.seekers
        places = np.empty(plan.n, np.int64)
        places[seekers.order] = np.arange(plan.n)
        of_rows = np.searchsorted(seekers.begins, places[known.rows], side="right") - 1
        blocks = np.unique(of_rows)
        blocks = blocks[:: -(-len(blocks) // tuning.PILOT_BLOCKS)]
        some = np.isin(of_rows, blocks)
        rows, true = known.rows[some], known.indices[some]
        goal = tuning.START_MISSES * (1 - plan.recall)  # share of the true neighbours that a start may miss
        most = min(plan.n_clusters, max(plan.n_probe, tuning.MOST_RANKED))
        probes, before = max(1, plan.n_probe // tuning.FEWER_PROBES), (0, 1.0)
        while True:
            self.fill(entries, probes, blocks)
            misses = 1 - float((true[:, :, None] == (entries[rows] & ID)[:, None, :]).any(axis=2).mean())
            if tuning.LEVEL[0] * before[1] < misses < tuning.LEVEL[1]:
                wanted = max(before[0], plan.n_probe)  # further clusters would hardly contain more true neighbours
                break
            wanted = math.ceil(min(most, _for_misses(goal, before, (probes, misses))))
            if probes == most or wanted <= tuning.TRUSTED_STEP * probes:
                break
            probes, before = min(2 * probes, most), (probes, misses)
        decided("clusters", f"{wanted}: {probes} miss {misses:.2g} of the true neighbours of {len(rows)} points")
        return wanted


def _for_misses(goal: float, before: tuple[int, float], after: tuple[int, float]) -> float:
    """Extrapolate the number of clusters at which the share of missed neighbours is `goal`.

    `before` and `after` are pairs (number of clusters, share of neighbours missed). The result is read from the
    straight line through both pairs on logarithmic scales.
    """
    (less, many), (more, few) = before, after
    if few == 0 or less == 0:
        return more if few <= goal else math.inf
    if few >= many:
        return math.inf
    return float(less * (more / less) ** (math.log(many / goal) / math.log(many / few)))


def _kernel(
    points: npt.NDArray[Any],
    plan: DescentPlan,
    size: int,
    workers: Workers,
    near: npt.NDArray[np.int32],
    members: Pieces,
    scores: Scores,
) -> str:
    """Choose the fastest kernel that can distinguish near points.

    Kernels are tested within clusters, where points are nearest to each other.
    """
    for point in members.order[:: -(-len(points) // tuning.LOOKS)]:
        around = members.of_clusters(near[point])[: tuning.LOOK_POINTS]
        share = scores.coarse_share(points[around[: tuning.LOOK_QUERIES]], points[around], plan.k, size, workers)
        if share < tuning.COARSE_ENOUGH:
            return scores.fine
    return scores.coarse
