"""Search each query among the points listed for it, for rows of bits: many small problems in one call."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.core.isa import chosen_isa
from tonari.core.listed import Listed, in_blocks
from tonari.core.neighbors import Neighbors
from tonari.core.progress import ProgressLike
from tonari.costs.model import listed_bits_seconds


def search_listed(
    queries: npt.NDArray[np.uint8],
    points: npt.NDArray[np.uint8],
    k: int,
    metric: str,
    listed: Listed,
    *,
    threads: int | None = None,
    progress: ProgressLike = False,
    found: Neighbors | None = None,
) -> Neighbors:
    """Find the k nearest of the points listed for each query; see ``exact/cpu/listed.py``.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.array([[0], [1], [3]], np.uint8)
    >>> listed = Listed(np.array([1, 2]), np.array([0, 1]), np.array([2, 2]))
    >>> search_listed(rows[:2], rows, 2, "hamming", listed).indices
    array([[ 1,  2],
           [ 2, -1]], dtype=int32)
    """
    isa = chosen_isa()
    if found is None:
        found = Neighbors.empty(len(queries), k, len(points))
    distances, indices = found
    begins, ends = (np.ascontiguousarray(part, np.int64) for part in (listed.begins, listed.ends))
    numbers, lengths, self_ids = listed.numbers, ends - begins, listed.self_ids
    seconds = listed_bits_seconds(len(queries), int(lengths.sum()), points.shape[1], isa)

    def call(rows: slice) -> None:
        own = None if self_ids is None else self_ids[rows]
        part = distances[rows], indices[rows]
        _native.search_listed_bits(metric, isa, queries[rows], points, k, own, numbers, begins[rows], ends[rows], *part)

    in_blocks(lengths, seconds, call, threads=threads, progress=progress)
    return found
