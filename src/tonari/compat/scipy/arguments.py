"""Conversion of SciPy's arguments."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.compat.arguments import leave_out, numbers_of
from tonari.core.errors import Unsupported
from tonari.metrics import MINKOWSKI, powers

_LEAST_P = 1.0  # SciPy's


def metric_of(p: Any, eps: Any) -> str:
    """Return the metric for a Minkowski norm `p`; refuse an `eps` above 0.

    >>> metric_of(1, 0), metric_of(3, 0), metric_of(float("inf"), 0.0)
    ('l1', 'minkowski:3', 'linf')
    """
    leave_out(eps, 0.0, "eps", "answers are exact")
    number = type(p) is float or (not isinstance(p, bool) and isinstance(p, Real))
    name = MINKOWSKI.get(float(p)) if number and p >= _LEAST_P else None
    if name is None:
        raise Unsupported(f"p={p!r}: expected {powers(_LEAST_P)}; for another p use scipy.spatial.KDTree")
    return name


def float64_rows(x: Any, name: str) -> npt.NDArray[np.float64]:
    """Return numbers of any dtype and shape in float64."""
    return numbers_of(x, name, "(n, m)").astype(np.float64, copy=False)


def queries_of(x: Any, m: int) -> tuple[npt.NDArray[np.float64], tuple[int, ...]]:
    """Return points of shape (..., m) as rows, and their leading dimensions."""
    plain = type(x) is np.ndarray and x.dtype == np.float64
    array = x if plain else float64_rows(x, "x")
    if array.ndim == 0 or array.shape[-1] != m:
        raise ValueError(f"x: expected points of {m} coordinates, shape (..., {m}), got {array.shape}")
    lead = array.shape[:-1]
    rows = array.reshape(-1, m)
    return (inputs.as_rows(rows, "x") if len(rows) else rows), lead


def ranks_of(k: Any) -> npt.NDArray[np.int64]:
    """Return the requested ranks of neighbours, counted from 1.

    >>> ranks_of(3), ranks_of([5, 1])
    (array([1, 2, 3]), array([5, 1]))
    """
    if isinstance(k, Sequence | np.ndarray) and not isinstance(k, str) and getattr(k, "ndim", 1) == 1 and len(k):
        return np.array([inputs.check_count(rank, "k") for rank in k], np.int64)
    if isinstance(k, Sequence | np.ndarray):
        raise ValueError(f"k={k!r}: expected a number of neighbours, or a list of ranks, 1 being the nearest")
    return np.arange(1, inputs.check_count(k, "k") + 1)


def radii_of(r: Any, name: str, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """Return one radius, or a radius for each query; queries have this shape."""
    radii = float64_rows(r, name)
    if np.isnan(radii).any() or (radii < 0).any():
        raise ValueError(f"{name}={r!r}: expected numbers of at least 0")
    try:
        return np.broadcast_to(radii, shape).ravel()
    except ValueError as error:
        raise ValueError(f"{name}: has shape {radii.shape}, expected one number or one for each of {shape}") from error
