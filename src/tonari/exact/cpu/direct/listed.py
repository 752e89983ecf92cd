"""Search, for each query, only the points listed for it, computing all exact values: many searches in one call.

>>> import numpy as np
>>> from tonari.core.rows.listed import Listed
>>> line = np.array([[0.0], [1.0], [3.0]], np.float32)
>>> listed = Listed(np.array([1, 2]), np.array([0, 1]), np.array([2, 2]))
>>> search_listed(line[:2], line, 2, "euclidean", listed).indices
array([[ 1,  2],
       [ 2, -1]], dtype=int32)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.core.process.isa import chosen_isa
from tonari.core.rows.listed import Listed, ListedSearch, in_blocks
from tonari.costs.model import listed_seconds

search_listed = ListedSearch(_native.search_listed, listed_seconds)


def count_listed(
    queries: npt.NDArray[Any],
    points: npt.NDArray[Any],
    limits: npt.NDArray[Any],
    metric: str,
    listed: Listed,
    *,
    threads: int | None = None,
) -> npt.NDArray[np.int64]:
    """Count each query's listed points within its limit; see :meth:`tonari.core.method.SearchMethod.count_listed`."""
    isa, counts = chosen_isa(), np.empty(len(queries), np.int64)
    begins, ends = (np.ascontiguousarray(part, np.int64) for part in (listed.begins, listed.ends))
    farthest, lengths = np.ascontiguousarray(limits, np.float64), ends - begins
    seconds = listed_seconds(len(queries), int(lengths.sum()), points.shape[1], isa)

    def call(rows: slice) -> None:
        part = farthest[rows], listed.numbers, begins[rows], ends[rows], counts[rows]
        _native.count_listed(metric, isa, queries[rows], points, *part)

    in_blocks(lengths, seconds, call, threads=threads, progress=False)
    return counts
