"""Checks of the arguments of SciPy's KDTree, and their conversion to tonari's arguments."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.compat.arguments import number_of, numbers_of
from tonari.core.errors import Unsupported
from tonari.metrics.names import MINKOWSKI, powers

_LEAST_P = 1.0  # smallest p of a Minkowski norm that SciPy accepts


def metric_of(p: Any, eps: Any) -> str:
    """Return tonari's metric for the Minkowski norm `p`, and check `eps`, which has no effect on exact answers.

    >>> metric_of(1, 0), metric_of(3, 0.5), metric_of(float("inf"), 0.0)
    ('l1', 'minkowski:3', 'linf')
    """
    if eps != 0.0 or type(eps) is not float:
        number_of(eps, "eps", least=0.0)
    number = type(p) is float or (not isinstance(p, bool) and isinstance(p, Real))
    name = MINKOWSKI.get(float(p)) if number and p >= _LEAST_P else None
    if name is None:
        raise Unsupported(f"p={p!r}: expected {powers(_LEAST_P)}; for another p use scipy.spatial.KDTree")
    return name


def box_of(boxsize: Any, data: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Check `boxsize` and return the box's length in each dimension, 0 for dimensions that are not periodic.

    >>> box_of([2, 0], np.array([[1.5, 7.0]]))
    array([2., 0.])
    """
    lengths = float64_rows(boxsize, "boxsize")
    m = data.shape[1]
    if lengths.shape not in ((), (1,), (m,)):
        raise ValueError(f"boxsize: has shape {lengths.shape}, expected one length, or one for each of {m} coordinates")
    if not np.isfinite(lengths).all() or (lengths < 0).any():
        raise ValueError(f"boxsize={boxsize!r}: expected lengths of at least 0, with 0 where the box is not periodic")
    box = np.broadcast_to(lengths, (m,)).copy()
    outside = (box > 0) & ((data < 0) | (data >= box))
    if outside.any():
        row, column = (int(each[0]) for each in np.nonzero(outside))
        raise ValueError(
            f"data: row {row} has {data[row, column]:g} in column {column}, expected 0 to less than boxsize, "
            f"{box[column]:g}; use numpy.mod(data, boxsize)"
        )
    return box


def float64_rows(x: Any, name: str) -> npt.NDArray[np.float64]:
    """Return an array or tensor of real numbers, of any dtype and shape, as a float64 array."""
    return numbers_of(x, name, "(n, m)").astype(np.float64, copy=False)


def queries_of(x: Any, m: int) -> tuple[npt.NDArray[np.float64], tuple[int, ...]]:
    """Check query points of shape (..., m); return them as the rows of a matrix, and their leading dimensions."""
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
    """Check `r`, a radius for all queries or an array of them, and return a radius for each query."""
    radii = float64_rows(r, name)
    if np.isnan(radii).any() or (radii < 0).any():
        raise ValueError(f"{name}={r!r}: expected numbers of at least 0")
    try:
        return np.broadcast_to(radii, shape).ravel()
    except ValueError as error:
        raise ValueError(f"{name}: has shape {radii.shape}, expected one number or one for each of {shape}") from error


def weights_of(
    weights: Any, sizes: tuple[int, int], same: bool
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Check `weights`, and return the weights of both trees' points; `same` says that both are the same tree."""
    if not isinstance(weights, tuple):
        if not same:
            raise ValueError("weights: expected a tuple of two arrays, as the trees differ")
        weights = weights, weights
    if len(weights) != len(sizes):
        raise ValueError(f"weights: has {len(weights)} parts, expected 2: an array or None for each tree")
    first, second = (
        np.ones(size) if each is None else float64_rows(each, "weights")
        for each, size in zip(weights, sizes, strict=True)
    )
    for each, size in zip((first, second), sizes, strict=True):
        if each.shape != (size,) or not np.isfinite(each).all():
            raise ValueError(f"weights: expected {size} finite numbers, one for each point, got shape {each.shape}")
    return first, second
