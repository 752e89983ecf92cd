"""Weights of the k nearest neighbours, and predictions from them: winning classes, shares of classes, and means."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core.results.neighbors import Neighbors
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
