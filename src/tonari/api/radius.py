"""The verbs of radii: `tonari.radius_search`, `tonari.radius_count` and `tonari.radius_graph`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy.typing as npt

from tonari import inputs
from tonari.api.changed import on_changed_rows
from tonari.api.differentiable import carries
from tonari.core.floats import in_default_floats
from tonari.core.progress import ProgressLike
from tonari.core.radius_neighbors import RadiusNeighbors
from tonari.filters import asking
from tonari.filters.arguments import Given, shared_mask
from tonari.methods import repeated
from tonari.methods.answer import on_side_of
from tonari.methods.call import Call
from tonari.methods.no_queries import none_counted, none_within_radius
from tonari.methods.points import Points


class WithinCall(NamedTuple):
    """A call of what is within radii, checked.

    Attributes
    ----------
    queries : checked rows of shape (m, d)
    points : Points
    limits : array of shape (m,)
        See :func:`tonari.core.radius_neighbors.limits_for`.
    """

    queries: Any
    points: Points
    limits: npt.NDArray[Any]

    @classmethod
    def of(cls, call: Call, queries: Any, points: Any, radius: Any, min_similarity: Any, closed: Any) -> WithinCall:
        """Check the rows and radii of a verb."""
        rows, base = call.both(queries, points)
        limits = call.limits(base, rows, radius=radius, min_similarity=min_similarity, closed=closed)
        return cls(rows, Points(base, call), limits)

    def decided(self, key: repeated.Key | None, queries: Any, points: Any) -> WithinCall:
        """Decide for a search without rules, and keep that by its key for searches of other arrays, given as these are.

        Without a key the call is returned as it is.
        """
        rows, those, limits = self
        if key is None or not len(rows):
            return self
        made = those.decided_within(rows, limits, those.call.progress)
        if rows is queries and those.rows is points and not those.call.place.devices:
            repeated.keep(key, those.call, made.decision, limits)
        return self._replace(points=made)

    def found(self, given: Given, most: Any, *, self_join: bool = False) -> RadiusNeighbors:
        """Find what is within the limits, and may be found, or the `most` nearest of it."""
        most = None if most is None else inputs.check_count(most, "max_neighbors")
        rules = given.rules(len(self.queries), len(self.points), own=self_join)
        if not len(self.queries):
            return none_within_radius(self.points.problem(self.queries, 1), self.points.call.method)
        if rules is not None or most is not None:
            self.points.refuse_unsupported(self.queries)
        progress = self.points.call.progress
        return asking.within(self.points, self.queries, self.limits, rules, most, progress, self_join=self_join)

    def counted(self, given: Given) -> Any:
        """Count what is within the limits, and may be found."""
        rows, those, limits = self
        rules = given.rules(len(rows), len(those))
        if not len(rows):
            return none_counted(those.problem(rows, 1), those.call.method)
        if rules is not None:
            those.refuse_unsupported(rows)
        return asking.count(those, rows, limits, rules, those.call.progress)


_NO_RULES = Given()


@in_default_floats
@on_changed_rows
def radius_search(
    queries: Any,
    points: Any,
    radius: Any = None,
    *,
    min_similarity: Any = None,
    closed: bool = True,
    max_neighbors: int | None = None,
    metric: str = "euclidean",
    weights: Any = None,
    method: str = "auto",
    where: Any = None,
    exclude: Any = None,
    query_groups: Any = None,
    point_groups: Any = None,
    groups: str | None = None,
    differentiable: bool = False,
    device: str | Sequence[str] = "auto",
    threads: int | None = None,
    memory: int | str | None = None,
    progress: ProgressLike = None,
) -> RadiusNeighbors:
    """Find all points within a radius of every query, exactly.

    Parameters that are not listed are those of :func:`search`.

    Parameters
    ----------
    radius : float or array of shape (m,)
        At least 0, and possibly infinite: one for all queries, or one for each. A point is within it if its returned
        distance is at most the radius. For "sqeuclidean" the radius is squared, as distances are.
    min_similarity : float or array of shape (m,)
        Instead of a radius, for similarities. "inner_product" needs it, and finds a point whose inner product is at
        least this. "cosine" and "correlation" find one whose distance is at most ``1 - min_similarity``, a difference
        in float64.
    closed : bool
        Whether a distance equal to the radius is within it.
    max_neighbors : int, optional
        At most so many for each query: the nearest of those within the radius.
    where, exclude, query_groups, point_groups, groups
        What may be found, as for :func:`search`.
    differentiable : bool
        Let gradients flow from the distances, as for :func:`search`.
    memory : int or str, optional
        As for :func:`search`, beside the result, whose size nobody knows before: :func:`radius_count` tells it, and
        :meth:`Index.radius_chunks` has the result of a part of the queries at a time.

    Returns
    -------
    RadiusNeighbors(indptr, indices, distances)
        The neighbours of query i are at ``indptr[i]`` to ``indptr[i + 1]`` of the other two, ordered by (returned
        distance, index). As and where the queries are; dtypes as for :func:`search`.

    Raises
    ------
    TypeError, ValueError
        What :func:`search` refuses; a radius that is negative or NaN, of another shape, or that the metric does not
        have; a least similarity that is not finite.

    Notes
    -----
    Whether a point is inside is decided by the distance as it is returned, so the result is what filtering all
    distances would give, bit for bit, for every method, number of threads and device (docs/exactness.md).

    Examples
    --------
    >>> import numpy as np, tonari
    >>> points = np.array([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]], dtype=np.float32)
    >>> found = tonari.radius_search(points[:2], points, radius=5.0)
    >>> found.indptr.tolist(), found.indices.tolist()
    ([0, 2, 5], [0, 1, 1, 0, 2])
    """
    key = None
    if (
        where is exclude is query_groups is point_groups is groups is None
        and max_neighbors is threads is memory is None
        and differentiable is False
    ):
        key = repeated.key_within(queries, points, radius, min_similarity, closed, metric, method, device)
        known = repeated.within(key, queries, points, progress)
        if known is not None:
            return WithinCall(*known).found(_NO_RULES, None)
    call = Call.of(
        {"queries": queries, "points": points},
        metric=metric,
        method=method,
        device=device,
        threads=threads,
        memory=memory,
        progress=progress,
    )
    within = WithinCall.of(call, queries, points, radius, min_similarity, closed).decided(key, queries, points)
    carry = carries(differentiable, queries, points, call.metric.name)
    given = Given(where, exclude, query_groups, point_groups, groups)
    return carry(on_side_of(queries, within.found(given, max_neighbors)))


@in_default_floats
@on_changed_rows
def radius_count(
    queries: Any,
    points: Any,
    radius: Any = None,
    *,
    min_similarity: Any = None,
    closed: bool = True,
    metric: str = "euclidean",
    weights: Any = None,
    method: str = "auto",
    where: Any = None,
    exclude: Any = None,
    query_groups: Any = None,
    point_groups: Any = None,
    groups: str | None = None,
    device: str | Sequence[str] = "auto",
    threads: int | None = None,
    memory: int | str | None = None,
    progress: ProgressLike = None,
) -> Any:
    """Count the points within a radius of every query, exactly.

    Most counted points never get an exact distance: a bound proves that they are inside.

    Parameters
    ----------
    radius, min_similarity, closed
        As for :func:`radius_search`, as is what says which points may be found; all others as for :func:`search`.

    Returns
    -------
    int64 array of shape (m,)
        As and where the queries are.

    Raises
    ------
    TypeError, ValueError
        What :func:`radius_search` refuses. Values that overflow or underflow are refused where the count depends on
        them: for a radius that is infinite, or too small for its dtype.

    Examples
    --------
    >>> import numpy as np, tonari
    >>> points = np.array([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]], dtype=np.float32)
    >>> tonari.radius_count(points, points, radius=5.0).tolist()
    [2, 3, 2]
    """
    key = None
    if where is exclude is query_groups is point_groups is groups is None and threads is memory is None:
        key = repeated.key_within(queries, points, radius, min_similarity, closed, metric, method, device)
        known = repeated.within(key, queries, points, progress)
        if known is not None:
            return WithinCall(*known).counted(_NO_RULES)
    call = Call.of(
        {"queries": queries, "points": points},
        metric=metric,
        method=method,
        device=device,
        threads=threads,
        memory=memory,
        progress=progress,
    )
    within = WithinCall.of(call, queries, points, radius, min_similarity, closed).decided(key, queries, points)
    counts = within.counted(Given(where, exclude, query_groups, point_groups, groups))
    return inputs.hand_back(counts, inputs.side_of(queries, "queries"))


@in_default_floats
@on_changed_rows
def radius_graph(
    points: Any,
    radius: Any = None,
    *,
    min_similarity: Any = None,
    closed: bool = True,
    max_neighbors: int | None = None,
    metric: str = "euclidean",
    weights: Any = None,
    method: str = "auto",
    where: Any = None,
    batch: Any = None,
    differentiable: bool = False,
    device: str | Sequence[str] = "auto",
    threads: int | None = None,
    memory: int | str | None = None,
    progress: ProgressLike = None,
) -> RadiusNeighbors:
    """Find all other points within a radius of every point, exactly.

    Parameters
    ----------
    points : array of shape (n, d)
    radius, min_similarity, closed, max_neighbors
        As for :func:`radius_search`; all others as for :func:`search`.
    where, batch
        Which points may be found, and groups in which points find each other alone, as for :func:`knn_graph`.
    differentiable : bool
        Let gradients flow from the distances to both of their points, as for :func:`search`.

    Returns
    -------
    RadiusNeighbors(indptr, indices, distances)
        As that of :func:`radius_search`, with a row for each point. A point is not its own neighbour: it is excluded by
        row identity, so its duplicates are found.

    Examples
    --------
    >>> import numpy as np, tonari
    >>> line = np.array([[0.0], [1.0], [3.0]], dtype=np.float32)
    >>> graph = tonari.radius_graph(line, radius=2.0)
    >>> graph.indptr.tolist(), graph.indices.tolist()
    ([0, 1, 3, 4], [1, 0, 2, 1])
    """
    key = None
    if max_neighbors is threads is where is batch is memory is None and differentiable is False:
        key = repeated.key_within(points, points, radius, min_similarity, closed, metric, method, device)
        known = repeated.within(key, points, points, progress)
        if known is not None:
            return WithinCall(*known).found(_NO_RULES, None, self_join=True)
    call = Call.of(
        {"points": points},
        metric=metric,
        method=method,
        device=device,
        threads=threads,
        memory=memory,
        progress=progress,
    )
    within = WithinCall.of(call, points, points, radius, min_similarity, closed).decided(key, points, points)
    carry = carries(differentiable, points, points, call.metric.name)
    shared_mask(where, len(within.points))
    return carry(
        on_side_of(points, within.found(Given(where=where, batch=batch), max_neighbors, self_join=True), "points")
    )
