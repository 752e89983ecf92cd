"""Neighbours within a radius: concatenated lists of different lengths, and the record of a radius search."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tonari.core import tuning
from tonari.core.process.caches import cached
from tonari.core.results.neighbors import Neighbors, index_dtype
from tonari.core.rows.allowed import Allowed
from tonari.core.rows.slices import cut


class RadiusNeighbors(NamedTuple):
    """All points within a radius of each of m queries, as in a sparse matrix of compressed rows.

    The arrays belong to the same library as the queries (NumPy, torch, CuPy or JAX), and are on the same device.

    Attributes
    ----------
    indptr : int64 of shape (m + 1,)
        The neighbours of query i are ``indices[indptr[i]:indptr[i + 1]]``, and their distances are
        ``distances[indptr[i]:indptr[i + 1]]``.
    indices : int32 of shape (indptr[m],), or int64 for 2**31 points or more
        Row numbers of the points.
    distances : float32 or float64 of shape (indptr[m],)
        Ascending for each query (``inner_product``: similarities, descending). Points at equal distances are in
        ascending order of index.

    Examples
    --------
    >>> import numpy as np
    >>> from tonari.core.results.radius_neighbors import RadiusNeighbors
    >>> found = RadiusNeighbors(np.array([0, 2, 2]), np.array([7, 3], np.int32), np.array([0.5, 2.0], np.float32))
    >>> found.indices[found.indptr[0] : found.indptr[1]]
    array([7, 3], dtype=int32)
    """

    indptr: Any
    indices: Any
    distances: Any


class Within(NamedTuple):
    """A radius search: its queries, and the conditions for a point to be found.

    Attributes
    ----------
    queries : checked rows of shape (m, d)
    limits : array of shape (m,), of the dtype of returned distances
        See :func:`limits_for`.
    own : range, or int64 array of shape (m,), optional
        For each query, the row number of its own point, which it must not find. A range means that the queries are
        consecutive points; an array is supported only by methods on the CPU.
    later : bool
        Whether a query finds only points after its own point; `own` must then ascend.
    allowed : Allowed, optional
        The rules for the points that each query may find; `own` is then None. Only for methods with `filters`.
    """

    queries: Any
    limits: npt.NDArray[Any]
    own: npt.NDArray[np.int64] | range | None = None
    later: bool = False
    allowed: Allowed | None = None

    @property
    def first(self) -> int:
        """The row number of the first query's own point, if the queries are consecutive points."""
        own = self.own
        assert own is not None
        return own.start if isinstance(own, range) else int(own[0])

    @property
    def self_ids(self) -> npt.NDArray[np.int64] | None:
        """The row numbers of the queries' own points, as an array."""
        own = self.own
        return np.arange(own.start, own.stop, dtype=np.int64) if isinstance(own, range) else own

    def in_order(self, order: npt.NDArray[np.int64]) -> Within:
        """Return this search with its queries in the given order."""
        ids = self.self_ids
        own = None if ids is None else ids[order]
        allowed = None if self.allowed is None else self.allowed.of(order)
        return Within(self.queries[order], self.limits[order], own, self.later, allowed)


def none_within(n: int, value: npt.DTypeLike, m: int = 0) -> RadiusNeighbors:
    """Return the result of a radius search of m queries that finds no points.

    The number of points, `n`, determines the dtype of indices; `value` is the dtype of distances.

    >>> none_within(10, "float32").indptr
    array([0])
    """
    return RadiusNeighbors(np.zeros(m + 1, np.int64), np.zeros(0, index_dtype(n)), np.zeros(0, value))


def limits_for(
    radius: float | npt.NDArray[np.float64], m: int, dtype: npt.DTypeLike, *, closed: bool, descending: bool
) -> npt.NDArray[Any]:
    """Return for each query the largest returned distance that is within its radius, in the dtype of distances.

    Parameters
    ----------
    radius : float or float64 array of shape (m,)
        The radius, which must not be NaN. With `descending`, the smallest similarity to accept, which must be finite.
    m : int
    dtype : dtype
        float32 or float64.
    closed : bool
        Whether a distance that equals the radius is within it.
    descending : bool
        Whether values are similarities, of which larger ones are nearer.

    Returns
    -------
    array of shape (m,) of the dtype
        A point is within the radius if its returned distance is at most this limit (its similarity at least). If all
        queries have the same limit, the array is read-only and stores it once.

    Examples
    --------
    The float32 number nearest to 0.1 is above it:

    >>> import numpy as np
    >>> from tonari.core.results.radius_neighbors import limits_for
    >>> limits_for(0.1, 1, np.float32, closed=True, descending=False) < np.float32(0.1)
    array([ True])
    """
    outwards = -1.0 if descending else 1.0
    if type(radius) is float or np.ndim(radius) == 0:
        return _one_limit(float(radius), m, np.dtype(dtype), outwards, closed)
    radii = np.asarray(radius, dtype=np.float64)
    if closed and np.dtype(dtype) == np.float64:
        return radii.copy()
    with np.errstate(over="ignore"):
        limits = radii.astype(dtype)
    inside = limits * outwards <= radii * outwards if closed else limits * outwards < radii * outwards
    limits[~inside] = np.nextafter(limits[~inside], np.asarray(-np.inf * outwards, dtype=dtype))
    return limits


@cached(maxsize=64)
def _one_limit(radius: float, m: int, dtype: np.dtype[Any], outwards: float, closed: bool) -> npt.NDArray[Any]:
    """Return the result of :func:`limits_for` for one radius."""
    one = np.array([_limit(radius, dtype, outwards, closed=closed)])
    # The stride is 0 even for m = 1, unlike that of np.broadcast_to.
    everyone: npt.NDArray[Any] = np.ndarray((m,), one.dtype, one, 0, (0,))
    everyone.flags.writeable = False
    return everyone


def _limit(radius: float, dtype: np.dtype[Any], outwards: float, *, closed: bool) -> Any:
    """Return the farthest value of a dtype that is within a radius."""
    value = dtype.type
    with np.errstate(over="ignore"):
        limit = value(radius)
    inside = float(limit) * outwards <= radius * outwards if closed else float(limit) * outwards < radius * outwards
    return limit if inside else np.nextafter(limit, value(-np.inf * outwards))


def later_points(found: RadiusNeighbors, first: int) -> RadiusNeighbors:
    """Remove from each point's list all points that do not have a larger row number than the point itself.

    The first list belongs to the point with row number `first`, the next list to point `first` + 1, and so on.

    Parameters
    ----------
    found : RadiusNeighbors
        The lists of consecutive points, as NumPy arrays or torch tensors.
    first : int

    Examples
    --------
    >>> import numpy as np
    >>> from tonari.core.results.radius_neighbors import RadiusNeighbors, later_points
    >>> found = RadiusNeighbors(np.array([0, 2, 4]), np.array([1, 2, 0, 1]), np.array([0.0, 1.0, 0.5, 0.0]))
    >>> later_points(found, 1).indices
    array([2])
    """
    if not _is_host(found.indices):
        return _kept_there(found, lambda _entries, rows, points: points > rows + first)
    indptr, indices, distances = found
    own = np.repeat(np.arange(first, first + len(indptr) - 1), np.diff(indptr))
    later = indices > own
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(later)])
    return RadiusNeighbors(before[indptr], indices[later], distances[later])


def nearest_of(found: RadiusNeighbors, most: int) -> RadiusNeighbors:
    """Return the first `most` neighbours of each row.

    Examples
    --------
    >>> import numpy as np
    >>> from tonari.core.results.radius_neighbors import RadiusNeighbors, nearest_of
    >>> found = RadiusNeighbors(np.array([0, 2, 3]), np.array([4, 1, 0]), np.array([0.0, 1.0, 0.5]))
    >>> nearest_of(found, 1).indices
    array([4, 0])
    """
    indptr, indices, distances = found
    if not _is_host(indices):
        return _kept_there(found, lambda entries, rows, _points: entries - indptr[rows] < most)
    places = np.arange(len(indices)) - np.repeat(indptr[:-1], np.diff(indptr))
    return RadiusNeighbors(_indptr(np.minimum(np.diff(indptr), most)), indices[places < most], distances[places < most])


def _kept_there(found: RadiusNeighbors, keeps: Callable[[Any, Any, Any], Any]) -> RadiusNeighbors:
    """Drop entries from lists of tensors, on the device that holds them.

    Entries are checked in blocks, which need little additional memory. `keeps(entries, rows, points)` receives the
    positions of some entries, the row numbers of their lists, and their points; it returns a mask of the entries to
    keep.
    """
    import torch

    indptr, indices, distances = found
    counts = torch.zeros_like(indptr[1:])
    parts = []
    for block in cut(len(indices), tuning.CUT_ENTRIES):
        entries = torch.arange(block.start, block.stop, device=indptr.device)
        mask = keeps(entries, torch.searchsorted(indptr[1:], entries, right=True), indices[block])
        ends = torch.nn.functional.pad(mask.cumsum(0), (1, 0))
        counts += ends[(indptr - block.start).clamp(0, len(mask))].diff()
        parts.append((indices[block][mask], distances[block][mask]))
    joined = [torch.cat(part) for part in zip(*parts, strict=True)] if parts else [indices, distances]
    return RadiusNeighbors(torch.nn.functional.pad(counts.cumsum(0), (1, 0)), *joined)


def cut_lists(found: Neighbors, limits: npt.NDArray[Any], *, descending: bool) -> RadiusNeighbors:
    """Reduce lists of shape (m, k) to the neighbours whose distance is at most the limit of their query.

    Examples
    --------
    >>> import numpy as np
    >>> from tonari.core.results.neighbors import Neighbors
    >>> from tonari.core.results.radius_neighbors import cut_lists
    >>> lists = Neighbors(np.array([[0.0, 1.0], [0.5, 2.0]]), np.array([[4, 1], [0, 3]]))
    >>> cut_lists(lists, np.array([1.0, 0.0]), descending=False).indices
    array([4, 1])
    """
    distances, indices = (np.asarray(part) if _is_host(part) else part.cpu().numpy() for part in found)
    inside = distances >= limits[:, None] if descending else distances <= limits[:, None]
    inside &= indices >= 0
    lists = RadiusNeighbors(_indptr(inside.sum(axis=1)), indices[inside], distances[inside])
    return _like(lists, found)


def _indptr(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])


def _is_host(part: Any) -> bool:
    return isinstance(part, np.ndarray)


def _like(kept: RadiusNeighbors, lists: tuple[Any, ...]) -> RadiusNeighbors:
    """Convert NumPy arrays to the library of `lists`: unchanged, or as tensors on the device of `lists`."""
    if _is_host(lists[0]):
        return kept
    from_numpy = sys.modules["torch"].from_numpy
    return RadiusNeighbors(*(from_numpy(part).to(lists[0].device) for part in kept))
