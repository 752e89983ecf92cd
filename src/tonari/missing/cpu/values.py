"""The exact distances of pairs of rows with missing values."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.core.process.isa import without_amx
from tonari.core.process.workers import Workers, default_threads
from tonari.core.rows.slices import cut
from tonari.missing import tuning

Ids = npt.NDArray[np.int64]


def pair_values(
    queries: npt.NDArray[Any], points: npt.NDArray[Any], rows: Ids, ids: Ids, threads: int | None = None
) -> npt.NDArray[np.float64]:
    """Compute the float64 distance of each pair queries[rows[i]], points[ids[i]]; NaN if they have no common column.

    >>> pair_values(np.array([[0.0, np.nan]]), np.array([[3.0, 4.0]]), np.array([0]), np.array([0])).round(3).tolist()
    [4.243]
    """
    values, isa = np.empty(len(rows)), without_amx(None)
    seconds = len(rows) * (tuning.PAIR_SECONDS + tuning.VALUE_SECONDS * queries.shape[1])
    workers = Workers(threads or default_threads(seconds))

    def compute(part: slice) -> None:
        workers.check()
        _native.missing_values(isa, queries, points, rows[part], ids[part], values[part])

    workers.map(compute, cut(len(rows), tuning.PAIRS))
    return values
