"""Entry points of a call, with or without rules: the k nearest points, all points within a radius, or their number.

The points to search are a :class:`tonari.methods.places.points.Points`. If there are rules, results are in host memory,
otherwise on the device of the queries.

For answers with ties, a search for k + 1 neighbours shows which queries have other points at the distance of the k-th.
These queries are then searched for all points within this distance.
"""

from __future__ import annotations

import reprlib
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.core.process.progress import ProgressLike
from tonari.core.results.neighbors import Neighbors
from tonari.core.results.radius_neighbors import RadiusNeighbors
from tonari.core.trail import part
from tonari.filters.rules import Rules
from tonari.filters.scope import Scope, on_host
from tonari.filters.searches.counting import count_allowed
from tonari.filters.searches.nearest import nearest_allowed
from tonari.filters.searches.within import within_allowed
from tonari.methods.places.points import Points
from tonari.methods.radius import is_searched, search_within


def nearest(
    points: Points, queries: Any, k: int, rules: Rules | None, progress: ProgressLike, *, around: bool = False
) -> Neighbors:
    """Find the k nearest allowed points of each query; k is at most the number of points.

    Parameters
    ----------
    points : Points
    queries : checked rows of shape (m, d)
    k : int
    rules : Rules, optional
    progress : None, bool or callable(done, total)
    around : bool
        Whether to use brute force if the method of the call does not support this k; otherwise this is an error. With
        rules, brute force is always used in this case.
    """
    if rules is None:
        return points.nearest(queries, k, progress, around=around)
    return nearest_allowed(Scope(points=points), queries, min(k, len(points)), rules, progress)


def within(
    points: Points,
    queries: Any,
    limits: npt.NDArray[Any],
    rules: Rules | None,
    most: int | None,
    progress: ProgressLike,
    *,
    self_join: bool = False,
    around: bool = False,
) -> RadiusNeighbors:
    """Find all allowed points within the radius of each query, or the `most` nearest of them.

    Parameters
    ----------
    points, queries, rules, progress, around
        As for :func:`nearest`.
    limits : array of shape (m,)
        See :func:`tonari.core.results.radius_neighbors.limits_for`.
    most : int, optional
        Largest number of points for each query.
    self_join : bool
        Whether the queries are the points, and no point finds itself. Without effect if there are rules, which include
        this condition.
    """
    others = len(points) - self_join
    if most is not None and is_searched(most) and others:
        if rules is None:
            found = points.searched(queries, min(most, others), progress, self_join=self_join, around=around)
        else:
            found = nearest_allowed(Scope(points=points), queries, min(most, len(points)), rules, progress)
            found = Neighbors(*on_host(found))
        return search_within(found, limits, points.call.metric)
    if rules is None and most is None:
        return points.within(queries, limits, progress, self_join=self_join)
    rules = Rules(m=len(queries), n=len(points), own=self_join) if rules is None else rules
    return within_allowed(Scope(points=points), queries, limits, rules, most, progress)


def count(points: Points, queries: Any, limits: npt.NDArray[Any], rules: Rules | None, progress: ProgressLike) -> Any:
    """Count the allowed points within the radius of each query; for the parameters see :func:`within`."""
    if rules is None:
        return points.count(queries, limits, progress)
    return count_allowed(Scope(points=points), queries, limits, rules, progress)


TIES = ("first", "all")


def are_all(ties: Any) -> bool:
    """Check the argument `ties` of a public function, and return whether it is "all".

    >>> are_all("first"), are_all("all")
    (False, True)
    """
    if not isinstance(ties, str) or ties not in TIES:
        raise ValueError(f"ties={reprlib.repr(ties)}: expected 'first' (k neighbours, by row number) or 'all'")
    return ties == "all"


def nearest_with_ties(
    points: Points, queries: Any, k: int, rules: Rules | None, progress: ProgressLike, *, self_join: bool = False
) -> RadiusNeighbors:
    """Find each query's k nearest points and all others at the distance of the k-th; the result is in host memory.

    Parameters
    ----------
    points : Points
    queries : checked rows of shape (m, d), at least one
    k : int
    rules : Rules, optional
        A query that may find fewer than k points finds all of them.
    progress : None, bool or callable(done, total)
    self_join : bool
        Whether the queries are the points, and no point finds itself. Without effect if there are rules, which include
        this condition.
    """
    wanted = min(k + 1, len(points) - self_join)
    if rules is None:
        near = points.nearest(queries, wanted, progress, self_join=self_join, around=True)
    else:
        near = nearest_allowed(Scope(points=points), queries, wanted, rules, progress)
    first, tied, limits = first_and_tied(Neighbors(*on_host(near)), k)
    if limits is None:
        return joined_ties(first, tied, None)
    rows = np.flatnonzero(tied)
    if rules is None and self_join:
        rules = Rules(m=len(queries), n=len(points), own=True)
    with part("points at the k-th distance", len(rows)):
        some = inputs.rows_at(queries, rows)
        ours = None if rules is None else rules.part(rows, None)
        more = RadiusNeighbors(*on_host(within(points, some, limits, ours, None, False)))
    return joined_ties(first, tied, more)


def first_and_tied(near: Neighbors, k: int) -> tuple[Neighbors, npt.NDArray[np.bool_], npt.NDArray[Any] | None]:
    """Find the queries with ties at the k-th distance, from lists in host memory of k or k + 1 points.

    Returns
    -------
    first : Neighbors
        The first k columns.
    tied : bool array of shape (m,)
        Whether each query has another point at the distance of the k-th.
    limits : array, optional
        The k-th distances of the queries with ties; None without such queries.
    """
    distances, indices = near
    tied = np.zeros(len(indices), bool)
    if indices.shape[1] > k:
        tied = (indices[:, k] >= 0) & (distances[:, k] == distances[:, k - 1])
    limits = np.ascontiguousarray(distances[tied, k - 1]) if tied.any() else None
    return Neighbors(distances[:, :k], indices[:, :k]), tied, limits


def joined_ties(first: Neighbors, tied: Any, more: RadiusNeighbors | None) -> RadiusNeighbors:
    """Join the lists of queries without ties, which are in `first`, and of queries with ties, which are in `more`."""
    present = (first.indices >= 0) & ~tied[:, None]
    counts = present.sum(axis=1)
    if more is None:
        indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        return RadiusNeighbors(indptr, first.indices[present], first.distances[present])
    counts[tied] = np.diff(more.indptr)
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    whole = np.repeat(tied, counts)
    joined = RadiusNeighbors(
        indptr, np.empty(indptr[-1], first.indices.dtype), np.empty(indptr[-1], first.distances.dtype)
    )
    for mine, few, many in zip(joined[1:], (first.indices, first.distances), more[1:], strict=True):
        mine[~whole], mine[whole] = few[present], many
    return joined
