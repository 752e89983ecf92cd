"""Clusters of the points, by k-means on a sample: where the neighbours of a point are looked for first.

All is compared by squared L2 distances, or scores that round them (scores.py), of float32 rows in place of the metric:

    euclidean, sqeuclidean, terms      the rows; float64 ones less their mean, scaled
    cosine, correlation                the rows, less their own mean for correlation, of length 1
    terms with `cluster_rows`          what it makes of the rows
    inner_product                      points lengthened by sqrt(M^2 - |x|^2), M the largest norm, and queries by 0:
                                       the nearest point then has the largest product (Bachrach et al. 2014)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.core.workers import Workers
from tonari.inputs import as_floats
from tonari.metrics import get_metric
from tonari.nn_descent.cpu.scores import Scores
from tonari.nn_descent.plan import DescentPlan

Rows = npt.NDArray[Any]

_BLOCK_VALUES = 1 << 20  # of rows that change their form at once
_LOOK_ROWS = 8_192  # for a mean and a scale
_LOOK_CENTRES, _LOOK_NEAR = 256, 4  # that tell whether coarse scores are enough, by so many near ones of each
_PART = 512  # centres that are packed at once


class Form:
    """Rows as clusters see them.

    Parameters
    ----------
    points : array of shape (n, d), checked
    metric : str
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
            step = -(-len(points) // _LOOK_ROWS)
            self._centre = np.array(_native.column_means(points, step))
            self._scale = 1.0 / (_native.largest_magnitude(points, self._centre.tolist(), step) or 1.0)

    @property
    def queries_are_points(self) -> bool:
        """Whether a row is the same in both places."""
        return not self.metric.products

    def of_points(self, rows: Rows) -> Rows:
        """Rows of points in this form, float32 or as they are."""
        if self._as_they_are:
            return rows
        wide = self._wide(rows)
        if self.metric.products:
            rest = np.sqrt(np.maximum(0.0, 1.0 - np.square(wide).sum(axis=1, keepdims=True)))
            wide = np.hstack([wide, rest])
        return wide.astype(np.float32)

    def of_queries(self, rows: Rows) -> Rows:
        """The same points when their neighbours are looked for."""
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
    """Centres of clusters of the points.

    Parameters
    ----------
    points : array of shape (n, d), checked
    form : Form
    plan : DescentPlan
        Of it clusters, training, sweeps, seed, isa and threads are read.
    workers : Workers

    Returns
    -------
    float32 of shape (clusters, d), or (clusters, d + 1) for inner_product
        In the form. The same for any number of threads. Some may be equal, or have no point near them.
    """
    n = len(points)
    rng = np.random.default_rng(plan.seed)
    rows = np.sort(rng.choice(n, min(n, plan.n_clusters * plan.train_per_cluster), replace=False, shuffle=False))
    sample = as_floats(form.of_points(points[rows])).astype(np.float32, copy=False)
    centres = sample[np.sort(rng.choice(len(sample), plan.n_clusters, replace=False, shuffle=False))]
    for _ in range(plan.kmeans_iters):
        workers.check()
        centres = _means(sample, Nearest(centres, plan, workers)(sample, 1)[:, 0], centres, workers)
    return centres


class Nearest:
    """The centres nearest to rows, by scores.

    Parameters
    ----------
    centres : float32 of shape (clusters, d)
    plan : DescentPlan
    workers : Workers
    """

    def __init__(self, centres: npt.NDArray[np.float32], plan: DescentPlan, workers: Workers) -> None:
        self._workers = workers
        self._scores = Scores(centres, "sqeuclidean", plan)
        looked_at = np.ascontiguousarray(centres[:: -(-len(centres) // _LOOK_CENTRES)])
        enough = self._scores.coarse_is_enough(looked_at, centres, _LOOK_NEAR, 2 * _LOOK_NEAR, workers)
        self._kernel = self._scores.coarse if enough else self._scores.fine
        parts = [centres[begin : begin + _PART] for begin in range(0, len(centres), _PART)]
        self._packed = workers.map(lambda part: self._scores.pack(self._kernel, part), parts)

    def __call__(self, rows: Rows, count: int) -> npt.NDArray[np.int32]:
        """Numbers of the `count` nearest of each row in the clusters' form, int32 (rows, count), the nearest first."""
        return self._scores.best(self._kernel, rows, self._packed, count, self._workers)

    def of_all(self, points: Rows, count: int, form: Form, *, as_queries: bool) -> npt.NDArray[np.int32]:
        """The same for all points: int32 (n, count)."""
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
    """Means of the rows nearest to each centre, summed in order of row; a centre that has none stays."""
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
    rows = max(1, _BLOCK_VALUES // points.shape[1])
    return (points[begin : begin + rows] for begin in range(0, len(points), rows))


def _of_length_one(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    norms = np.sqrt(np.square(rows).sum(axis=1, keepdims=True))
    return rows / np.where(norms > 0, norms, 1.0)
