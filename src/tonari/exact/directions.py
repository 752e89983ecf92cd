"""Directions for contracted forms: along which the rows of a sample spread most.

Any matrix V with V^T V <= I gives a contracted form that is correct (docs/exactness.md, "Contracted forms"); the better
V holds what differs between rows, the fewer candidates are left. Rows are form rows: centred for the euclidean
forms, of length 1 for the angular ones, so the directions are those of the largest second moments.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.exact.memory import SAMPLE_ROWS
from tonari.inputs import as_floats
from tonari.metrics import get_metric

Floats = npt.NDArray[np.float64]

_MORE = 8  # directions beyond those that are asked for, which make the last of them better
_ROUNDS = 3  # multiplications by the second moments; each separates large from small ones further
_WHOLE_BELOW = 160  # dimensions below which all eigenvectors take less time than rounds
_SHORTER = 1.0 - 2.0**-20  # far more than what rounding leaves V^T V above I


def sampled_form_rows(
    points: npt.NDArray[Any], metric: str, centre: npt.ArrayLike, scale: float
) -> npt.NDArray[np.float32]:
    """Return the form rows of up to 4,096 points, to float32's precision; rows that it cannot hold are left out.

    Parameters
    ----------
    points : array of shape (n, d)
    metric : str
        Of a product family.
    centre, scale
        Of the form; not used by angular metrics.

    Returns
    -------
    float32 array of shape (at most 4,096, d)
    """
    rows = as_floats(points[:: -(-len(points) // SAMPLE_ROWS)]).astype(np.float64)
    record = get_metric(metric)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if record.angular:
            if record.centred:
                rows = rows - rows.mean(axis=1, keepdims=True)
            rows = rows / np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
        else:
            rows = (rows - np.asarray(centre)) * scale
        made = rows.astype(np.float32)
        usable = np.isfinite(np.einsum("ij,ij->i", made, made))
    return made if usable.all() else made[usable]


def principal_directions(rows: npt.NDArray[np.float32], count: int) -> Floats:
    """Return `count` directions of largest second moment, by subspace iteration.

    Parameters
    ----------
    rows : float32 array of shape (any, d)
        Form rows.
    count : int
        Less than d.

    Returns
    -------
    float64 array V of shape (d, count), C-contiguous
        V^T V is (1 - 2^-20)^2 I up to rounding: in no direction is a row longer than it was. The directions are in no
        order: a random rotation makes columns of equal spread of them, which int8 steps suit best.

    Notes
    -----
    N. Halko, P. G. Martinsson, J. A. Tropp, *Finding structure with randomness*, SIAM Review 53 (2011), algorithm 4.4.
    """
    d, rng = rows.shape[1], np.random.default_rng(0)
    if d < _WHOLE_BELOW:
        basis = np.linalg.eigh(rows.T.astype(np.float64) @ rows)[1][:, -count:]
    else:
        wide = min(d, count + _MORE)
        basis = rng.standard_normal((d, wide), np.float32)
        for _ in range(_ROUNDS):
            basis = np.linalg.qr(rows.T @ (rows @ basis))[0]
        small = (rows @ basis).astype(np.float64)
        basis = basis.astype(np.float64) @ np.linalg.eigh(small.T @ small)[1][:, -count:]
    turned = basis @ np.linalg.qr(rng.standard_normal((count, count)))[0]
    return np.ascontiguousarray(np.linalg.qr(turned)[0] * _SHORTER)
