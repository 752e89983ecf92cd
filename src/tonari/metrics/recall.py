"""Recall: the share of the true neighbours that were found, with a confidence interval.

The sampling unit is the row. Neighbours of the same row tend to be missed together (a missed cluster affects whole
rows), so an interval for rows x k independent trials would be too narrow. See :func:`_interval`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core.process.floats import in_default_floats
from tonari.core.results.neighbors import Neighbors, first_repeated_row
from tonari.metrics import get_metric

# A returned point counts as a neighbour if its distance exceeds the true k-th one by at most SLACK_UNITS roundings, so
# that the last bits of another program's arithmetic do not break a tie. A rounding is the machine epsilon of the less
# precise of the two dtypes: the same tolerance for all dtypes would far exceed the last bits of float64, and wrong
# points would count.
SLACK_UNITS = 4

_Z95 = 1.959963984540054


@dataclass(frozen=True)
class Recall:
    """The recall, the share of the true neighbours that were found; a point never counts as its own neighbour.

    Attributes
    ----------
    by_index : float
        Share of the true ids that were returned. Among tied points only the smallest indices count.
    by_distance : float
        Share of returned points no farther than the true k-th neighbour (within four roundings of the dtype of the
        distances: a relative 4.8e-7 in float32, 8.9e-16 in float64). Any of several tied points counts, so this is
        at least ``by_index`` if the distances are right.
    low, high : float
        95 % confidence interval of ``by_distance`` over all rows; both ends equal ``by_distance`` if every row was
        measured.
    rows : int
        Number of rows measured.
    k : int
        Number of neighbours per row.
    """

    by_index: float
    by_distance: float
    low: float
    high: float
    rows: int
    k: int


@in_default_floats
def neighbors_recall(
    found: Neighbors, truth: Neighbors, *, metric: str = "euclidean", population: int | None = None
) -> Recall:
    """Measure the recall of a search result, given the true neighbours.

    The queries are treated as a random sample, and the interval is for the population from which they were drawn.

    Parameters
    ----------
    found : Neighbors of shape (m, k)
        The measured lists. Distances are not recomputed, so they must be the distances of the listed points.
    truth : Neighbors of shape (m, k) or wider
        Extra columns are ignored.
    metric : str
        Determines whether lists have ascending distances or descending similarities.
    population : int, optional
        Number of queries from which the measured ones were drawn, without replacement. Default: infinitely many.

    Raises
    ------
    ValueError
        The numbers of rows differ, truth has fewer columns than found, a row of found lists a point twice, or the
        population is smaller than the sample.

    Examples
    --------
    >>> import numpy as np
    >>> from tonari.metrics.recall import neighbors_recall
    >>> from tonari.core.results.neighbors import Neighbors
    >>> truth = Neighbors(np.array([[1.0, 2.0]]), np.array([[4, 5]]))
    >>> tied = Neighbors(np.array([[1.0, 2.0]]), np.array([[4, 6]]))
    >>> result = neighbors_recall(tied, truth)
    >>> result.by_index, result.by_distance
    (0.5, 1.0)
    """
    m, k = found.indices.shape
    if len(truth.indices) != m or truth.indices.shape[1] < k:
        raise ValueError(f"found of shape {(m, k)} cannot be measured against truth of shape {truth.indices.shape}")
    if m == 0 or k == 0:
        raise ValueError(f"found of shape {(m, k)} has nothing to measure")
    if population is not None and population < m:
        raise ValueError(f"population={population}: expected at least the number of rows, {m}")
    exact_k = Neighbors(truth.distances[:, :k], truth.indices[:, :k])
    return recall_of(found, exact_k, metric, np.arange(m), population)


def recall_of(
    found: Neighbors, truth: Neighbors, metric: str, rows: npt.NDArray[Any], population: int | None
) -> Recall:
    """Measure the recall of lists against true lists of the same shape; `rows` are the row numbers for messages."""
    repeated = first_repeated_row(found.indices)
    if repeated >= 0:
        raise ValueError(f"row {rows[repeated]} lists a point twice; recall is undefined for such a list")
    near = near_entries(found, truth, metric)
    by_row = near.mean(axis=1)
    low, high = _interval(by_row, population)
    return Recall(
        float(shared_entries(found, truth, metric).mean()), float(by_row.mean()), low, high, *found.indices.shape
    )


def near_entries(found: Neighbors, truth: Neighbors, metric: str) -> npt.NDArray[np.bool_]:
    """Return, for each listed point, whether it is as near as the true k-th neighbour.

    Distances may differ by :data:`SLACK_UNITS` roundings.
    """
    last = truth.distances[:, -1:].astype(np.float64)
    share = SLACK_UNITS * rounding(found.distances.dtype, truth.distances.dtype)
    slack = share * np.abs(last, where=np.isfinite(last), out=np.zeros_like(last))
    near = found.distances >= last - slack if get_metric(metric).descending else found.distances <= last + slack
    present: npt.NDArray[np.bool_] = near & (found.indices >= 0)
    if not get_metric(metric).missing:
        return present
    present &= np.isfinite(found.distances)
    return np.asarray(present | _both_missing(found, truth))


def _both_missing(found: Neighbors, truth: Neighbors) -> npt.NDArray[np.bool_]:
    """Return a mask of the entries that are missing in both lists: rows with NaN may have fewer than k neighbours."""
    both: npt.NDArray[np.bool_] = (found.indices < 0) & (truth.indices < 0)
    return both


def shared_entries(found: Neighbors, truth: Neighbors, metric: str) -> npt.NDArray[np.bool_]:
    """Return a mask of the listed points that are in the true list of the same row."""
    m = len(found.indices)
    span = 1 + max(int(found.indices.max()), int(truth.indices.max()))
    row_start = np.arange(m)[:, None] * span
    true = np.sort(truth.indices, axis=1)
    # the keys ascend; the appended last key exceeds all others
    true = np.append((row_start + true)[true >= 0], m * span)
    listed = row_start + found.indices
    shared: npt.NDArray[np.bool_] = (true[np.searchsorted(true, listed)] == listed) & (found.indices >= 0)
    return shared | _both_missing(found, truth) if get_metric(metric).missing else shared


def rounding(*dtypes: np.dtype[Any]) -> float:
    """Return the largest machine epsilon of the dtypes; that of integers counts as 0."""
    return max((float(np.finfo(dtype).eps) for dtype in dtypes if dtype.kind == "f"), default=0.0)


def _interval(by_row: npt.NDArray[np.float64], population: int | None) -> tuple[float, float]:
    """Return the 95 % confidence interval of the mean recall of all rows, from the recalls of the sampled rows."""
    # Rows are clusters of k answers, so the variance is the one between rows, with Cochran's finite-population
    # correction (Sampling Techniques, 1977, chapters 2 and 9). It is converted to an effective number of yes/no trials
    # for Wilson's score interval, which stays valid near 0 and 1, where mean +- 1.96 s does not (Franco, Little, Louis
    # and Slud, Journal of Survey Statistics and Methodology 7, 2019). Before the variance is taken, one perfect and one
    # empty row are added (after Agresti and Coull, 1998): a sample without a miss, or without the rare row that misses
    # everything, then counts as at most about one trial per row, and its interval is close to the rule of three.
    rows = len(by_row)
    mean = float(by_row.mean())
    padded = np.append(by_row, (0.0, 1.0))
    unseen = 1.0 if population is None else 1.0 - rows / population
    variance = unseen * float(padded.var()) / rows
    if variance == 0.0:
        return mean, mean
    centre = float(padded.mean())
    trials = centre * (1.0 - centre) / variance
    z2 = _Z95 * _Z95 / trials
    middle = (mean + z2 / 2) / (1 + z2)
    reach = _Z95 / (1 + z2) * math.sqrt(mean * (1 - mean) / trials + z2 / (4 * trials))
    return max(0.0, min(mean, middle - reach)), min(1.0, max(mean, middle + reach))
