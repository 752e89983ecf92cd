"""Make the initial lists: compare blocks of points of one cluster with the members of clusters near it, by scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core.process.workers import Workers
from tonari.nn_descent import tuning
from tonari.nn_descent.cpu.cluster_blocks import Members, Pieces, Reach, pieces_of, search_clusters
from tonari.nn_descent.cpu.clusters import Form, Nearest, find_centres
from tonari.nn_descent.cpu.scores import Scores
from tonari.nn_descent.entries import MISSING, NEW
from tonari.nn_descent.plan import DescentPlan


def best_of_clusters(
    points: npt.NDArray[Any], plan: DescentPlan, size: int, workers: Workers, *, boundary: int | None = None
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Find, for each point, the nearest members of the clusters near it.

    Parameters
    ----------
    points : array of shape (n, d), checked
    size : int
        The number of neighbours to find.
    boundary : int, optional
        Compare only points whose numbers are on different sides of this number.

    Returns
    -------
    int32 of shape (n, size)
        New entries, nearest first by approximate scores (``scores.py``). Entries are missing only if a side has fewer
        than `size` points.
    int32 of shape (n,)
        The point numbers, with points that were compared with the same clusters next to each other.
    """
    n = len(points)
    form = Form(points, plan.metric)
    nearest = Nearest(find_centres(points, form, plan, workers), plan, workers)
    near = nearest.of_all(points, min(tuning.NEAR_CLUSTERS, plan.n_clusters), form, as_queries=True)
    homes = near if form.queries_are_points else nearest.of_all(points, min(2, plan.n_clusters), form, as_queries=False)
    members = pieces_of(homes, plan.n_clusters, max(1, tuning.LARGEST_CLUSTER * n // plan.n_clusters), boundary)
    seekers = pieces_of(near, plan.n_clusters, tuning.POINT_BLOCK, boundary)
    scores = Scores(points, plan.metric, plan)
    kernel = _kernel(points, plan, size, workers, near, members, scores)
    entries = np.full((n, size), MISSING, np.int32)
    packed = members.pack(lambda rows: scores.pack(kernel, points[rows]), workers)
    reach = Reach(
        probes=plan.n_probe,
        most=tuning.MOST_MEMBERS * plan.n_probe * max(1, n // plan.n_clusters),
        without_self=boundary is None,
        boundary=boundary,
    )
    found = Members(kernel, scores.form, members, packed)
    search_clusters(points, near, seekers, found, reach, entries, workers, mark=NEW)
    return entries, seekers.order


def _kernel(
    points: npt.NDArray[Any],
    plan: DescentPlan,
    size: int,
    workers: Workers,
    near: npt.NDArray[np.int32],
    members: Pieces,
    scores: Scores,
) -> str:
    """Choose the fastest kernel whose scores separate near points, by a test within clusters, the hardest case."""
    for point in members.order[:: -(-len(points) // tuning.LOOKS)]:
        around = members.of_clusters(near[point])[: tuning.LOOK_POINTS]
        if not scores.coarse_is_enough(points[around[: tuning.LOOK_QUERIES]], points[around], plan.k, size, workers):
            return scores.fine
    return scores.coarse
