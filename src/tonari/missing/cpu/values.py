"""The exact distances of pairs of rows with missing values."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.core.process.workers import Workers, default_threads
from tonari.core.rows.slices import cut
from tonari.metrics.definitions import LANES, Float64
from tonari.missing import tuning

Ids = npt.NDArray[Any]


def pair_values(
    queries: npt.NDArray[Any], points: npt.NDArray[Any], rows: Ids, ids: Ids, threads: int | None = None
) -> Float64:
    """Compute the float64 distance of each pair queries[rows[i]], points[ids[i]]; NaN if they have no common column.

    >>> pair_values(np.array([[0.0, np.nan]]), np.array([[3.0, 4.0]]), np.array([0]), np.array([0])).round(3).tolist()
    [4.243]
    """
    values, d = np.empty(len(rows)), queries.shape[1]
    seconds = len(rows) * (tuning.PAIR_SECONDS + tuning.VALUE_SECONDS * d)
    workers = Workers(threads or default_threads(seconds))

    def compute(part: slice) -> None:
        workers.check()
        apart = inputs.as_floats(queries.take(rows[part], axis=0)).astype(np.float64)
        apart -= inputs.as_floats(points.take(ids[part], axis=0)).astype(np.float64)  # mixed dtypes are slower
        count = d - np.count_nonzero(np.isnan(apart), axis=1)
        np.square(apart, out=apart)
        np.fmax(apart, 0.0, out=apart)  # replaces NaN by 0
        with np.errstate(divide="ignore", invalid="ignore"):
            values[part] = np.sqrt(_lane_sums(apart) * (d / count))

    workers.map(compute, cut(len(rows), tuning.PAIRS))
    return values


def _lane_sums(terms: Float64) -> Float64:
    """Sum the terms in each row, in the fixed order of ``metrics/definitions.py``."""
    lanes = np.zeros((len(terms), LANES))
    for begin in range(0, terms.shape[1], LANES):
        part = terms[:, begin : begin + LANES]
        lanes[:, : part.shape[1]] += part
    while lanes.shape[1] > 1:
        half = lanes.shape[1] // 2
        lanes = lanes[:, :half] + lanes[:, half:]
    return np.asarray(lanes[:, 0])
