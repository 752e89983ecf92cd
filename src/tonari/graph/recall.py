"""Measure the recall of a graph by comparing a random sample of its rows with the exact answer."""

from __future__ import annotations

from typing import Any

import numpy as np

from tonari import exact
from tonari.core.errors import Unsupported
from tonari.core.process.floats import in_default_floats
from tonari.core.process.progress import ProgressLike
from tonari.core.results.neighbors import Neighbors
from tonari.core.rows.draws import Purpose, generator
from tonari.graph.lists import Lists, refuse_filtered
from tonari.inputs import as_rows, check_count, check_nonnegative, check_progress, to_host
from tonari.metrics import get_metric
from tonari.metrics.recall import Recall, recall_of
from tonari.metrics.reference import returned, values_at
from tonari.metrics.transforms.change import change_of


@in_default_floats
def graph_recall(
    lists: Lists,
    points: Any,
    *,
    sample: int = 1000,
    seed: int = 0,
    threads: int | None = None,
    progress: ProgressLike = None,
) -> Recall:
    """Compare the lists of a graph with the exact neighbours of a random sample of its rows.

    Parameters
    ----------
    lists : Lists
        The lists of the graph. The stored distances are not used; the distances of the listed points are recomputed. If
        column 0 is the point itself, it is left out, and k is one less. Missing neighbours (-1) count as not found.
    points : array of shape (n, d)
        The points of the graph. The recall is measured on the CPU; a graph or points on CUDA are copied to host memory.
    sample : int
        Number of rows to draw, without replacement; all rows if the graph has no more.
    seed : int
        Seed of the sample: the same seed measures the same rows. For any seed, these rows are drawn independently of
        the rows on which the construction of the graph measured its recall.
    threads : int, optional
        Threads. Default: chosen by the amount of work, at most the processors that this process may use.
    progress : bool or callable(done, total), optional
        As for ``knn_graph``.

    Raises
    ------
    TypeError
        sample or seed is not a whole number.
    ValueError
        Points and graph differ in their number of rows, sample is less than 1, the graph has no column except self, or
        a sampled row lists a point twice; or the graph was built with filters, so its neighbours are not the nearest of
        all points.

    Examples
    --------
    >>> import numpy as np
    >>> from tonari.graph.lists import Lists
    >>> from tonari.graph.recall import graph_recall
    >>> points = np.array([[0.0], [1.0], [3.0], [7.0]], np.float32)
    >>> found = Neighbors(np.array([[1], [1], [3], [4]], np.float32), np.array([[1], [0], [0], [2]], np.int32))
    >>> nearest = Lists(found, metric="euclidean", method="by hand")
    >>> graph_recall(nearest, points)  # point 2 is nearer to 1 than to 0
    Recall(by_index=0.75, by_distance=0.75, low=0.75, high=0.75, rows=4, k=1)
    """
    refuse_filtered(
        lists.filters,
        "the graph",
        "it is exact, and recall compares with all points; graph.overlap compares it with another graph by the same "
        "filters",
    )
    sample, seed = check_count(sample, "sample"), check_count(seed, "seed", least=0)
    progress = check_progress(progress)
    indices = lists.in_numpy().indices
    if lists.measure.missing:
        raise Unsupported(
            f"recall: metric={lists.metric!r} has exact graphs only; tonari.verify(None, points, graph.indices, "
            "metric=...) compares lists with the exact ones"
        )
    x = as_rows(to_host(points), "points")
    change = change_of(lists.metric, lists.weights, lists.transform)
    x, metric = (x, lists.metric) if change is None else (change.rows(x, "points"), change.base)
    if get_metric(metric).nonnegative:
        check_nonnegative(x, "points")
    if len(x) != lists.n:
        raise ValueError(f"the graph has {lists.n} rows, points has {len(x)}: they must be the same points")
    first = int(lists.include_self)
    k = lists.k - first
    if k == 0:
        raise ValueError("the graph lists no neighbour other than self, expected at least one: nothing to measure")

    rows = np.sort(generator(seed, Purpose.CHECKED).choice(lists.n, min(sample, lists.n), replace=False))
    queries = x[rows]
    listed = indices[rows, first:]
    truth = exact.neighbors(
        queries, x, k, metric=metric, self_ids=rows.astype(np.int64), threads=threads, progress=progress
    )
    values = returned(values_at(queries, x, listed, metric), truth.distances.dtype)
    return recall_of(Neighbors(values, listed), truth, metric, rows, lists.n)
