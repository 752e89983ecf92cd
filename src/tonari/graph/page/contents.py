"""The contents of a page about a graph, computed in blocks of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core.process.floats import in_default_floats
from tonari.core.process.progress import ProgressLike
from tonari.core.trail import Record
from tonari.graph.lists import Lists
from tonari.graph.recall import graph_recall
from tonari.graph.spectral import Map, spectral_map
from tonari.graph.statistics import (
    Histogram,
    Hubness,
    distances_at,
    histogram,
    hubness,
    local_dimension,
    missing_neighbours,
    range_of,
    zero_distances,
)
from tonari.graph.structure import connected_components, occurrence
from tonari.metrics.recall import Recall
from tonari.nn_descent.report import DescentReport

Range = dict[str, float | None] | None


@dataclass(frozen=True, kw_only=True)
class Column:
    """The range and the distribution of the distances to the neighbours in one column."""

    range: Range
    histogram: Histogram | None


@dataclass(frozen=True, kw_only=True)
class Contents:
    """The numbers that a page shows.

    Attributes
    ----------
    n, k : int
        The number of points, and of neighbours of each point without itself.
    metric, method, dtype : str
    exact, include_self, similarity : bool
        Whether no neighbour can be missing; whether column 0 is self; and whether larger values are nearer.
    seed : int, optional
    filters : tuple of str
        The arguments that restricted which points may be neighbours.
    first, last : Column
        The distances to the nearest and to the k-th neighbours.
    zero : int, optional
        The number of neighbours at distance 0; None for similarities.
    duplicates : int, optional
        The number of points that have a neighbour at distance 0.
    missing : int
        The number of missing neighbours (-1).
    dimension : float, optional
        The local intrinsic dimension, averaged over all points; its distribution is in `dimensions`.
    dimensions : Histogram, optional
    occurrences : Histogram
        The distribution of the k-occurrence.
    hubness : Hubness
    components : list of int
        Sizes of the components, largest first.
    recall : Recall, optional
        Measured on the points if they are passed, else the recall of the report.
    measured : bool
        Whether the recall was measured on the points.
    report : DescentReport, optional
    map : Map, optional
    map_values : float64 of shape (m,)
        Distance of the last neighbour of each point of the map; infinite if it is missing.
    plan : dict
        The plan of the build, for a graph in a directory; empty for other graphs.
    record : Record, optional
        The record of the run that built the graph.
    """

    n: int
    k: int
    metric: str
    method: str
    dtype: str
    exact: bool
    include_self: bool
    similarity: bool
    seed: int | None
    filters: tuple[str, ...]
    first: Column
    last: Column
    zero: int | None
    duplicates: int | None
    missing: int
    dimension: float | None
    dimensions: Histogram | None
    occurrences: Histogram | None
    hubness: Hubness
    components: list[int]
    recall: Recall | None
    measured: bool
    report: DescentReport | None
    map: Map | None
    map_values: npt.NDArray[np.float64]
    plan: dict[str, Any]
    record: Record | None

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers without histograms and map, for JSON."""
        names = ("n", "k", "metric", "method", "include_self", "seed", "zero", "duplicates", "missing", "dimension")
        facts = {name: getattr(self, name) for name in names}
        facts |= {"first": self.first.range, "last": self.last.range, "components": len(self.components)}
        facts |= {"filters": list(self.filters)} if self.filters else {}
        facts |= {"skewness": self.hubness.skewness, "antihubs": self.hubness.antihubs, "hubs": self.hubness.hubs}
        return facts | {"recall": None if self.recall is None else vars(self.recall)}


@in_default_floats
def contents(
    lists: Lists,
    points: Any = None,
    *,
    sample: int = 1000,
    seed: int = 0,
    threads: int | None = None,
    progress: ProgressLike = None,
    plan: dict[str, Any] | None = None,
) -> Contents:
    """Compute the contents of a page; see :meth:`tonari.KNNGraph.to_html`."""
    lists = lists.on_host()
    report, recall = lists.report, None if lists.report is None else lists.report.estimate
    if points is not None:  # first, because it raises an error for points of another graph
        recall = graph_recall(lists, points, sample=sample, seed=seed, threads=threads, progress=progress)
    descending = lists.measure.descending
    first, last = distances_at(lists, 0), distances_at(lists, -1)
    dimension, counts, labels = local_dimension(lists), occurrence(lists), connected_components(lists)
    missing = missing_neighbours(lists)
    drawn = spectral_map(lists, seed=seed, labels=labels)
    return Contents(
        n=lists.n,
        k=lists.k - lists.include_self,
        metric=lists.metric,
        method=lists.method,
        dtype=str(lists.found.distances.dtype),
        exact=lists.exact and (bool(lists.filters) or not missing),
        include_self=lists.include_self,
        similarity=descending,
        seed=lists.seed,
        filters=lists.filters,
        first=Column(range=range_of(first), histogram=histogram(first)),
        last=Column(range=range_of(last), histogram=histogram(last)),
        zero=zero_distances(lists),
        duplicates=None if descending else int((first == 0).sum()),
        missing=missing,
        dimension=None if dimension is None else dimension.mean,
        dimensions=None if dimension is None else histogram(dimension.each),
        occurrences=histogram(counts, whole=True),
        hubness=hubness(counts),
        components=sorted(np.bincount(labels).tolist(), reverse=True),
        recall=recall,
        measured=points is not None,
        report=report,
        map=drawn,
        map_values=np.empty(0) if drawn is None else lists.found.distances[drawn.points, -1].astype(np.float64),
        plan=plan or {},
        record=lists.record,
    )
