"""Pairs of points that are near each other."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tonari.core.results.radius_neighbors import RadiusNeighbors


class Pairs(NamedTuple):
    """All pairs of points within a radius of each other, each pair once.

    Attributes
    ----------
    left, right : int32 of shape (count,), or int64 for 2**31 points or more
        Row numbers of the points of each pair, ``left < right``. Pairs are ordered by (left, distance, right).
    distances : float32 or float64 of shape (count,)
        The distance of each pair; for ``inner_product`` the similarity, in descending order for each `left`.
    """

    left: Any
    right: Any
    distances: Any


def pairs_of(found: RadiusNeighbors, first: int) -> Pairs:
    """Return neighbour lists as pairs: on the left the point that a list belongs to, on the right a point in the list.

    The first list belongs to the point with row number `first`, the next list to point `first` + 1, and so on. The list
    of a point may contain only points with larger row numbers.

    The pairs are tensors if the lists are.

    >>> import numpy as np
    >>> from tonari.core.results.radius_neighbors import RadiusNeighbors
    >>> pairs_of(RadiusNeighbors(np.array([0, 0, 1]), np.array([5]), np.array([0.5])), 3).left
    array([4])
    """
    indptr, right, distances = found
    if not isinstance(right, np.ndarray):
        import torch

        numbers = torch.arange(first, first + len(indptr) - 1, dtype=right.dtype, device=right.device)
        return Pairs(numbers.repeat_interleave(indptr.diff(), output_size=len(right)), right, distances)
    counts = indptr[1:] - indptr[:-1]
    left = np.arange(first, first + len(counts), dtype=right.dtype).repeat(counts)
    return Pairs(left, right, distances)


def record_dtype(indices: npt.DTypeLike, distances: npt.DTypeLike) -> np.dtype[Any]:
    """Return the structured dtype of one pair in a file.

    >>> record_dtype("int32", "float32").names
    ('left', 'right', 'distance')
    """
    return np.dtype([("left", indices), ("right", indices), ("distance", distances)])
