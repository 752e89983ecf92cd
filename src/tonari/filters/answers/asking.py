"""Entry points of a call, with or without rules: the k nearest points, all points within a radius, or their number.

The points to search are a :class:`tonari.methods.rows.points.Points`. If there are rules, results are in host memory,
otherwise on the device of the queries.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from tonari.core.process.progress import ProgressLike
from tonari.core.results.neighbors import Neighbors
from tonari.core.results.radius_neighbors import RadiusNeighbors
from tonari.filters.answers.counting import count_allowed
from tonari.filters.answers.nearest import nearest_allowed
from tonari.filters.answers.within import within_allowed
from tonari.filters.rules import Rules
from tonari.filters.scope import Scope, on_host
from tonari.methods.radius import is_searched, search_within
from tonari.methods.rows.points import Points


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
