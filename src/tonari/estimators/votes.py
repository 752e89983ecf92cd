"""Weights of neighbours, and what they give: shares of classes, and means."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core.neighbors import Neighbors

Values = npt.NDArray[Any]
Float64 = npt.NDArray[np.float64]


def weights_of(found: Neighbors, weights: Any) -> Float64 | None:
    """Return the weight of each neighbour, float64 of shape (m, k); None if all are the same.

    With "distance" the weight is 1 / distance. Where a neighbour is at distance 0, those at 0 weigh 1 and others 0.

    Raises
    ------
    ValueError
        A function of distances gives another shape, or only zeros for a row.

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
    given: Float64 = np.asarray(weights(distances), np.float64)
    if given.shape != distances.shape:
        raise ValueError(f"weights: the function gave shape {given.shape} for distances of shape {distances.shape}")
    if not (given != 0).any(axis=1).all():
        row = int((given != 0).any(axis=1).argmin())
        raise ValueError(f"weights: the function gave only zeros for row {row}; expected one weight that is not 0")
    return given


def shares(labels: Values, weights: Float64 | None, classes: int) -> Float64:
    """Return the share of each class among the neighbours of each row: float64 of shape (m, classes).

    >>> shares(np.array([[0, 2, 2, 2]]), None, 3).tolist()
    [[0.25, 0.0, 0.75]]
    """
    m, k = labels.shape
    cells = (labels + np.arange(0, m * classes, classes)[:, None]).ravel()
    sums = np.bincount(cells, None if weights is None else weights.ravel(), minlength=m * classes)
    votes: Float64 = sums.reshape(m, classes).astype(np.float64)
    votes /= k if weights is None else votes.sum(axis=1, keepdims=True)
    return votes


def means(values: Values, weights: Float64 | None) -> Float64:
    """Return the mean of the neighbours' values, of shape (m, k, outputs), as float64 of shape (m, outputs).

    >>> means(np.array([[[1.0], [4.0]]]), np.array([[2.0, 1.0]])).tolist()
    [[2.0]]
    """
    if weights is None:
        found: Float64 = values.mean(axis=1, dtype=np.float64)
    else:
        found = np.einsum("mko,mk->mo", values, weights) / weights.sum(axis=1)[:, None]
    return found
