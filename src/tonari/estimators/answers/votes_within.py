"""Weights of the neighbours within a radius, in lists of different lengths, and predictions from them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core.results.radius_neighbors import RadiusNeighbors
from tonari.core.rows.slices import cut
from tonari.estimators import tuning
from tonari.estimators.answers.votes import Float64, Values


def weights_within(found: RadiusNeighbors, weights: Any) -> Float64 | None:
    """Return the weight of each neighbour, float64 of shape (entries,) as in the lists; None if all weights are equal.

    With "distance" the weight is 1 / distance; in a list with distances of 0, the neighbours at distance 0 have weight
    1 and the others weight 0. A function receives an object array with one array of distances for each list, and
    returns weights in the same form.

    Raises
    ------
    ValueError
        A function returns weights whose lengths differ from those of the lists.

    Examples
    --------
    >>> found = RadiusNeighbors(np.array([0, 2, 2, 4]), np.array([4, 7, 5, 7]), np.array([0.5, 2.0, 0.0, 2.0]))
    >>> weights_within(found, "distance").tolist()
    [2.0, 0.5, 1.0, 0.0]
    """
    if weights in ("uniform", None):
        return None
    distances: Float64 = found.distances.astype(np.float64)
    if weights == "distance":
        with np.errstate(divide="ignore"):
            inverse = 1.0 / distances
        copies, rows = np.isinf(inverse), _rows_of(found)
        has_copies = np.bincount(rows, copies, minlength=len(found.indptr) - 1) > 0
        return np.where(has_copies[rows], copies, inverse)
    answer = weights(cut_up(distances, found.indptr))
    lengths = [np.size(each) for each in answer]
    if lengths != np.diff(found.indptr).tolist():
        raise ValueError(
            f"weights: the function gave {sum(lengths)} weights in {len(lengths)} lists for {len(distances)} distances "
            f"in {len(found.indptr) - 1}; expected a weight for each distance"
        )
    return np.concatenate([np.zeros(0), *(np.asarray(each, np.float64).ravel() for each in answer)])


def winners_within(labels: Values, found: RadiusNeighbors, weights: Float64 | None, classes: int) -> Values:
    """Return the class with the most votes in each list, of shape (m,): the smallest one in a tie, -1 without votes.

    Parameters
    ----------
    labels : integer array of shape (n,)
        The class of each fitted row, 0 to classes - 1.
    found : RadiusNeighbors of m lists
    weights : float64 of shape (entries,), optional
        The votes of each neighbour; None counts each as one vote.
    classes : int
        The number of classes.

    Examples
    --------
    >>> found = RadiusNeighbors(np.array([0, 4, 4]), np.array([0, 1, 2, 3]), np.zeros(4))
    >>> winners_within(np.array([7, 5, 7, 5]), found, None, 10_000).tolist()
    [5, -1]
    """
    m, entries = len(found.indptr) - 1, len(found.indices)
    if m * classes > tuning.FEW_CLASSES * entries and (weights is None or (weights >= 0).all()):
        return _most(labels[found.indices], _rows_of(found), weights, m)
    won = np.empty(m, np.intp)
    for part in cut(m, max(1, tuning.ENTRIES // classes)):
        votes = shares_within(labels, _part(found, part), _weights_of(found, part, weights), classes)
        won[part] = np.where((votes == 0).all(axis=1), -1, votes.argmax(axis=1))
    return won


def shares_within(labels: Values, found: RadiusNeighbors, weights: Float64 | None, classes: int) -> Float64:
    """Return each class's share of the votes in each list, float64 of shape (m, classes), zeros without votes.

    >>> found = RadiusNeighbors(np.array([0, 4, 4]), np.array([0, 1, 2, 3]), np.zeros(4))
    >>> shares_within(np.array([0, 2, 2, 2]), found, None, 3).tolist()
    [[0.25, 0.0, 0.75], [0.0, 0.0, 0.0]]
    """
    m = len(found.indptr) - 1
    cells = _rows_of(found) * classes + labels[found.indices]
    votes: Float64 = np.bincount(cells, weights, minlength=m * classes).astype(np.float64).reshape(m, classes)
    sums = votes.sum(axis=1, keepdims=True)
    votes /= np.where(sums == 0, 1.0, sums)
    return votes


def means_within(values: Values, found: RadiusNeighbors, weights: Float64 | None) -> Float64:
    """Return the weighted mean of the values in each list, float64 of shape (m, outputs), NaN for an empty list.

    `values` has the values of each fitted row, of shape (n, outputs).

    Raises
    ------
    ValueError
        The weights of a list add up to 0.

    Examples
    --------
    >>> found = RadiusNeighbors(np.array([0, 2, 2]), np.array([1, 0]), np.zeros(2))
    >>> means_within(np.array([[4.0], [1.0]]), found, np.array([2.0, 1.0])).tolist()
    [[2.0], [nan]]
    """
    m, rows = len(found.indptr) - 1, _rows_of(found)
    counts = np.diff(found.indptr)
    sums = counts.astype(np.float64) if weights is None else np.bincount(rows, weights, minlength=m)
    if ((sums == 0) & (counts > 0)).any():
        row = int(((sums == 0) & (counts > 0)).argmax())
        raise ValueError(f"weights: add up to 0 for row {row} of a block; expected a sum other than 0")
    means = np.empty((m, values.shape[1]))
    for column, of_output in enumerate(values.T):
        near = of_output[found.indices].astype(np.float64)
        with np.errstate(invalid="ignore"):  # an empty list gives 0 / 0
            means[:, column] = np.bincount(rows, near if weights is None else near * weights, minlength=m) / sums
    return means


def _rows_of(found: RadiusNeighbors) -> npt.NDArray[np.int64]:
    """Return for each listed neighbour the index of its list, of shape (entries,)."""
    return np.repeat(np.arange(len(found.indptr) - 1), np.diff(found.indptr))


def _part(found: RadiusNeighbors, rows: slice) -> RadiusNeighbors:
    """Return the lists of a slice of the queries."""
    entries = _entries(found, rows)
    ends = found.indptr[rows.start : rows.stop + 1]
    return RadiusNeighbors(ends - ends[0], found.indices[entries], found.distances[entries])


def _weights_of(found: RadiusNeighbors, rows: slice, weights: Float64 | None) -> Float64 | None:
    return None if weights is None else weights[_entries(found, rows)]


def _entries(found: RadiusNeighbors, rows: slice) -> slice:
    return slice(int(found.indptr[rows.start]), int(found.indptr[rows.stop]))


def _most(labels: Values, rows: npt.NDArray[np.int64], weights: Float64 | None, m: int) -> Values:
    """Return the label with the most votes in each of m lists, the smallest one in a tie; fast for many classes."""
    won = np.full(m, -1, np.intp)
    if not len(labels):
        return won
    order = np.lexsort((labels, rows))  # stable, so that votes are added in the order of the neighbour lists
    labels, rows = labels[order], rows[order]
    begins = np.ones(len(labels), bool)
    begins[1:] = (labels[1:] != labels[:-1]) | (rows[1:] != rows[:-1])
    sums = np.bincount(np.cumsum(begins) - 1, None if weights is None else weights[order])
    named, lists = labels[begins], rows[begins]
    first = np.flatnonzero(np.diff(lists, prepend=-1))
    most = np.maximum.reduceat(sums, first)
    lost = sums < np.repeat(most, np.diff(first, append=len(lists)))
    best = np.minimum.reduceat(np.where(lost, named.max(), named), first)
    won[lists[first]] = np.where(most == 0, -1, best)
    return won


def cut_up(entries: npt.NDArray[Any], indptr: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """Split an array of one value per neighbour at `indptr`, and return an object array of each list's values.

    >>> cut_up(np.array([4, 1, 0]), np.array([0, 2, 2, 3])).tolist()
    [array([4, 1]), array([], dtype=int64), array([0])]
    """
    ends = indptr.tolist()
    lists = np.empty(len(ends) - 1, object)
    for row, (begin, end) in enumerate(itertools.pairwise(ends)):
        lists[row] = entries[begin:end]
    return lists
