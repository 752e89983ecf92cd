"""Weights of neighbours, and predictions from them: winning classes, shares of classes, and means.

Functions whose names end in `_within` take the neighbours within a radius, whose lists have different lengths.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core.results.neighbors import Neighbors
from tonari.core.results.radius_neighbors import RadiusNeighbors
from tonari.core.rows.slices import cut
from tonari.estimators import tuning

_ENTRY_BYTES = 64  # bytes of memory for one entry of a neighbour list, including the values computed from it

Values = npt.NDArray[Any]
Float64 = npt.NDArray[np.float64]


def weights_of(found: Neighbors, weights: Any) -> Float64 | None:
    """Return the weight of each neighbour, float64 of shape (m, k); None if all weights are equal.

    With "distance" the weight is 1 / distance. If some neighbours of a row are at distance 0, these have weight 1 and
    its other neighbours weight 0.

    Raises
    ------
    ValueError
        A function returns weights of another shape than the distances, or only zeros for a row.

    Examples
    --------
    >>> found = Neighbors(np.array([[0.5, 2.0], [0.0, 2.0]]), np.array([[4, 7], [5, 7]]))
    >>> weights_of(found, "distance").tolist()
    [[2.0, 0.5], [1.0, 0.0]]
    """
    if weights in ("uniform", None):
        return None
    distances: Float64 = found.distances.astype(np.float64)
    if weights == "distance":
        with np.errstate(divide="ignore"):
            inverse = 1.0 / distances
        return np.where(np.isinf(inverse).any(axis=1, keepdims=True), np.isinf(inverse), inverse)
    factors: Float64 = np.asarray(weights(distances), np.float64)
    if factors.shape != distances.shape:
        raise ValueError(f"weights: the function gave shape {factors.shape} for distances of shape {distances.shape}")
    if not (factors != 0).any(axis=1).all():
        row = int((factors != 0).any(axis=1).argmin())
        raise ValueError(f"weights: the function gave only zeros for row {row}; expected one weight that is not 0")
    return factors


def winners(labels: Values, found: Neighbors, weights: Float64 | None, classes: int, memory: int | None) -> Values:
    """Return the class with the most votes among each row's neighbours, the smallest class in a tie, of shape (m,).

    Parameters
    ----------
    labels : integer array of shape (n,)
        The class of each fitted row, 0 to classes - 1.
    found : Neighbors of shape (m, k)
        The neighbours of each row.
    weights : float64 of shape (m, k), optional
        The votes of each neighbour; None counts each as one vote.
    classes : int
        The number of classes.
    memory : int, optional
        Limit on the bytes of one block of rows.

    Examples
    --------
    >>> found = Neighbors(np.zeros((2, 4)), np.array([[0, 1, 2, 3], [3, 0, 0, 1]]))
    >>> winners(np.array([7, 5, 7, 5]), found, None, 10_000, None).tolist()
    [5, 5]
    """
    m, k = found.indices.shape
    won = np.empty(m, np.intp)
    few = classes <= tuning.FEW_CLASSES * k or (weights is not None and not (weights >= 0).all())
    for part in cut(m, rows_at_once(classes if few else k, memory)):
        votes, own = labels[found.indices[part]], None if weights is None else weights[part]
        if not few:
            won[part] = _most(votes, own)
        elif own is None or (own >= 0).all():
            won[part] = _sums(votes, own, classes).argmax(axis=1)
        else:  # if the sum of a row's weights is negative, the largest sum of a class is not its largest share
            won[part] = _shares(votes, own, classes).argmax(axis=1)
    return won


def shares(labels: Values, found: Neighbors, weights: Float64 | None, classes: int, memory: int | None) -> Float64:
    """Return each class's share of the votes of a row's neighbours, float64 of shape (m, classes).

    Parameters as for :func:`winners`. `memory` does not include the result.

    >>> found = Neighbors(np.zeros((1, 4)), np.array([[0, 1, 2, 3]]))
    >>> shares(np.array([0, 2, 2, 2]), found, None, 3, None).tolist()
    [[0.25, 0.0, 0.75]]
    """
    shares = np.empty((len(found.indices), classes))
    for part in cut(len(shares), rows_at_once(classes, memory)):
        shares[part] = _shares(labels[found.indices[part]], None if weights is None else weights[part], classes)
    return shares


def means(values: Values, found: Neighbors, weights: Float64 | None, memory: int | None) -> Float64:
    """Return the weighted mean of the values of each row's neighbours, float64 of shape (m, outputs).

    `values` has the values of each fitted row, of shape (n, outputs); the other parameters are those of
    :func:`winners`.

    >>> found = Neighbors(np.zeros((1, 2)), np.array([[1, 0]]))
    >>> means(np.array([[4.0], [1.0]]), found, np.array([[2.0, 1.0]]), None).tolist()
    [[2.0]]
    """
    m, k = found.indices.shape
    means = np.empty((m, values.shape[1]))
    for part in cut(m, rows_at_once(k * values.shape[1], memory)):
        near = values[found.indices[part]]
        if weights is None:
            means[part] = near.mean(axis=1, dtype=np.float64)
        else:
            means[part] = np.einsum("mko,mk->mo", near, weights[part]) / weights[part].sum(axis=1)[:, None]
    return means


def rows_at_once(width: int, memory: int | None) -> int:
    """Return the number of rows of a block if each row has `width` entries; at least 1."""
    entries = tuning.ENTRIES if memory is None else min(tuning.ENTRIES, memory // _ENTRY_BYTES)
    return max(1, entries // width)


def _sums(labels: Values, weights: Float64 | None, classes: int) -> Values:
    """Return the sum of votes for each class, of shape (m, classes), from labels of shape (m, k)."""
    m = len(labels)
    cells = (labels + np.arange(0, m * classes, classes)[:, None]).ravel()
    sums: Values = np.bincount(cells, None if weights is None else weights.ravel(), minlength=m * classes)
    return sums.reshape(m, classes)


def _shares(labels: Values, weights: Float64 | None, classes: int) -> Float64:
    votes: Float64 = _sums(labels, weights, classes).astype(np.float64)
    votes /= labels.shape[1] if weights is None else votes.sum(axis=1, keepdims=True)
    return votes


def _most(labels: Values, weights: Float64 | None) -> Values:
    """Return the label with the most votes in each row, the smallest label in a tie; fast for many classes."""
    order = np.argsort(labels, axis=1, kind="stable")  # stable, so that votes are added in the same order as by _sums
    ordered = np.take_along_axis(labels, order, axis=1)
    begins = np.ones(labels.shape, bool)
    begins[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    runs = np.cumsum(begins).reshape(labels.shape) - 1
    votes = None if weights is None else np.take_along_axis(weights, order, axis=1).ravel()
    sums, named, first = np.bincount(runs.ravel(), votes), ordered[begins], runs[:, 0]
    most = np.maximum.reduceat(sums, first)
    lost = sums < np.repeat(most, begins.sum(axis=1))
    won: Values = np.minimum.reduceat(np.where(lost, named.max(), named), first)
    return won


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
        return _most_within(labels[found.indices], _rows_of(found), weights, m)
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


def _most_within(labels: Values, rows: npt.NDArray[np.int64], weights: Float64 | None, m: int) -> Values:
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
