"""Conversion of FAISS's metric numbers and arrays, and padding of neighbour lists with missing neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.compat.arguments import numbers_of
from tonari.core.errors import Unsupported
from tonari.core.results.neighbors import Neighbors
from tonari.metrics import METRICS

METRIC_INNER_PRODUCT = 0
METRIC_L2 = 1
METRIC_L1 = 2
METRIC_Linf = 3
METRIC_Canberra = 20

_METRICS = {
    METRIC_INNER_PRODUCT: "inner_product",
    METRIC_L2: "sqeuclidean",
    METRIC_L1: "l1",
    METRIC_Linf: "linf",
    METRIC_Canberra: "canberra",
}
_LARGEST = np.finfo(np.float32).max


def metric_of(metric: Any) -> str:
    """Return tonari's name of the metric that has this number in FAISS."""
    number = inputs.check_count(metric, "metric", least=0)
    if number not in _METRICS:
        raise Unsupported(f"metric={number}: expected one of {', '.join(map(str, _METRICS))}; for others use faiss")
    return _METRICS[number]


def rows_of(x: Any, name: str, width: int | None = None) -> npt.NDArray[np.float32]:
    """Check an array of rows, which may be empty, and return it in float32."""
    array = numbers_of(x, name, "(n, d)")
    if array.ndim != 2 or (width is not None and array.shape[1] != width):
        raise ValueError(f"{name}: expected shape (n, {'d' if width is None else width}), got {array.shape}")
    with np.errstate(over="ignore"):  # values beyond float32 become infinite, which as_rows refuses
        rows: npt.NDArray[np.float32] = np.ascontiguousarray(array, np.float32)
    if len(rows):
        inputs.as_rows(rows, name)
    return rows


def ids_of(x: Any, name: str) -> npt.NDArray[np.int64]:
    """Check ids, which are whole numbers of shape (n,), and return them as int64.

    >>> ids_of([7, 9], "ids")
    array([7, 9])
    """
    array = numbers_of(x, name, "(n,)")
    if array.ndim != 1 or (array.dtype.kind not in "iu" and len(array)):
        raise TypeError(f"{name}: expected whole numbers of shape (n,), got {array.dtype} of shape {array.shape}")
    if len(array) and int(array.max()) > np.iinfo(np.int64).max:
        raise ValueError(f"{name}: has {array.max()}, expected numbers that fit into int64")
    return array.astype(np.int64)


def filled(m: int, k: int, metric: str) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Return distances and indices of shape (m, k) that stand for missing neighbours."""
    worst = -_LARGEST if METRICS[metric].descending else _LARGEST
    return np.full((m, k), worst, np.float32), np.full((m, k), -1, np.int64)


def padded(found: Neighbors, k: int, metric: str) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Return distances and indices of shape (m, k), with missing neighbours appended to lists shorter than k."""
    m, there = found.indices.shape
    if there == k:
        return found.distances, found.indices.astype(np.int64)
    D, I = filled(m, k, metric)  # noqa: E741, as FAISS calls them
    D[:, :there], I[:, :there] = found.distances, found.indices
    return D, I
