"""Exact values of each query and its listed points: many small problems in one call."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.core.isa import chosen_isa
from tonari.core.listed import Listed, in_blocks
from tonari.core.neighbors import Neighbors
from tonari.core.progress import ProgressLike
from tonari.costs.model import listed_seconds


def search_listed(
    queries: npt.NDArray[Any],
    points: npt.NDArray[Any],
    k: int,
    metric: str,
    listed: Listed,
    *,
    threads: int | None = None,
    progress: ProgressLike = False,
    found: Neighbors | None = None,
) -> Neighbors:
    """Find the k nearest of the listed points of each query.

    Parameters
    ----------
    queries : checked rows of shape (m, d)
    points : checked rows of shape (n, d)
    k : int
    metric : str
    listed : Listed
    threads : int, optional
    progress : None, bool or callable(done, total)
    found : Neighbors of shape (m, k), optional
        Arrays for the result. Default: new arrays.

    Returns
    -------
    Neighbors of shape (m, k)
        Entries are -1 at inf (-inf for similarities) if fewer than k points are listed.

    Examples
    --------
    >>> import numpy as np
    >>> line = np.array([[0.0], [1.0], [3.0]], np.float32)
    >>> listed = Listed(np.array([1, 2]), np.array([0, 1]), np.array([2, 2]))
    >>> search_listed(line[:2], line, 2, "euclidean", listed).indices
    array([[ 1,  2],
           [ 2, -1]], dtype=int32)
    """
    isa, m, d = chosen_isa(), len(queries), points.shape[1]
    if found is None:
        found = Neighbors.empty(m, k, len(points), queries.dtype, points.dtype)
    distances, indices = found
    begins, ends = (np.ascontiguousarray(part, np.int64) for part in (listed.begins, listed.ends))
    numbers, lengths, self_ids = listed.numbers, ends - begins, listed.self_ids
    seconds = listed_seconds(m, int(lengths.sum()), d, isa)

    def call(rows: slice) -> None:
        own = None if self_ids is None else self_ids[rows]
        part = distances[rows], indices[rows]
        _native.search_listed(metric, isa, queries[rows], points, k, own, numbers, begins[rows], ends[rows], *part)

    in_blocks(lengths, seconds, call, threads=threads, progress=progress)
    return found
