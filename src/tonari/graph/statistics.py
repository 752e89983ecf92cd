"""Statistics of a graph: its distances, its local dimension, and its hubness.

Lists are read in blocks of rows, so a graph that is mapped from a directory is never copied as a whole.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tonari.graph import tuning
from tonari.graph.lists import Lists, in_blocks
from tonari.nn_descent.planning.intrinsic_dimension import log_ratios


class LocalDimension(NamedTuple):
    """The local intrinsic dimension of a graph's points; see :func:`local_dimension`.

    Attributes
    ----------
    mean : float
        The harmonic mean over all points.
    each : float64 of shape (points,)
        The finite estimates, in order of the points.
    """

    mean: float
    each: npt.NDArray[np.float64]


class Hubness(NamedTuple):
    """The hubness of a graph, which measures how unevenly points occur in lists; see :func:`hubness`.

    Attributes
    ----------
    skewness : float
        Third standardized moment of the k-occurrence; 0 if it is the same for all points.
    antihubs : int
        Number of points that no point lists.
    hubs : list of (point, occurrence)
        The points with the largest occurrence, in descending order, ties by row number.
    """

    skewness: float
    antihubs: int
    hubs: list[tuple[int, int]]


class Histogram(NamedTuple):
    """Counts of values in bins of equal width.

    Attributes
    ----------
    edges : float64 of shape (bins + 1,)
    counts : int64 of shape (bins,)
    outside : int
        Number of values below the first edge or above the last, including infinite ones.
    """

    edges: npt.NDArray[np.float64]
    counts: npt.NDArray[np.int64]
    outside: int


def distances_at(lists: Lists, column: int) -> npt.NDArray[np.float64]:
    """Return the distances in a column of the lists, as float64.

    Parameters
    ----------
    lists : Lists
        The graph. Missing neighbours and a column of self are ignored.
    column : int
        0 for the nearest neighbour, -1 for the k-th.

    Returns
    -------
    float64 of shape (points,)
        One distance for each point that has a neighbour in this column, in order of the points.
    """
    parts = [
        found.distances[:, column][found.indices[:, column] >= 0]
        for _, found in in_blocks(lists)
        if found.indices.shape[1]
    ]
    return np.concatenate([np.empty(0), *parts]).astype(np.float64, copy=False)


def range_of(values: npt.NDArray[np.float64]) -> dict[str, float | None] | None:
    """Return a dict of the smallest value ("min"), the median and the largest ("max"), for JSON.

    An entry is None if there are no values or if it is infinite (a distance that overflowed its dtype).
    """
    if not len(values):
        return None
    found = {"min": values.min(), "median": np.median(values), "max": values.max()}
    return {name: float(value) if np.isfinite(value) else None for name, value in found.items()}


def zero_distances(lists: Lists) -> int | None:
    """Count the neighbours at distance 0, without the point itself; None for a similarity.

    A similarity of 0 does not mean that rows are equal.
    """
    if lists.measure.descending:
        return None
    return sum(int(((found.distances == 0) & (found.indices >= 0)).sum()) for _, found in in_blocks(lists))


def missing_neighbours(lists: Lists) -> int:
    """Count the entries that are -1."""
    return sum(int((found.indices < 0).sum()) for _, found in in_blocks(lists))


def local_dimension(lists: Lists) -> LocalDimension | None:
    """Estimate the local intrinsic dimension at each point from the distances to its neighbours.

    At a point with distances T_1 ≤ … ≤ T_k the estimate is the inverse of the mean of log(T_k / T_j) over j < k, the
    maximum-likelihood estimate of Levina and Bickel [1]_. It is averaged over points as MacKay and Ghahramani [2]_
    propose. Distances of 0 and points with missing neighbours are left out. If all distances of a point are equal, its
    estimate is infinite, and its inverse counts as 0 in the mean over points.

    Returns
    -------
    LocalDimension or None
        None for a similarity, or if no point has an estimate.

    References
    ----------
    .. [1] Levina and Bickel, "Maximum likelihood estimation of intrinsic dimension", NIPS 17 (2004), equation 8.
    .. [2] MacKay and Ghahramani, "Comments on 'Maximum likelihood estimation of intrinsic dimension'" (2005).

    Examples
    --------
    >>> import numpy as np
    >>> from tonari.graph.lists import Lists
    >>> from tonari.core.results.neighbors import Neighbors
    >>> found = Neighbors(np.array([[1.0, 2.0], [1.0, 2.0], [1.0, 1.0]]), np.array([[1, 2], [0, 2], [1, 0]]))
    >>> local_dimension(Lists(found, "euclidean", "exact")).each.round(3)  # 1 / log(2)
    array([1.443, 1.443])
    """
    record = lists.measure
    if record.products:
        return None
    pairs: list[tuple[Any, Any]] = []
    for _, found in in_blocks(lists):
        if found.indices.shape[1] > 1:
            near = np.maximum(found.distances[np.isfinite(found.distances[:, -1])], 0)
            pairs.append(log_ratios(record.lengths(near)))
    if not pairs:
        return None
    counts, totals = (np.concatenate(part) for part in zip(*pairs, strict=True))
    known = totals > 0
    if not known.any():
        return None
    return LocalDimension(float(counts.sum() / totals.sum()), counts[known] / totals[known])


def hubness(occurrence: npt.NDArray[np.int64], largest: int = 10) -> Hubness:
    """Describe the distribution of the k-occurrence, which :meth:`tonari.KNNGraph.occurrence` returns.

    The skewness is the mean of (N - μ)³ over σ³ (Radovanović, Nanopoulos and Ivanović, "Hubs in space", JMLR 11, 2010,
    section 2). It is near 0 in few dimensions and grows with the intrinsic dimension.

    Examples
    --------
    >>> found = hubness(np.array([0, 1, 0, 7]), largest=2)
    >>> found.antihubs, found.hubs
    (2, [(3, 7), (1, 1)])
    """
    deviations = occurrence - occurrence.mean()
    spread = float(np.sqrt((deviations**2).mean()))
    skewness = float((deviations**3).mean()) / spread**3 if spread > 0 else 0.0
    order = np.argsort(-occurrence, kind="stable")[:largest]
    return Hubness(skewness, int((occurrence == 0).sum()), [(int(at), int(occurrence[at])) for at in order])


def histogram(values: npt.NDArray[Any], bins: int = 40, *, whole: bool = False) -> Histogram | None:
    """Count values in bins of equal width.

    Parameters
    ----------
    values : array of shape (n,)
    bins : int
        Largest number of bins. If all values are equal there is one bin; whole numbers have at most one bin for each
        number.
    whole : bool
        Whether the values are whole numbers. Bins then have a whole width, are centred on whole numbers and contain all
        values. Otherwise 0.5 % of the values at each end may lie outside, so that a few outliers do not compress the
        histogram.

    Returns
    -------
    Histogram or None
        None if no value is finite.
    """
    finite = values[np.isfinite(values)]
    if not len(finite):
        return None
    if whole:
        first, last = int(finite.min()), int(finite.max())
        width = -(-(last - first + 1) // bins)
        edges = np.arange(first, last + width + 1, width, dtype=np.float64) - 0.5
    else:
        least, most = (float(end) for end in np.quantile(finite, [tuning.TAIL, 1 - tuning.TAIL], method="nearest"))
        edges = np.linspace(least, most, bins + 1 if most > least else 2)
    inside = finite[(finite >= edges[0]) & (finite <= edges[-1])]
    if edges[0] == edges[-1]:
        return Histogram(edges, np.array([len(inside)]), len(values) - len(inside))
    counts = np.histogram(inside, edges)[0]
    return Histogram(edges, counts.astype(np.int64), len(values) - len(inside))
