"""How hard points are for a graph that may miss neighbours: the dimension that they have around their neighbours.

Neighbours of neighbours are near where a point's surroundings have few dimensions, whatever the width of its row. Of
isotropic points in d dimensions nearly all d count; of real descriptors a dozen.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.metrics import get_metric

ROWS, NEIGHBOURS = 256, 20  # that are looked at

# Rounds, and with them time, double with each so many dimensions beyond the first: 100,000 Gaussian points of 8 to 32
# dimensions on two cores took 1, 2, 4 and 8 rounds around 8, 12, 15 and 17.5.
_EASY, _DOUBLING = 12.0, 2.7


def intrinsic_dimension(distances: npt.NDArray[Any]) -> float:
    """The local dimension that distances to nearest neighbours tell, over all rows; 0 if none tells anything.

    Levina and Bickel, Maximum likelihood estimation of intrinsic dimension (NIPS 2004), averaged as MacKay and
    Ghahramani comment on it: the inverse of the mean of log(T_k / T_j).

    Parameters
    ----------
    distances : array of shape (rows, k)
        Not squared, ascending, without the points themselves. Copies, at distance 0, are left out.

    Examples
    --------
    >>> import numpy as np
    >>> radii = np.linspace(0.001, 1, 1000)[None] ** (1 / 5)  # as points fill a ball of five dimensions
    >>> round(intrinsic_dimension(radii), 1)
    5.0
    """
    last, others = distances[:, -1:].astype(np.float64), distances[:, :-1].astype(np.float64)
    apart = others > 0
    total = float(np.log((last / np.where(apart, others, 1.0))[apart]).sum())
    return int(apart.sum()) / total if total > 0 else 0.0


def hardness(distances: npt.NDArray[Any], metric: str) -> float:
    """Times as long as usual NN-Descent is expected to take, at least 1, by distances as a search returns them."""
    record = get_metric(metric)
    if record.products:  # its values are no distances
        return 1.0
    near = np.maximum(distances, 0)
    dimension = intrinsic_dimension(np.sqrt(near) if record.squared else near)
    return float(2.0 ** (max(0.0, dimension - _EASY) / _DOUBLING))
