"""Estimate how hard a data set is for NN-Descent, by the local intrinsic dimension of its points.

NN-Descent works well if the neighbours of a point's neighbours are near the point. They are if the data have few
dimensions locally, no matter how many columns. The intrinsic dimension of isotropic points in d dimensions is nearly d,
but that of real descriptors is about a dozen.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.metrics import get_metric
from tonari.nn_descent import tuning

ROWS, NEIGHBOURS = 256, 20  # rows in the sample, and nearest neighbours of each of these rows


def intrinsic_dimension(distances: npt.NDArray[Any]) -> float:
    """Estimate the local intrinsic dimension from distances to nearest neighbours; 0 if they do not determine it.

    The maximum-likelihood estimator of Levina and Bickel, Maximum likelihood estimation of intrinsic dimension (NIPS
    2004), averaged over rows as MacKay and Ghahramani propose: the inverse of the mean of log(T_k / T_j).

    Parameters
    ----------
    distances : array of shape (rows, k)
        Not squared, ascending, without the points themselves. Duplicates, at distance 0, are ignored.

    Examples
    --------
    >>> import numpy as np
    >>> radii = np.linspace(0.001, 1, 1000)[None] ** (1 / 5)  # of points that fill a ball in five dimensions
    >>> round(intrinsic_dimension(radii), 1)
    5.0
    """
    counts, totals = log_ratios(distances)
    total = float(totals.sum())
    return int(counts.sum()) / total if total > 0 else 0.0


def log_ratios(distances: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return, for each row, the count of distances T_j > 0 with j < k, and the sum of log(T_k / T_j) over them.

    The count divided by the sum is the estimate at one point. Distances are as for :func:`intrinsic_dimension`.
    """
    last, others = distances[:, -1:].astype(np.float64), distances[:, :-1].astype(np.float64)
    apart = others > 0
    # the quotient of two distances may overflow
    logs = np.log(np.where(apart, last, 1.0)) - np.log(np.where(apart, others, 1.0))
    return apart.sum(axis=1), logs.sum(axis=1)


def hardness(distances: npt.NDArray[Any], metric: str) -> float:
    """Estimate, from sampled distances, the factor by which hard data slow NN-Descent down; 1 for easy data."""
    record = get_metric(metric)
    if record.products:  # the values of this metric are not distances
        return 1.0
    near = np.maximum(distances, 0)
    dimension = intrinsic_dimension(record.lengths(near))
    return float(2.0 ** (max(0.0, dimension - tuning.EASY_DIMENSIONS) / tuning.DOUBLING_DIMENSIONS))
