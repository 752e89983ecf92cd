"""Cluster the points by k-means on a sample; the initial list of a point contains members of near clusters.

Clusters are formed by squared L2 distances, or by low-precision scores of these distances (scores.py), not by the
metric itself. The distances are between float32 rows that are derived from the points:

    euclidean, sqeuclidean, terms      the rows; float64 rows are centred and scaled first (terms: sums over columns)
    cosine, correlation                the rows scaled to length 1; for correlation, after subtracting the row's mean
    terms with `cluster_rows`          the rows transformed by that function
    inner_product                      points with an extra column sqrt(M^2 - |x|^2), M the largest norm, and queries
                                       with an extra 0: the nearest point has the largest product (Bachrach et al. 2014)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.core.process.workers import Workers
from tonari.core.rows.draws import Purpose, generator
from tonari.inputs import as_floats
from tonari.metrics import get_metric
from tonari.nn_descent import tuning
from tonari.nn_descent.cpu.scores import Scores
from tonari.nn_descent.plan import DescentPlan

Rows = npt.NDArray[Any]


class Form:
    """The transformation of rows for clustering; see the module docstring.

    Parameters
    ----------
    points : array of shape (n, d), checked
    """

    def __init__(self, points: Rows, metric: str) -> None:
        self.metric = get_metric(metric)
        plain = not (self.metric.angular or self.metric.products or self.metric.cluster_rows)
        self._as_they_are = plain and points.dtype != np.float64
        self._centre, self._scale = np.zeros(points.shape[1]), 1.0
        if self.metric.products:
            blocks = map(as_floats, _blocks(points))
            largest = max(float(np.square(part, dtype=np.float64).sum(axis=1).max()) for part in blocks)
            self._scale = 1.0 / np.sqrt(largest) if largest > 0 else 1.0
        elif plain and not self._as_they_are:
            step = -(-len(points) // tuning.SCALE_ROWS)
            self._centre = np.array(_native.column_means(points, step))
            self._scale = 1.0 / (_native.largest_magnitude(points, self._centre.tolist(), step) or 1.0)

    @property
    def queries_are_points(self) -> bool:
        """Whether points and queries are transformed in the same way."""
        return not self.metric.products

    def of_points(self, rows: Rows) -> Rows:
        """Transform rows of points to float32 rows for clustering.

        Rows that already have this form are returned unchanged.
        """
        if self._as_they_are:
            return rows
        wide = self._wide(rows)
        if self.metric.products:
            rest = np.sqrt(np.maximum(0.0, 1.0 - np.square(wide).sum(axis=1, keepdims=True)))
            wide = np.hstack([wide, rest])
        return wide.astype(np.float32)

    def of_queries(self, rows: Rows) -> Rows:
        """Transform rows that are used as queries; for inner products, they get another extra column than points."""
        if self.queries_are_points:
            return self.of_points(rows)
        return np.hstack([_of_length_one(self._wide(rows)), np.zeros((len(rows), 1))]).astype(np.float32)

    def _wide(self, rows: Rows) -> npt.NDArray[np.float64]:
        wide = as_floats(rows).astype(np.float64)
        if self.metric.cluster_rows is not None:
            return self.metric.cluster_rows(wide)
        if self.metric.centred:
            wide -= wide.mean(axis=1, keepdims=True)
        if self.metric.angular:
            return _of_length_one(wide)
        return (wide - self._centre) * self._scale


def find_centres(points: Rows, form: Form, plan: DescentPlan, workers: Workers) -> npt.NDArray[np.float32]:
    """Find the centres of clusters of the points.

    Parameters
    ----------
    points : array of shape (n, d), checked
    plan : DescentPlan
        The plan; its n_clusters, train_per_cluster, kmeans_iters, seed, isa and threads are used.

    Returns
    -------
    float32 of shape (clusters, d), or (clusters, d + 1) for inner_product
        Centres as rows transformed by `form`; they do not depend on the number of threads. Centres may coincide, or
        have no point near them.
    """
    rows, first = training_rows(len(points), plan)
    sample = as_floats(form.of_points(points[rows])).astype(np.float32, copy=False)
    centres = sample[first]
    for _ in range(plan.kmeans_iters):
        workers.check()
        centres = _means(sample, Nearest(centres, plan, workers)(sample, 1)[:, 0], centres, workers)
    return centres


def training_rows(n: int, plan: DescentPlan) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Draw the sample of rows on which centres are trained, and choose the initial centres from it.

    The sample is in ascending order.
    """
    rng = generator(plan.seed, Purpose.CLUSTERS)
    rows = np.sort(rng.choice(n, min(n, plan.n_clusters * plan.train_per_cluster), replace=False, shuffle=False))
    return rows, np.sort(rng.choice(len(rows), plan.n_clusters, replace=False, shuffle=False))


class Nearest:
    """Finds the nearest centres of rows by approximate scores.

    Parameters
    ----------
    centres : float32 of shape (clusters, d)
    """

    def __init__(self, centres: npt.NDArray[np.float32], plan: DescentPlan, workers: Workers) -> None:
        self._workers = workers
        self._scores = Scores(centres, "sqeuclidean", plan)
        looked_at = np.ascontiguousarray(centres[:: -(-len(centres) // tuning.LOOK_CENTRES)])
        share = self._scores.coarse_share(looked_at, centres, tuning.LOOK_NEAR, 2 * tuning.LOOK_NEAR, workers)
        self._kernel = self._scores.coarse if share >= tuning.COARSE_ENOUGH else self._scores.fine
        parts = [
            centres[begin : begin + tuning.PACKED_CENTRES] for begin in range(0, len(centres), tuning.PACKED_CENTRES)
        ]
        self._packed = workers.map(lambda part: self._scores.pack(self._kernel, part), parts)

    def __call__(self, rows: Rows, count: int) -> npt.NDArray[np.int32]:
        """Return the `count` nearest centres of each transformed row, nearest first: int32 (rows, count)."""
        return self._scores.best(self._kernel, rows, self._packed, count, self._workers)

    def of_all(self, points: Rows, count: int, form: Form, *, as_queries: bool) -> npt.NDArray[np.int32]:
        """Return the `count` nearest centres of every point: int32 (n, count). Points are transformed in blocks."""
        near = np.empty((len(points), count), np.int32)
        begin = 0
        for part in _blocks(points):
            rows = form.of_queries(part) if as_queries else form.of_points(part)
            near[begin : begin + len(part)] = self(rows, count)
            begin += len(part)
        return near


def _means(
    sample: npt.NDArray[np.float32],
    nearest: npt.NDArray[np.int32],
    centres: npt.NDArray[np.float32],
    workers: Workers,
) -> npt.NDArray[np.float32]:
    """Return the mean of the rows nearest to each centre, added up in row order.

    A centre without rows stays unchanged.
    """
    order = np.argsort(nearest, kind="stable")
    begins = np.searchsorted(nearest[order], np.arange(len(centres) + 1))
    moved = centres.copy()

    def work(first: int) -> None:
        workers.check()
        last = min(first + 256, len(centres))
        filled = first + np.flatnonzero(np.diff(begins[first : last + 1]))
        if len(filled):
            rows = sample[order[begins[first] : begins[last]]].astype(np.float64)
            sums = np.add.reduceat(rows, begins[filled] - begins[first], axis=0)
            moved[filled] = sums / (begins[filled + 1] - begins[filled])[:, None]

    workers.map(work, range(0, len(centres), 256))
    return moved


def _blocks(points: Rows) -> Iterator[Rows]:
    rows = max(1, tuning.TRANSFORMED_VALUES // points.shape[1])
    return (points[begin : begin + rows] for begin in range(0, len(points), rows))


def _of_length_one(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    norms = np.sqrt(np.square(rows).sum(axis=1, keepdims=True))
    return rows / np.where(norms > 0, norms, 1.0)
